-- After a job was put aside: write that it waits for its pages, and how far they are, and wake it if its pages came to an end while it looked; $1 = run; returns nothing.
WITH run AS (
    SELECT id FROM worker.runs WHERE id = $1 FOR UPDATE
), chain AS (
    SELECT chain.partition_id, chain.first_offset, chain.next_offset, chain.past_offset, chain.completed
    FROM worker.partition_progress AS chain JOIN run ON run.id = chain.run_id
    WHERE chain.dropped_at IS NULL
), moved AS (
    UPDATE worker.jobs
    SET stage = 'pages', progress = (SELECT 0.95 * sum(next_offset - first_offset) / sum(past_offset - first_offset) FROM chain)
    WHERE id = $1 AND status = 'queued'
)
SELECT worker.wake_run(run.id) FROM run
WHERE NOT EXISTS (SELECT FROM chain WHERE NOT completed)
   OR EXISTS (
        SELECT FROM worker.jobs AS page JOIN chain
            ON (page.spec ->> 'partition')::int = chain.partition_id AND (page.spec ->> 'offset')::int = chain.next_offset
        WHERE page.run_id = run.id AND page.status IN ('failed', 'cancelled') AND NOT chain.completed)

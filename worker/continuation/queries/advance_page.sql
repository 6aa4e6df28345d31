-- Note a finished page and move its chain on, if it was its turn; $1 = run, $2 = partition, $3 = page, $4 = its job, $5 = what it made; returns the page whose turn it is, and whether the chain is complete, or nothing: somebody finished it before, or its job is over.
WITH run AS (
    -- one page of a run at a time, so that the last one sees all others
    SELECT id FROM worker.runs WHERE id = $1 FOR UPDATE
), advanced AS (
    UPDATE worker.partition_progress AS chain
    SET next_offset = chain.next_offset + 1, completed = (chain.next_offset + 1 = chain.past_offset), updated_at = clock_timestamp()
    FROM run
    WHERE chain.run_id = run.id AND chain.partition_id = $2 AND chain.next_offset = $3 AND NOT chain.completed AND chain.dropped_at IS NULL
      AND EXISTS (SELECT FROM worker.jobs AS job WHERE job.id = run.id AND job.status IN ('queued', 'processing'))
    RETURNING chain.next_offset, chain.completed
), kept AS (
    INSERT INTO worker.pages (run_id, partition_id, page_offset, job_id, facts)
    SELECT $1, $2, $3, $4, $5 FROM advanced
    RETURNING page_offset
)
SELECT next_offset, completed, (SELECT count(*) FROM kept) AS kept FROM advanced

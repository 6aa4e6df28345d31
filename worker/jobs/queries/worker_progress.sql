-- Count what ended, by queue; $1 = worker, $2 = queues, $3 = how many of each so far, $4 = the last job of each; returns the queues that have a row.
WITH known AS MATERIALIZED (
    -- Totals and a lock for the same reason as with heartbeats. A queue without a row is left to the caller: two who
    -- made it at the same time would both count.
    SELECT queue, processed FROM worker.worker_progress WHERE worker_id = $1 AND queue = ANY ($2::text[]) ORDER BY queue FOR UPDATE
)
SELECT queue, CASE WHEN told.total > known.processed
    THEN worker._worker_progress($1, queue, told.total - known.processed, told.last_job) END AS processed
FROM known JOIN unnest($2::text[], $3::bigint[], $4::text[]) AS told (queue, total, last_job) USING (queue)

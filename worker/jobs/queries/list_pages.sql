-- The pages of a job that were sent so far; $1 = the job; returns them by partition.
SELECT page.id, chain.kind, (page.spec ->> 'partition')::int AS partition, (page.spec ->> 'offset')::int AS "offset",
       page.status, page.progress, page.attempt_count, page.error_code, page.error_message
FROM worker.jobs AS page
LEFT JOIN worker.partition_progress AS chain ON chain.run_id = page.run_id AND chain.partition_id = (page.spec ->> 'partition')::int
WHERE page.run_id = $1
ORDER BY (page.spec ->> 'partition')::int, (page.spec ->> 'offset')::int, page.created_at

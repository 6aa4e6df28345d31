-- What a page is about; $1 = run, $2 = partition; returns the plan, the chain, and the job that was split, or nothing.
SELECT run.plan, chain.kind, chain.heights, chain.next_offset, chain.completed, chain.dropped_at IS NOT NULL AS is_dropped,
       job.spec, job.status
FROM worker.runs AS run
JOIN worker.partition_progress AS chain ON chain.run_id = run.id AND chain.partition_id = $2
JOIN worker.jobs AS job ON job.id = run.id
WHERE run.id = $1

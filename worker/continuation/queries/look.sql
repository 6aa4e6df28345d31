-- How far a job's pages are; $1 = run; returns its plan and each partition that counts, with the job of the page that it is the turn of.
SELECT run.plan, chain.partition_id, chain.kind, chain.first_offset, chain.past_offset, chain.next_offset, chain.heights,
       page.status AS page_status, page.error_code AS page_code, page.error_message AS page_message
FROM worker.runs AS run
JOIN worker.partition_progress AS chain ON chain.run_id = run.id AND chain.dropped_at IS NULL
LEFT JOIN LATERAL (
    SELECT job.status, job.error_code, job.error_message
    FROM worker.jobs AS job
    WHERE job.run_id = run.id AND (job.spec ->> 'partition')::int = chain.partition_id AND (job.spec ->> 'offset')::int = chain.next_offset
      -- One that was cancelled although nobody asked for it, or nobody has since the job was revived, only got lost.
      AND (job.status <> 'cancelled' OR job.cancel_requested_at > coalesce(run.revived_at, '-infinity'))
    ORDER BY job.status IN ('queued', 'processing') DESC, job.created_at DESC
    LIMIT 1
) AS page ON true
WHERE run.id = $1
ORDER BY chain.partition_id

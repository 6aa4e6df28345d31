-- Jobs, newest first, with those that only pg-boss knows yet; $1 = our queues, $2 = status (null = any), $3 = how many, $4 = only this queue (null = any), $5 = pages of long jobs as well?; returns summaries.
(SELECT id, queue, spec, status, attempt_count, max_attempts, stage, progress, error_code, error_message, created_at, finished_at
 FROM worker.jobs
 WHERE ($2::text IS NULL OR status = $2) AND ($4::text IS NULL OR queue = $4) AND ($5 OR run_id IS NULL)
 ORDER BY created_at DESC, id
 LIMIT $3)
UNION ALL
-- Queue by queue, so that an index gives the order; cut off before those we know are left out: they stand above already.
(SELECT job.id, job.name, job.data, 'queued', 0, job.retry_limit + 1, NULL, 0, NULL, NULL, job.created_on, NULL
 FROM unnest($1::text[]) AS ours (name)
 CROSS JOIN LATERAL (SELECT id, job.name, data, retry_limit, created_on FROM {queue}.job
                     WHERE job.name = ours.name AND state < 'active'
                     ORDER BY created_on DESC
                     LIMIT $3) AS job
 WHERE ($2::text IS NULL OR $2 = 'queued') AND ($4::text IS NULL OR ours.name = $4)
   AND NOT EXISTS (SELECT FROM worker.jobs AS known WHERE known.id = job.id))
ORDER BY created_at DESC, id
LIMIT $3

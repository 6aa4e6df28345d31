-- One job, also one that only pg-boss knows yet; $1 = id; returns a row or nothing.
SELECT id, queue, spec, status, attempt_count, max_attempts, crash_count, stage, progress, result, error_code, error_message,
       worker_id, cancel_requested_at, created_at, updated_at, processing_started_at, finished_at, run_id
FROM worker.jobs WHERE id = $1
UNION ALL
SELECT job.id, job.name, job.data, 'queued', 0, job.retry_limit + 1, 0, NULL, 0, NULL, NULL, NULL,
       NULL, NULL, job.created_on, job.created_on, NULL, NULL, NULL
FROM {queue}.job AS job
WHERE job.id = $1 AND job.state < 'active' AND NOT EXISTS (SELECT FROM worker.jobs AS known WHERE known.id = $1)

-- Give failed jobs one more attempt; $1 = queue, $2 = ids; returns the ids that wait again.
UPDATE {queue}.job AS job
SET state = 'retry',
    retry_limit = job.retry_limit + 1,
    completed_on = NULL,
    start_after = greatest(job.start_after, now())
WHERE job.name = $1 AND job.id = ANY ($2::uuid[]) AND job.state = 'failed'
RETURNING job.id

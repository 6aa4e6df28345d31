-- Put cancelled jobs back in line; $1 = queue, $2 = ids; returns the ids that wait again.
UPDATE {queue}.job AS job
SET state = 'created',
    completed_on = NULL,
    upsert_by_key = NULL, --@45
    start_after = greatest(job.start_after, now())
WHERE job.name = $1 AND job.id = ANY ($2::uuid[]) AND job.state = 'cancelled'
RETURNING job.id

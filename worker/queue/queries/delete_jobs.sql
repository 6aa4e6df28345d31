-- Delete jobs in whatever state; $1 = queue, $2 = ids, $3 = retry counts (the fence; null = unfenced); returns the ids that are gone.
DELETE FROM {queue}.job AS job
USING unnest($2::uuid[], $3::int[]) AS asked (id, retry_count)
WHERE job.name = $1
  AND job.id = asked.id
  AND (asked.retry_count IS NULL OR job.state = 'active' AND job.retry_count = asked.retry_count)
RETURNING job.id

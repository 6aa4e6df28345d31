-- Say that claimed jobs are still worked on; $1 = queue, $2 = ids, $3 = retry counts (the fence; null = unfenced); returns the ids that are still ours.
UPDATE {queue}.job AS job
SET heartbeat_on = now()
FROM unnest($2::uuid[], $3::int[]) AS asked (id, retry_count)
WHERE job.name = $1
  AND job.id = asked.id
  AND job.state = 'active'
  AND (asked.retry_count IS NULL OR job.retry_count = asked.retry_count)
RETURNING job.id

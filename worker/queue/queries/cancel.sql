-- Cancel unfinished jobs; $1 = queue, $2 = ids, $3 = retry counts (the fence; null = unfenced); returns the ids that were cancelled.
UPDATE {queue}.job AS job
SET state = 'cancelled', completed_on = now()
FROM unnest($2::uuid[], $3::int[]) AS asked (id, retry_count)
WHERE job.name = $1
  AND job.id = asked.id
  AND CASE WHEN asked.retry_count IS NULL THEN job.state < 'completed'
           ELSE job.state = 'active' AND job.retry_count = asked.retry_count END
RETURNING job.id

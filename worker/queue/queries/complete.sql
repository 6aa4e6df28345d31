-- Complete claimed jobs; $1 = queue, $2 = ids, $3 = their retry counts (the fence; null = unfenced), $4 = outputs; returns the ids that were settled.
UPDATE {queue}.job AS job
SET state = 'completed', completed_on = now(), output = asked.output
FROM unnest($2::uuid[], $3::int[], $4::jsonb[]) AS asked (id, retry_count, output)
WHERE job.name = $1
  AND job.id = asked.id
  AND job.state = 'active'
  AND (asked.retry_count IS NULL OR job.retry_count = asked.retry_count)
RETURNING job.id

-- Complete jobs; $1 = queue, $2 = ids, $3 = their retry counts (the fence; null = unfenced), $4 = outputs, $5 = unfenced ones that still wait, too?; returns the ids that were settled.
UPDATE {queue}.job AS job
SET state = 'completed',
    completed_on = now(),
    output = asked.output,
    blocked = job.blocked AND NOT $5::bool,
    pending_dependencies = CASE WHEN $5 THEN 0 ELSE job.pending_dependencies END
FROM unnest($2::uuid[], $3::int[], $4::jsonb[]) AS asked (id, retry_count, output)
WHERE job.name = $1
  AND job.id = asked.id
  AND CASE WHEN asked.retry_count IS NOT NULL THEN job.state = 'active' AND job.retry_count = asked.retry_count
           WHEN $5 THEN job.state < 'completed'
           ELSE job.state = 'active' END
RETURNING job.id

-- A delivery of a job that was done already: complete it with the stored result; $1 = queue, $2 = id, $3 = retry count; returns the id.
UPDATE {queue}.job AS job
SET state = 'completed', completed_on = now(), output = finished.result
FROM worker.jobs AS finished
WHERE job.name = $1 AND job.id = $2 AND job.state = 'active' AND job.retry_count = $3
  AND finished.id = job.id AND finished.status = 'done'
RETURNING job.id

-- Cancel unfinished jobs; $1 = queue, $2 = ids; returns the ids that were cancelled.
UPDATE {queue}.job AS job
SET state = 'cancelled', completed_on = now()
WHERE job.name = $1 AND job.id = ANY ($2::uuid[]) AND job.state < 'completed'
RETURNING job.id

-- Delete a batch of a queue's jobs; $1 = queue, $2 = states, $3 = how many; returns the ids that are gone.
DELETE FROM {queue}.job AS job
WHERE job.name = $1
  AND job.id = ANY (ARRAY(
    SELECT doomed.id FROM {queue}.job AS doomed
    WHERE doomed.name = $1 AND doomed.state = ANY ($2::text[]::{queue}.job_state[])
    LIMIT $3
    FOR UPDATE SKIP LOCKED))
RETURNING job.id

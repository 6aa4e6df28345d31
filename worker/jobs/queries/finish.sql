-- Record success on both tables and the timeline; $1 = queue, $2 = id, $3 = lease token, $4 = retry count, $5 = result; returns the id, or nothing when the lease is lost.
WITH settled AS (
    -- Both fences before anything is written; whoever takes a lease away locks this row first.
    UPDATE {queue}.job AS job
    SET state = 'completed', completed_on = now(), output = $5::jsonb
    WHERE job.name = $1 AND job.id = $2 AND job.state = 'active' AND job.retry_count = $4
      AND EXISTS (SELECT FROM worker.jobs AS held WHERE held.id = $2 AND held.lease_token = $3 AND held.status = 'processing')
    RETURNING job.id
), finished AS (
    UPDATE worker.jobs AS mine
    SET status = 'done', result = $5::jsonb, lease_token = NULL, progress = 1, finished_at = clock_timestamp(), updated_at = clock_timestamp()
    WHERE mine.id = (SELECT id FROM settled) AND mine.lease_token = $3 AND mine.status = 'processing'
    RETURNING mine.id, mine.attempt_count, mine.worker_id
)
INSERT INTO worker.job_events (job_id, attempt, worker_id, kind)
SELECT id, attempt_count + 1, worker_id, 'done' FROM finished
RETURNING job_id

-- Write an event of the running attempt, and the stage it is in; $1 = id, $2 = lease token, $3 = stage (null = unchanged), $4 = event, $5 = its data; returns the id, or nothing when the lease is lost.
WITH held AS (
    UPDATE worker.jobs AS mine
    SET stage = coalesce($3, mine.stage), updated_at = clock_timestamp()
    WHERE mine.id = $1 AND mine.lease_token = $2 AND mine.status = 'processing'
    RETURNING mine.id, mine.attempt_count, mine.worker_id
)
INSERT INTO worker.job_events (job_id, attempt, worker_id, kind, data)
SELECT id, attempt_count + 1, worker_id, $4, $5::jsonb FROM held
RETURNING job_id

-- End or requeue an attempt on our side; the caller settles the delivery in the same transaction, before this; $1 = id, $2 = lease token, $3 = new status, $4 = attempts to add, $5 = error code, $6 = error message, $7 = event, $8 = its data; returns the id, or nothing when the lease is lost.
WITH closed AS (
    UPDATE worker.jobs AS mine
    SET status = $3,
        lease_token = NULL,
        attempt_count = mine.attempt_count + $4,
        error_code = $5,
        error_message = $6,
        finished_at = CASE WHEN $3 <> 'queued' THEN clock_timestamp() END,
        updated_at = clock_timestamp()
    WHERE mine.id = $1 AND mine.lease_token = $2 AND mine.status = 'processing'
    RETURNING mine.id, mine.attempt_count - $4 + 1 AS attempt, mine.worker_id
)
INSERT INTO worker.job_events (job_id, attempt, worker_id, kind, data)
SELECT id, attempt, worker_id, $7, $8::jsonb FROM closed
RETURNING job_id

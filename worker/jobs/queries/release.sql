-- Give leases back: they expire at once, and recovery requeues the jobs without burning an attempt; $1 = ids, $2 = lease tokens, $3 = event; returns the ids of those that were still held.
WITH released AS (
    UPDATE worker.jobs AS mine
    SET last_heartbeat_at = '-infinity', updated_at = clock_timestamp()
    FROM unnest($1::uuid[], $2::bigint[]) AS held (id, token)
    WHERE mine.id = held.id AND mine.lease_token = held.token AND mine.status = 'processing'
    RETURNING mine.id, mine.attempt_count, mine.worker_id
)
INSERT INTO worker.job_events (job_id, attempt, worker_id, kind)
SELECT id, attempt_count + 1, worker_id, $3 FROM released
RETURNING job_id

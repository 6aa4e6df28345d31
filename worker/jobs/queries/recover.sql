-- Take stale leases away; $1 = lease in seconds, $2 = are silent workers dead (false = only leases given back), $3 = how many, $4 = crashes that make a job poison; returns each job with its new status and the delivery as it stood, which the caller settles in the same transaction.
WITH stale AS MATERIALIZED (
    SELECT id, queue, lease_token, attempt_count, max_attempts, crash_count, cancel_requested_at, worker_id, last_heartbeat_at,
           last_heartbeat_at > '-infinity' AS is_crash
    FROM worker.jobs
    WHERE status = 'processing'
      AND (last_heartbeat_at = '-infinity' OR $2 AND last_heartbeat_at < clock_timestamp() - make_interval(secs => $1))
    ORDER BY processing_started_at
    LIMIT $3
), delivery AS MATERIALIZED (
    -- Locked before worker.jobs, as everywhere; one that is locked already is being settled right now.
    SELECT job.id, job.state::text AS state, job.retry_count, job.output
    FROM {queue}.job AS job
    WHERE job.name = ANY (ARRAY(SELECT queue FROM stale)) AND job.id = ANY (ARRAY(SELECT id FROM stale))
    FOR UPDATE SKIP LOCKED
), verdict AS (
    SELECT stale.*, delivery.state AS delivery, delivery.retry_count, delivery.output,
        CASE
            WHEN delivery.id IS NULL OR delivery.state = 'cancelled' OR cancel_requested_at IS NOT NULL THEN 'cancelled'
            WHEN delivery.state = 'completed' THEN 'done'
            WHEN delivery.state = 'failed' THEN 'failed'
            WHEN is_crash AND (crash_count + 1 >= $4 OR attempt_count + 1 >= max_attempts) THEN 'failed'
            ELSE 'queued'
        END AS next_status,
        CASE
            WHEN delivery.id IS NULL OR delivery.state IN ('failed', 'completed') THEN 'DELIVERY_GONE'
            WHEN is_crash AND crash_count + 1 >= $4 THEN 'POISON_JOB'
            WHEN is_crash AND attempt_count + 1 >= max_attempts THEN 'RETRIES_EXHAUSTED'
        END AS code
    FROM stale LEFT JOIN delivery USING (id)
    WHERE delivery.id IS NOT NULL
       OR NOT EXISTS (SELECT FROM {queue}.job AS job WHERE job.name = stale.queue AND job.id = stale.id)
), moved AS (
    UPDATE worker.jobs AS job
    SET status = verdict.next_status,
        attempt_count = job.attempt_count + verdict.is_crash::int,
        crash_count = job.crash_count + verdict.is_crash::int,
        lease_token = NULL,
        result = CASE WHEN verdict.next_status = 'done' THEN verdict.output ELSE job.result END,
        error_code = CASE WHEN verdict.next_status IN ('failed', 'cancelled') THEN verdict.code END,
        error_message = CASE verdict.next_status
            WHEN 'failed' THEN CASE verdict.code
                WHEN 'DELIVERY_GONE' THEN 'another pg-boss client failed this job while its worker was away'
                WHEN 'POISON_JOB' THEN 'its worker died ' || job.crash_count + 1 || ' times in a row; look at its memory use and its source before retrying'
                ELSE 'its worker vanished, last heard of at ' || verdict.last_heartbeat_at::timestamptz(0) || ' (gave up after ' || job.attempt_count + 1 || ' attempts)' END
            WHEN 'cancelled' THEN CASE WHEN verdict.delivery IS NULL THEN 'its pg-boss row was deleted while it ran' END
        END,
        finished_at = CASE WHEN verdict.next_status <> 'queued' THEN clock_timestamp() END,
        updated_at = clock_timestamp()
    FROM verdict
    -- The lease as it was seen, still stale: a beat that came in between wins.
    WHERE job.id = verdict.id AND job.status = 'processing' AND job.lease_token = verdict.lease_token
      AND job.last_heartbeat_at = verdict.last_heartbeat_at
    RETURNING job.id, job.queue, job.status, job.error_code, job.error_message, verdict.is_crash, verdict.delivery,
              verdict.retry_count, verdict.worker_id, verdict.last_heartbeat_at, verdict.attempt_count + 1 AS attempt
), told AS (
    INSERT INTO worker.job_events (job_id, attempt, worker_id, kind, data)
    SELECT id, attempt, worker_id,
        CASE WHEN status <> 'queued' THEN status WHEN is_crash THEN 'requeued:stale' ELSE 'requeued:handed-back' END,
        jsonb_strip_nulls(jsonb_build_object('code', error_code, 'message', error_message,
            'last_heartbeat_at', CASE WHEN is_crash THEN last_heartbeat_at END))
    FROM moved
    RETURNING job_id
)
SELECT id, queue, status, error_code, error_message, is_crash, delivery, retry_count, (SELECT count(*) FROM told) AS told FROM moved

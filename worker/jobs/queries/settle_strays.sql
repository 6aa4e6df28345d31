-- End waiting jobs whose delivery was deleted, or ended by another pg-boss client; $1 = look at ids after this one, $2 = how many; returns the last id looked at (null = there was none), and the statuses given.
WITH looked AS MATERIALIZED (
    SELECT id, queue, updated_at FROM worker.jobs
    WHERE status = 'queued' AND id > $1
    ORDER BY id
    LIMIT $2
), delivery AS MATERIALIZED (
    -- Locked before worker.jobs, as everywhere; one that is locked already is looked at next time.
    SELECT job.id, job.state::text AS state, job.output
    FROM {queue}.job AS job
    WHERE job.name = ANY (ARRAY(SELECT queue FROM looked)) AND job.id = ANY (ARRAY(SELECT id FROM looked)) AND job.state > 'active'
    FOR UPDATE SKIP LOCKED
), verdict AS (
    SELECT looked.id, looked.updated_at, delivery.state AS delivery, delivery.output,
        CASE delivery.state WHEN 'completed' THEN 'done' WHEN 'failed' THEN 'failed' ELSE 'cancelled' END AS next_status
    FROM looked LEFT JOIN delivery USING (id)
    WHERE delivery.id IS NOT NULL
       OR NOT EXISTS (SELECT FROM {queue}.job AS job WHERE job.name = looked.queue AND job.id = looked.id)
), moved AS (
    UPDATE worker.jobs AS job
    SET status = verdict.next_status,
        result = CASE WHEN verdict.next_status = 'done' THEN verdict.output ELSE job.result END,
        error_code = CASE WHEN verdict.delivery IS NULL OR verdict.next_status = 'failed' THEN 'DELIVERY_GONE' END,
        error_message = CASE WHEN verdict.delivery IS NULL THEN 'its pg-boss row was deleted while it waited'
            WHEN verdict.next_status = 'failed' THEN 'another pg-boss client failed this job while it waited' END,
        finished_at = clock_timestamp(),
        updated_at = clock_timestamp()
    FROM verdict
    -- The job as it was seen: one that was revived in between has a delivery again.
    WHERE job.id = verdict.id AND job.status = 'queued' AND job.updated_at = verdict.updated_at
    RETURNING job.id, job.status, job.error_code, job.error_message
), told AS (
    INSERT INTO worker.job_events (job_id, kind, data)
    SELECT id, status, jsonb_strip_nulls(jsonb_build_object('code', error_code, 'message', error_message)) FROM moved
    RETURNING kind
)
SELECT (SELECT id FROM looked ORDER BY id DESC LIMIT 1) AS last, ARRAY(SELECT kind FROM told) AS given

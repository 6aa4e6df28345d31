-- Change jobs that wait; $1 = queue, $2 = id or null, $3 = else singleton key, $4 = which of the key's jobs (newest, oldest, all), $5 = new values by column, $6 = new start_after as text or null, $7 = new retention in seconds or null, $8 = notify channel; returns the ids that were changed and whether the queue exists.
WITH target AS (
    SELECT notify FROM {queue}.queue WHERE name = $1
), changed AS (
    UPDATE {queue}.job AS job
    SET (data, priority, retry_limit, retry_delay, retry_backoff, retry_delay_max, expire_seconds, deletion_seconds,
         heartbeat_seconds, dead_letter, group_id, group_tier, start_after, keep_until) = (
        SELECT wanted.data, wanted.priority, wanted.retry_limit, wanted.retry_delay, wanted.retry_backoff,
               wanted.retry_delay_max, wanted.expire_seconds, wanted.deletion_seconds, wanted.heartbeat_seconds,
               wanted.dead_letter, wanted.group_id, wanted.group_tier, due.at,
               -- It stays as long after its new start as it would have after the old one.
               due.at + coalesce(make_interval(secs => $7::int), job.keep_until - job.start_after)
        -- starts from the row as it stands, so that what is not named stays
        FROM jsonb_populate_record(job, $5::jsonb) AS wanted
        CROSS JOIN LATERAL (
            SELECT CASE
                WHEN $6::text IS NULL THEN job.start_after
                WHEN right($6, 1) = 'Z' OR $6 ~ '^\d{4}-\d\d-\d\d' THEN $6::timestamptz
                ELSE now() + $6::interval
            END AS at
        ) AS due)
    WHERE job.name = $1
      -- Here too: a job that was claimed after the choice below must be left alone.
      AND job.state < 'active'
      AND job.id = ANY (CASE WHEN $2::uuid IS NOT NULL THEN ARRAY[$2::uuid] ELSE ARRAY(
        SELECT waiting.id FROM {queue}.job AS waiting
        WHERE waiting.name = $1 AND waiting.state < 'active' AND waiting.singleton_key = $3
        ORDER BY CASE WHEN $4::text = 'oldest' THEN waiting.created_on END, waiting.created_on DESC
        LIMIT CASE WHEN $4 = 'all' THEN NULL ELSE 1 END) END)
    RETURNING job.id, job.start_after
), rung AS (
    SELECT pg_notify($8, $1) FROM target
    WHERE target.notify AND EXISTS (SELECT FROM changed WHERE start_after <= now())
)
SELECT
    array(SELECT id FROM changed) AS ids,
    EXISTS (SELECT FROM target) AS is_known,
    (SELECT count(*) FROM rung) AS rung

-- Insert jobs as pg-boss does; $1 = queue, $2 = array of {id, data, …options}, $3 = notify channel; returns the ids that were accepted and whether the queue exists.
WITH target AS (
    SELECT * FROM {queue}.queue WHERE name = $1
), accepted AS (
    INSERT INTO {queue}.job (
        upsert_by_key, --@45
        id, name, data, priority, start_after, created_on, singleton_key, singleton_on, group_id, group_tier, keep_until,
        expire_seconds, deletion_seconds, retry_limit, retry_delay, retry_backoff, retry_delay_max,
        heartbeat_seconds, dead_letter, policy)
    SELECT
        wanted."upsertByKey", --@45
        coalesce(wanted.id, gen_random_uuid()), target.name, nullif(wanted.data, 'null'::jsonb), coalesce(wanted.priority, 0),
        due.at, now(), wanted."singletonKey",
        slot.at + make_interval(secs => CASE WHEN wanted."singletonNextSlot" THEN wanted."singletonSeconds" ELSE 0 END),
        wanted."groupId", wanted."groupTier",
        due.at + make_interval(secs => coalesce(wanted."retentionSeconds", target.retention_seconds)),
        coalesce(wanted."expireInSeconds", target.expire_seconds),
        coalesce(wanted."deleteAfterSeconds", target.deletion_seconds),
        coalesce(wanted."retryLimit", target.retry_limit),
        coalesce(wanted."retryDelay", target.retry_delay),
        coalesce(wanted."retryBackoff", target.retry_backoff),
        coalesce(wanted."retryDelayMax", target.retry_delay_max),
        coalesce(wanted."heartbeatSeconds", target.heartbeat_seconds),
        coalesce(wanted."deadLetter", target.dead_letter),
        target.policy
    FROM target
    CROSS JOIN jsonb_to_recordset($2::jsonb) AS wanted (
        id uuid, data jsonb, priority int, "startAfter" text, "singletonKey" text, "singletonSeconds" int,
        "singletonNextSlot" bool, "upsertByKey" bool, "groupId" text, "groupTier" text, "retentionSeconds" int,
        "expireInSeconds" int, "deleteAfterSeconds" int, "retryLimit" int, "retryDelay" int, "retryBackoff" bool,
        "retryDelayMax" int, "heartbeatSeconds" int, "deadLetter" text)
    CROSS JOIN LATERAL (
        SELECT 'epoch'::timestamp + make_interval(secs => wanted."singletonSeconds"
            * floor(extract(epoch FROM now()) / wanted."singletonSeconds")) AS at
    ) AS slot
    CROSS JOIN LATERAL (
        SELECT CASE
            -- Whole seconds, and one more where there is room: never before the slot begins, whatever the rounding.
            WHEN wanted."singletonNextSlot" THEN now() + make_interval(secs => (wanted."singletonSeconds" > 1)::int
                + greatest(1, wanted."singletonSeconds" - floor(extract(epoch FROM now() AT TIME ZONE 'UTC' - slot.at))))
            WHEN wanted."startAfter" IS NULL THEN now()
            WHEN right(wanted."startAfter", 1) = 'Z' OR wanted."startAfter" ~ '^\d{4}-\d\d-\d\d' THEN wanted."startAfter"::timestamptz
            ELSE now() + wanted."startAfter"::interval
        END AS at
    ) AS due
    ON CONFLICT DO NOTHING
    RETURNING id, start_after
), rung AS (
    -- once a statement: NOTIFY takes a lock that all commits share
    SELECT pg_notify($3, $1) FROM target
    WHERE target.notify AND EXISTS (SELECT FROM accepted WHERE start_after <= now())
)
SELECT
    array(SELECT id FROM accepted) AS ids,
    EXISTS (SELECT FROM target) AS is_known,
    (SELECT count(*) FROM rung) AS rung

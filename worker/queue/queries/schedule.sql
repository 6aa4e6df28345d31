-- Write a schedule, over an older one of the same key; $1 = queue, $2 = {key, kind, cron, timezone, data, options}; returns the queue's name, or nothing when there is no such queue.
INSERT INTO {queue}.schedule (
    kind, --@41
    name, key, cron, timezone, data, options)
SELECT
    wanted.kind, --@41
    queue.name, wanted.key, wanted.cron, wanted.timezone, nullif(wanted.data, 'null'::jsonb), wanted.options
FROM {queue}.queue AS queue
CROSS JOIN jsonb_to_record($2::jsonb) AS wanted (key text, kind text, cron text, timezone text, data jsonb, options jsonb)
WHERE queue.name = $1
ON CONFLICT (name, key) DO UPDATE SET
    kind = excluded.kind, --@41
    cron = excluded.cron,
    timezone = excluded.timezone,
    data = excluded.data,
    options = excluded.options,
    updated_on = now()
RETURNING name

-- Schedules in order of queue and key; $1 = queue (null = all), $2 = key (null = all); returns their rows.
SELECT
    kind, last_job_id, --@41
    name, key, cron, coalesce(timezone, 'UTC') AS timezone, data, coalesce(options, '{}'::jsonb) AS options,
    created_on, updated_on
FROM {queue}.schedule
WHERE ($1::text IS NULL OR name = $1) AND ($2::text IS NULL OR key = $2)
ORDER BY name, key

-- Take the turn to run the schedules, from Node as well, unless somebody had it in the last 30 seconds; returns now and the time of the last pass, or nothing.
WITH last AS (
    SELECT version, cron_on FROM {queue}.version FOR UPDATE
)
UPDATE {queue}.version AS claim SET cron_on = now()
FROM last
WHERE claim.version = last.version AND (last.cron_on IS NULL OR last.cron_on <= now() - interval '30 seconds')
RETURNING now() AS now, last.cron_on AS last_pass

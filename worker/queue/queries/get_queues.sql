-- Settings of queues; $1 = names (null = all); returns a row for each that exists, by name.
SELECT name, policy, retry_limit, retry_delay, retry_backoff, retry_delay_max, expire_seconds, retention_seconds,
       deletion_seconds, warning_queued, dead_letter, partition, table_name, heartbeat_seconds, notify, created_on, updated_on
FROM {queue}.queue
WHERE $1::text[] IS NULL OR name = ANY ($1)
ORDER BY name

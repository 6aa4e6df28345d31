-- One queue's settings; $1 = name; returns a row or nothing.
SELECT name, policy, retry_limit, retry_delay, retry_backoff, retry_delay_max, expire_seconds, retention_seconds,
       deletion_seconds, dead_letter, partition, table_name, heartbeat_seconds, notify, created_on, updated_on
FROM {queue}.queue WHERE name = $1

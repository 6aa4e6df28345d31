-- Change settings of a queue; $1 = name, $2 = new values by column; returns the queue as it then stands, or nothing.
UPDATE {queue}.queue AS queue
SET (retry_limit, retry_delay, retry_backoff, retry_delay_max, expire_seconds, retention_seconds, deletion_seconds,
     warning_queued, heartbeat_seconds, dead_letter, notify, updated_on) = (
    SELECT wanted.retry_limit, wanted.retry_delay, wanted.retry_backoff, wanted.retry_delay_max, wanted.expire_seconds,
           wanted.retention_seconds, wanted.deletion_seconds, wanted.warning_queued, wanted.heartbeat_seconds,
           wanted.dead_letter, wanted.notify, now()
    -- starts from the row as it stands, so that what is not named stays
    FROM jsonb_populate_record(queue, $2::jsonb) AS wanted)
WHERE queue.name = $1
RETURNING name, policy, retry_limit, retry_delay, retry_backoff, retry_delay_max, expire_seconds, retention_seconds,
          deletion_seconds, warning_queued, dead_letter, partition, table_name, heartbeat_seconds, notify, created_on, updated_on

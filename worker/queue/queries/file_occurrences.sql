-- File due occurrences, each slot of a key once for all processes; $1 = the forwarding queue, $2 = array of {data, singletonKey, slot}; returns the ids of those that were new.
INSERT INTO {queue}.job (
    name, data, start_after, created_on, singleton_key, singleton_on, keep_until, expire_seconds, deletion_seconds,
    retry_limit, retry_delay, retry_backoff, retry_delay_max, heartbeat_seconds, dead_letter, policy)
SELECT
    queue.name, filed.data, now(), now(), filed."singletonKey", filed.slot,
    now() + make_interval(secs => queue.retention_seconds), queue.expire_seconds, queue.deletion_seconds,
    queue.retry_limit, queue.retry_delay, queue.retry_backoff, queue.retry_delay_max, queue.heartbeat_seconds,
    queue.dead_letter, queue.policy
FROM {queue}.queue AS queue
CROSS JOIN jsonb_to_recordset($2::jsonb) AS filed (data jsonb, "singletonKey" text, slot timestamp)
WHERE queue.name = $1
ON CONFLICT DO NOTHING
RETURNING id

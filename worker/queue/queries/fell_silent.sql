-- Lock active jobs that have missed their heartbeat; $1 = queues, $2 = how many; returns queue, id and retry count.
SELECT name, id, retry_count FROM {queue}.job
WHERE name = ANY ($1::text[]) AND state = 'active' AND heartbeat_seconds IS NOT NULL
  AND heartbeat_on + make_interval(secs => heartbeat_seconds) < now()
LIMIT $2
FOR UPDATE SKIP LOCKED

-- Lock active jobs that have run out of time; $1 = queues, $2 = how many; returns queue, id and retry count.
SELECT name, id, retry_count FROM {queue}.job
WHERE name = ANY ($1::text[]) AND state = 'active' AND started_on + make_interval(secs => expire_seconds) < now()
LIMIT $2
FOR UPDATE SKIP LOCKED

-- Count a queue's jobs by what they wait for; $1 = queue; returns one row, or nothing when there is no such queue.
SELECT count(*) FILTER (WHERE state < 'active') AS queued,
       count(*) FILTER (WHERE state < 'active' AND NOT blocked AND start_after > now()) AS deferred,
       count(*) FILTER (WHERE state < 'active' AND blocked) AS blocked,
       count(*) FILTER (WHERE state < 'active' AND NOT blocked AND start_after <= now()) AS ready,
       count(*) FILTER (WHERE state = 'active') AS active,
       count(*) FILTER (WHERE state = 'completed') AS completed,
       count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
       count(*) FILTER (WHERE state = 'failed') AS failed,
       count(*) AS total,
       extract(epoch FROM now() - min(start_after) FILTER (WHERE state < 'active' AND NOT blocked AND start_after <= now()))::float8
           AS ready_oldest_seconds
FROM {queue}.job
WHERE name = $1
HAVING EXISTS (SELECT FROM {queue}.queue WHERE queue.name = $1)

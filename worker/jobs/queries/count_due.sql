-- Is there anything left to do, now or soon to be retried? $1 = queues; returns how many jobs wait (due or deferred) and how many run.
SELECT count(*) FILTER (WHERE state < 'active' AND NOT blocked AND start_after <= now()) AS due,
       count(*) FILTER (WHERE state = 'active') AS active
FROM {queue}.job WHERE name = ANY ($1::text[]) AND state <= 'active'

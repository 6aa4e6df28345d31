-- Claim due jobs; $1 = queue, $2 = how many; returns the deliveries, in no particular order.
UPDATE {queue}.job AS job
SET state = 'active',
    started_on = now(),
    heartbeat_on = now(),
    retry_count = job.retry_count + (job.started_on IS NOT NULL)::int
WHERE job.name = $1
  -- A one-time array: a join may be planned over the whole queue when statistics are stale.
  AND job.id = ANY (ARRAY(
    SELECT due.id FROM {queue}.job AS due
    WHERE due.name = $1
      AND due.state < 'active'
      AND NOT due.blocked
      AND due.start_after <= now()
      -- singleton and stately run one job of a key at a time
      AND (due.policy IS NULL OR due.policy NOT IN ('singleton', 'stately') OR (
            SELECT true FROM {queue}.job AS running
            WHERE running.name = due.name AND running.state = 'active' AND running.policy = due.policy
              AND coalesce(running.singleton_key, '') = coalesce(due.singleton_key, '')
            LIMIT 1) IS NULL)
    ORDER BY due.priority DESC, due.created_on
    LIMIT $2
    FOR UPDATE SKIP LOCKED))
RETURNING job.id, job.data, job.priority, job.created_on, job.retry_count, job.retry_limit,
          job.expire_seconds, job.heartbeat_seconds, job.group_id, job.group_tier

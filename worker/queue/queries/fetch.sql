-- Claim due jobs as their queue's policy allows; $1 = queue, $2 = how many, $3 = also those that are not due yet?, $4 and $5 = lowest and highest priority (null = any), $6 = how many jobs of one group may run (null = any number), $7 = the same by group tier (object), $8 = groups to leave alone; returns the deliveries, in no particular order.
UPDATE {queue}.job AS job
SET state = 'active',
    started_on = now(),
    heartbeat_on = now(),
    retry_count = job.retry_count + (job.started_on IS NOT NULL)::int
WHERE job.name = $1
  -- A one-time array: a join may be planned over the whole queue when statistics are stale.
  AND job.id = ANY (ARRAY(
    SELECT picked.id FROM (
        SELECT due.id, due.policy, due.group_id,
               row_number() OVER (PARTITION BY due.policy, due.key ORDER BY due.priority DESC, due.created_on, due.id) AS place_in_key,
               row_number() OVER (PARTITION BY due.group_id ORDER BY due.priority DESC, due.created_on, due.id) AS place_in_group,
               CASE WHEN due.group_id IS NOT NULL AND $6 IS NOT NULL THEN coalesce(($7::jsonb ->> due.group_tier)::int, $6) - (
                    SELECT count(*) FROM {queue}.job AS running
                    WHERE running.name = $1 AND running.state = 'active' AND running.group_id = due.group_id)
               END AS room_in_group
        FROM (
            SELECT due.id, due.policy, coalesce(due.singleton_key, '') AS key, due.group_id, due.group_tier, due.priority, due.created_on
            FROM {queue}.job AS due
            WHERE due.name = $1
              AND due.state < 'active'
              AND NOT due.blocked
              AND due.start_after <= CASE WHEN $3::bool THEN 'infinity' ELSE now() END
              AND due.priority BETWEEN coalesce($4::int, -2147483648) AND coalesce($5::int, 2147483647)
              -- Scalar subqueries, so that the plan stays a walk along the fetch index; each policy by its own name,
              -- so that they find that policy's index. singleton and stately run one job of a key at a time:
              AND (due.policy IS DISTINCT FROM 'singleton' OR (
                    SELECT true FROM {queue}.job AS running
                    WHERE running.name = $1 AND running.state = 'active' AND running.policy = 'singleton'
                      AND coalesce(running.singleton_key, '') = coalesce(due.singleton_key, '')
                    LIMIT 1) IS NULL)
              AND (due.policy IS DISTINCT FROM 'stately' OR (
                    SELECT true FROM {queue}.job AS running
                    WHERE running.name = $1 AND running.state = 'active' AND running.policy = 'stately'
                      AND coalesce(running.singleton_key, '') = coalesce(due.singleton_key, '')
                    LIMIT 1) IS NULL)
              -- key_strict_fifo: the head of its key, and none of the key runs, waits for its retry or has failed
              AND (due.policy IS DISTINCT FROM 'key_strict_fifo' OR (
                    SELECT true FROM {queue}.job AS other
                    WHERE other.name = $1 AND other.state IN ('active', 'retry', 'failed') AND other.policy = 'key_strict_fifo'
                      AND other.singleton_key = due.singleton_key AND other.id <> due.id
                    LIMIT 1) IS NULL
                AND due.id = (
                    SELECT head.id FROM {queue}.job AS head
                    WHERE head.name = $1 AND head.state < 'active' AND NOT head.blocked AND head.policy = 'key_strict_fifo'
                      AND head.singleton_key = due.singleton_key
                      AND head.start_after <= CASE WHEN $3::bool THEN 'infinity' ELSE now() END
                    ORDER BY head.state DESC, head.created_on, head.id
                    LIMIT 1))
              AND (due.group_id IS NULL OR due.group_id <> ALL ($8::text[]))
              AND (due.group_id IS NULL OR $6::int IS NULL OR (
                    SELECT count(*) FROM {queue}.job AS running
                    WHERE running.name = $1 AND running.state = 'active' AND running.group_id = due.group_id
                  ) < coalesce(($7::jsonb ->> due.group_tier)::int, $6))
            ORDER BY due.priority DESC, due.created_on
            LIMIT $2
            FOR UPDATE SKIP LOCKED
        ) AS due
    ) AS picked
    WHERE (picked.policy IS NULL OR picked.policy NOT IN ('singleton', 'stately') OR picked.place_in_key = 1)
      AND (picked.room_in_group IS NULL OR picked.place_in_group <= picked.room_in_group)))
RETURNING job.id, job.data, job.priority, job.created_on, job.retry_count, job.retry_limit,
          job.expire_seconds, job.heartbeat_seconds, job.group_id, job.group_tier

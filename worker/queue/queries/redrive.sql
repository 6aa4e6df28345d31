-- Send dead letters back to where they came from; $1 = dead letter queue, $2 = another destination or null, $3 = only from this queue or null, $4 = only with this in their data or null, $5 = only older than or null, $6 = only these ids or null, $7 = how many; returns the ids of the new jobs, the ids that the destination's policy refused, and those of the two queues that do not exist.
WITH chosen AS MATERIALIZED (
    SELECT dead.*, home.name AS destination, gen_random_uuid() AS new_id
    FROM {queue}.job AS dead
    JOIN {queue}.queue AS home ON home.name = coalesce($2, dead.source_name)
    WHERE dead.name = $1
      AND dead.state < 'active'
      AND ($3::text IS NULL OR dead.source_name = $3)
      AND ($4::jsonb IS NULL OR dead.data @> $4)
      AND ($5::timestamptz IS NULL OR dead.created_on < $5)
      AND ($6::uuid[] IS NULL OR dead.id = ANY ($6))
      -- behind one that runs or has failed, a job of a strict key must stay
      AND (dead.policy IS DISTINCT FROM 'key_strict_fifo' OR NOT EXISTS (
            SELECT FROM {queue}.job AS ahead
            WHERE ahead.name = $1 AND ahead.policy = 'key_strict_fifo' AND ahead.singleton_key = dead.singleton_key
              AND ahead.state IN ('active', 'retry', 'failed')))
    ORDER BY dead.created_on
    LIMIT $7
    FOR UPDATE OF dead SKIP LOCKED
), sent AS (
    INSERT INTO {queue}.job (
        source_root_id, --@43
        trace_context, --@44
        id, name, data, priority, singleton_key, group_id, group_tier, start_after, created_on, keep_until, retry_limit,
        retry_delay, retry_backoff, retry_delay_max, expire_seconds, deletion_seconds, heartbeat_seconds, dead_letter, policy)
    SELECT
        coalesce(chosen.source_root_id, chosen.source_id), --@43
        chosen.trace_context, --@44
        chosen.new_id, home.name, chosen.data, chosen.priority, chosen.singleton_key, chosen.group_id, chosen.group_tier,
        now(), now(), now() + make_interval(secs => home.retention_seconds), home.retry_limit, home.retry_delay,
        home.retry_backoff, home.retry_delay_max, home.expire_seconds, home.deletion_seconds, home.heartbeat_seconds,
        home.dead_letter, home.policy
    FROM chosen JOIN {queue}.queue AS home ON home.name = chosen.destination
    -- A strict key cannot be made up: without one the policy refuses the job, like any other conflict.
    WHERE home.policy <> 'key_strict_fifo' OR chosen.singleton_key IS NOT NULL
    -- of two that collide the older one is sent
    ORDER BY chosen.created_on
    ON CONFLICT DO NOTHING
    RETURNING id
), moved AS (
    DELETE FROM {queue}.job AS job
    USING chosen
    WHERE job.name = $1 AND job.id = chosen.id AND chosen.new_id IN (SELECT id FROM sent)
    RETURNING chosen.new_id
), refused AS (
    -- Failed, not left waiting: the oldest go first, and would fill every later call.
    UPDATE {queue}.job AS job
    SET state = 'failed',
        completed_on = now(),
        source_output = coalesce(job.source_output, job.output), --@43
        output = jsonb_build_object(
            'message', 'not redriven: queue ' || home.name || ' has no room for this job under its ' || home.policy || ' policy',
            'reason', 'redrive_conflict',
            'destination', home.name,
            'policy', home.policy,
            'singletonKey', job.singleton_key)
    FROM chosen JOIN {queue}.queue AS home ON home.name = chosen.destination
    WHERE job.name = $1
      AND job.id = chosen.id
      AND chosen.new_id NOT IN (SELECT id FROM sent)
      -- one failed job of a strict key is all that its index holds; the others wait behind it
      AND (job.policy IS DISTINCT FROM 'key_strict_fifo' OR job.id = (
            SELECT first.id FROM chosen AS first
            WHERE first.singleton_key = job.singleton_key AND first.new_id NOT IN (SELECT id FROM sent)
            ORDER BY first.created_on, first.id
            LIMIT 1))
    RETURNING job.id
)
SELECT
    array(SELECT new_id FROM moved) AS moved,
    array(SELECT id FROM refused) AS refused,
    array(SELECT named FROM unnest(ARRAY[$1, $2]) AS named EXCEPT SELECT name FROM {queue}.queue EXCEPT SELECT NULL) AS missing

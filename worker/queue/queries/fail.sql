-- Fail jobs: back to retry after their delay, or for good with a copy in the dead-letter queue; $1 = queue, $2 = ids, $3 = retry counts (the fence; null = unfenced), $4 = outputs, $5 = for good? (null = when retries are used up); returns id and new state.
WITH failed AS (
    UPDATE {queue}.job AS job
    SET state = CASE WHEN coalesce(asked.is_final, job.retry_count >= job.retry_limit)
                     THEN 'failed' ELSE 'retry' END::{queue}.job_state,
        completed_on = CASE WHEN coalesce(asked.is_final, job.retry_count >= job.retry_limit) THEN now() END,
        start_after = CASE
            WHEN coalesce(asked.is_final, job.retry_count >= job.retry_limit) THEN job.start_after
            WHEN NOT job.retry_backoff THEN now() + make_interval(secs => job.retry_delay)
            ELSE now() + make_interval(secs => least(
                job.retry_delay_max,
                greatest(job.retry_delay, 1) * power(2, least(15, job.retry_count)) * (1 + random())))
        END,
        upsert_by_key = NULL, --@45
        heartbeat_on = NULL,
        output = asked.output
    FROM unnest($2::uuid[], $3::int[], $4::jsonb[], $5::bool[]) AS asked (id, retry_count, output, is_final)
    WHERE job.name = $1
      AND job.id = asked.id
      AND CASE WHEN asked.retry_count IS NULL THEN job.state < 'completed'
               ELSE job.state = 'active' AND job.retry_count = asked.retry_count END
    RETURNING job.*
), buried AS (
    INSERT INTO {queue}.job
    SELECT copy.*
    FROM failed
    JOIN {queue}.queue AS grave ON grave.name = failed.dead_letter
    -- By column name, so that columns which an older schema lacks fall away by themselves.
    CROSS JOIN LATERAL jsonb_populate_record(NULL::{queue}.job, jsonb_build_object(
        'id', gen_random_uuid(),
        'name', grave.name,
        'priority', failed.priority,
        'data', failed.data,
        'state', 'created',
        'retry_limit', grave.retry_limit,
        'retry_count', 0,
        'retry_delay', grave.retry_delay,
        'retry_backoff', grave.retry_backoff,
        'expire_seconds', grave.expire_seconds,
        'deletion_seconds', grave.deletion_seconds,
        'heartbeat_seconds', grave.heartbeat_seconds,
        'singleton_key', failed.singleton_key,
        'group_id', failed.group_id,
        'group_tier', failed.group_tier,
        'start_after', now(),
        'created_on', now(),
        'keep_until', now() + make_interval(secs => grave.retention_seconds),
        'blocked', false,
        'blocking', false,
        'pending_dependencies', 0,
        'output', failed.output,
        'source_name', failed.name,
        'source_id', failed.id,
        'source_created_on', failed.created_on,
        'source_retry_count', failed.retry_count)
        || jsonb_build_object('output', NULL, 'source_output', failed.output, 'source_root_id', coalesce(failed.source_root_id, failed.id)) --@43
        || jsonb_build_object('trace_context', failed.trace_context) --@44
    ) AS copy
    WHERE failed.state = 'failed'
    ON CONFLICT DO NOTHING
    RETURNING id
)
SELECT failed.id, failed.state::text AS state, (SELECT count(*) FROM buried) AS buried FROM failed

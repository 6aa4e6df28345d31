-- Read jobs, oldest first; $1 = queue, $2 = ids or null, $3 = singleton key or null, $4 = contained in their data or null, $5 = only those that wait?, $6 and $7 = created_on and id of the last one seen or null, $8 = how many; returns whole jobs.
SELECT job.id, job.name, job.state::text AS state, job.data, job.priority, job.retry_limit, job.retry_count, job.retry_delay,
       job.retry_backoff, job.retry_delay_max, job.expire_seconds, job.deletion_seconds, job.singleton_key, job.singleton_on,
       job.group_id, job.group_tier, job.start_after, job.created_on, job.started_on, job.completed_on, job.keep_until,
       job.output, job.dead_letter, job.policy, job.heartbeat_on, job.heartbeat_seconds, job.blocked, job.blocking,
       job.pending_dependencies,
       job.source_output, job.source_root_id, --@43
       job.source_name, job.source_id, job.source_created_on, job.source_retry_count
FROM {queue}.job AS job
WHERE job.name = $1
  AND ($2::uuid[] IS NULL OR job.id = ANY ($2))
  AND ($3::text IS NULL OR job.singleton_key = $3)
  AND ($4::jsonb IS NULL OR job.data @> $4)
  AND (NOT $5::bool OR job.state < 'active')
  AND ($6::timestamptz IS NULL OR (job.created_on, job.id) > ($6, $7::uuid))
ORDER BY job.created_on, job.id
LIMIT $8

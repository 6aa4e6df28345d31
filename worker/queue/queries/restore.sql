-- Undo claims as if they had never been made; $1 = queue, $2 = ids, $3 = retry counts (the fence; null = unfenced), $4 = the state to wait in (created or retry), $5 = the channel to ring on, $6 = seconds to wait before they are due; returns the ids that are waiting again.
WITH restored AS (
    UPDATE {queue}.job AS job
    SET state = $4::text::{queue}.job_state,
        started_on = NULL,
        upsert_by_key = NULL, --@45
        heartbeat_on = NULL,
        start_after = CASE WHEN $6::float8 > 0 THEN now() + make_interval(secs => $6::float8) ELSE job.start_after END,
        -- Not forgotten: whoever put it aside will come back.
        keep_until = CASE WHEN $6::float8 > 0 THEN greatest(job.keep_until, now() + make_interval(secs => $6::float8) + interval '14 days')
                          ELSE job.keep_until END
    FROM unnest($2::uuid[], $3::int[]) AS asked (id, retry_count)
    WHERE job.name = $1
      AND job.id = asked.id
      AND job.state = 'active'
      AND (asked.retry_count IS NULL OR job.retry_count = asked.retry_count)
    RETURNING job.id
), rung AS (
    -- They are due at once, and whoever claimed them is leaving.
    SELECT pg_notify($5, $1) FROM {queue}.queue AS target
    WHERE target.name = $1 AND target.notify AND $6::float8 <= 0 AND EXISTS (SELECT FROM restored)
)
SELECT id, (SELECT count(*) FROM rung) AS rung FROM restored

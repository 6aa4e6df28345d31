-- Renew leases, all of a worker's in one statement; $1 = queues, $2 = ids, $3 = lease tokens, $4 = retry counts; returns for each job whether it is still held, and whether somebody wants it cancelled.
WITH held AS (
    SELECT * FROM unnest($1::text[], $2::uuid[], $3::bigint[], $4::int[]) AS held (queue, id, token, retry_count)
), touched AS (
    UPDATE {queue}.job AS job
    SET heartbeat_on = now()
    FROM held
    -- Cancelled ones too: an update that waited for the cancel's lock sees what it did, a mere look would not.
    WHERE job.name = held.queue AND job.id = held.id AND job.state IN ('active', 'cancelled') AND job.retry_count = held.retry_count
    RETURNING job.id, job.state
), renewed AS (
    UPDATE worker.jobs AS mine
    SET last_heartbeat_at = clock_timestamp()
    FROM held JOIN touched USING (id)
    WHERE touched.state = 'active' AND mine.id = held.id AND mine.lease_token = held.token AND mine.status = 'processing'
      -- A beat under way while the lease was given back must not bring it to life again.
      AND mine.last_heartbeat_at > '-infinity'
    RETURNING mine.id, mine.cancel_requested_at, mine.run_id
)
SELECT held.id,
       renewed.id IS NOT NULL AS is_held,
       renewed.cancel_requested_at IS NOT NULL OR coalesce(touched.state = 'cancelled', false)
           -- A page has nothing to do any more when the job that it is a part of is over.
           OR EXISTS (SELECT FROM worker.jobs AS whole WHERE whole.id = renewed.run_id AND whole.status IN ('failed', 'cancelled'))
           AS is_cancelled
FROM held
LEFT JOIN touched USING (id)
LEFT JOIN renewed USING (id)

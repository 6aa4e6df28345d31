-- Workers with their queues and the jobs they hold, those without a row that hold jobs as well; $1 = stopped ones too?; returns all there is to know of each, the living first.
WITH held AS (
    SELECT worker_id, jsonb_agg(jsonb_build_object(
            'id', id, 'queue', queue, 'stage', stage, 'progress', progress, 'attempt', attempt_count + 1, 'spec', spec,
            'running_seconds', extract(epoch FROM clock_timestamp() - processing_started_at)) ORDER BY processing_started_at, id) AS jobs
    FROM worker.jobs
    -- one that was given back is on its way to somebody else
    WHERE status = 'processing' AND last_heartbeat_at > '-infinity'
    GROUP BY worker_id
), counted AS (
    SELECT worker_id, jsonb_agg(jsonb_build_object('queue', queue, 'processed', processed, 'last_job', last_job) ORDER BY queue) AS queues
    FROM worker.worker_progress
    GROUP BY worker_id
)
SELECT coalesce(process.id, held.worker_id) AS id, process.version, process.host, process.pid, process.slots,
       extract(epoch FROM process.expected_interval)::float8 AS expected_seconds,
       extract(epoch FROM clock_timestamp() - process.last_heartbeat)::float8 AS silent_seconds,
       process.started_at, process.last_heartbeat, process.stopped_at,
       coalesce(process.successes, 0) AS successes, coalesce(process.errors, 0) AS errors, process.last_error, process.last_error_at,
       coalesce(counted.queues, '[]') AS queues, coalesce(held.jobs, '[]') AS jobs
FROM worker.worker_process AS process
FULL JOIN held ON held.worker_id = process.id
LEFT JOIN counted ON counted.worker_id = coalesce(process.id, held.worker_id)
WHERE $1 OR process.stopped_at IS NULL
ORDER BY process.stopped_at NULLS FIRST, process.started_at, 1

-- Forget workers that were not heard of for long, and, once they are, what they got done; $1 = seconds; returns how many workers.
WITH forgotten AS (
    DELETE FROM worker.worker_process
    -- One that is not even dead stays, however short the time is set.
    WHERE last_heartbeat < clock_timestamp() - greatest(make_interval(secs => $1), 2 * expected_interval)
    RETURNING id
), progress AS (
    DELETE FROM worker.worker_progress AS progress
    WHERE updated_at < clock_timestamp() - make_interval(secs => $1)
      AND NOT EXISTS (SELECT FROM worker.worker_process AS process WHERE process.id = progress.worker_id)
)
SELECT count(*) FROM forgotten

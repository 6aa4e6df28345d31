-- Tell a job of a finished page, after that was noted, and wake it by the last; $1 = run, $2 = partition, $3 = page; returns finished and all pages.
WITH counted AS (
    SELECT sum(next_offset - first_offset) AS finished, sum(past_offset - first_offset) AS pages, bool_and(completed) AS is_complete
    FROM worker.partition_progress WHERE run_id = $1 AND dropped_at IS NULL
), told AS (
    INSERT INTO worker.job_events (job_id, kind, data)
    SELECT $1, 'page:finished', jsonb_build_object('partition', $2::int, 'offset', $3::int, 'finished', finished, 'pages', pages)
    FROM counted
), moved AS (
    -- Never waited for: somebody who holds the job's row may be waiting for this page.
    UPDATE worker.jobs SET progress = (SELECT 0.95 * finished / pages FROM counted), updated_at = clock_timestamp()
    WHERE id = ANY (ARRAY(SELECT id FROM worker.jobs WHERE id = $1 AND status = 'queued' FOR NO KEY UPDATE SKIP LOCKED))
)
SELECT finished, pages, CASE WHEN is_complete THEN worker.wake_run($1) IS NULL END AS woken FROM counted

-- Let a run's pages count no more; $1 = run; returns how many partitions there were.
WITH dropped AS (
    UPDATE worker.partition_progress SET dropped_at = clock_timestamp()
    WHERE run_id = $1 AND dropped_at IS NULL
    RETURNING partition_id
)
SELECT count(*) FROM dropped

-- Write down a job's plan, and learn where the ids of its new partitions begin; $1 = run, $2 = plan; returns the first free id.
WITH begun AS (
    INSERT INTO worker.runs AS run (id, plan) VALUES ($1, $2)
    ON CONFLICT (id) DO UPDATE SET plan = excluded.plan, cleaned_at = NULL
    RETURNING run.id
)
SELECT coalesce((SELECT max(partition_id) FROM worker.partition_progress WHERE run_id = $1), -1) + 1 FROM begun

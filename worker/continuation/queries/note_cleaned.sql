-- What the pages of a run stored is gone; of a job that may be revived they count no more; $1 = run; returns nothing.
WITH cleaned AS (
    UPDATE worker.runs SET cleaned_at = clock_timestamp() WHERE id = $1
), forgotten AS (
    -- what was said is in the transcript
    UPDATE worker.pages SET facts = facts - 'speech' WHERE run_id = $1 AND facts ? 'speech'
)
UPDATE worker.partition_progress SET dropped_at = clock_timestamp()
WHERE run_id = $1 AND dropped_at IS NULL AND EXISTS (SELECT FROM worker.jobs WHERE id = $1 AND status <> 'done')

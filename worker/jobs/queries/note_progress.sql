-- Write how far running jobs are; $1 = ids, $2 = lease tokens, $3 = progress from 0 to 1; returns nothing.
WITH free AS (
    -- A row that a beat or an ending holds is passed over: waiting for several in another order could deadlock.
    SELECT mine.id, told.progress
    FROM worker.jobs AS mine
    JOIN unnest($1::uuid[], $2::bigint[], $3::real[]) AS told (id, token, progress) ON told.id = mine.id
    WHERE mine.lease_token = told.token AND mine.status = 'processing'
    FOR NO KEY UPDATE OF mine SKIP LOCKED
)
UPDATE worker.jobs AS mine
SET progress = free.progress, updated_at = clock_timestamp()
FROM free
WHERE mine.id = free.id

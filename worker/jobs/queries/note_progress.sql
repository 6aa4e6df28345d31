-- Write how far running jobs are; $1 = ids, $2 = lease tokens, $3 = progress from 0 to 1; returns nothing.
UPDATE worker.jobs AS mine
SET progress = told.progress, updated_at = clock_timestamp()
FROM unnest($1::uuid[], $2::bigint[], $3::real[]) AS told (id, token, progress)
WHERE mine.id = told.id AND mine.lease_token = told.token AND mine.status = 'processing'

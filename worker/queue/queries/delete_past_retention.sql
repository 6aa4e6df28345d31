-- Delete what is past its retention among the next jobs by id; $1 = queue, $2 = the id to go on after, $3 = how many to look at; returns how many were deleted, and the last id if there may be more.
WITH looked_at AS (
    SELECT id FROM {queue}.job WHERE name = $1 AND id > $2 ORDER BY id LIMIT $3
), gone AS (
    DELETE FROM {queue}.job AS job
    USING looked_at
    WHERE job.name = $1 AND job.id = looked_at.id
      AND ((job.deletion_seconds > 0 AND job.completed_on + make_interval(secs => job.deletion_seconds) < now())
           OR (job.state < 'active' AND job.keep_until < now()))
    RETURNING 1
)
SELECT (SELECT count(*) FROM gone) AS deleted,
       (SELECT id FROM looked_at ORDER BY id OFFSET $3 - 1 LIMIT 1) AS last

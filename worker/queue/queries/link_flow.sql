-- Make jobs wait for others; $1, $2 = queues and ids of the children, $3, $4 = of the parents, pair by pair; returns nothing.
WITH link AS (
    SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::uuid[]) AS link (child_name, child_id, parent_name, parent_id)
), kept AS (
    INSERT INTO {queue}.job_dependency (child_name, child_id, parent_name, parent_id)
    SELECT child_name, child_id, parent_name, parent_id FROM link
)
UPDATE {queue}.job AS job
SET blocked = part.parents > 0, pending_dependencies = part.parents, blocking = part.is_parent
FROM (
    -- A job in the middle is both child and parent, and may be updated only once.
    SELECT name, id, sum(parents)::int AS parents, bool_or(is_parent) AS is_parent
    FROM (
        SELECT child_name AS name, child_id AS id, 1 AS parents, false AS is_parent FROM link
        UNION ALL
        SELECT parent_name, parent_id, 0, true FROM link
    ) AS ends
    GROUP BY name, id
) AS part
WHERE job.name = part.name AND job.id = part.id

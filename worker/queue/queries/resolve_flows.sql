-- Release the children of completed parents; $1 = how many parents; returns how many parents were resolved and children unblocked.
WITH done AS (
    SELECT name, id FROM {queue}.job
    WHERE blocking AND state = 'completed'
    ORDER BY name, id
    LIMIT $1
    FOR UPDATE SKIP LOCKED
), resolved AS (
    UPDATE {queue}.job AS parent SET blocking = false
    FROM done WHERE parent.name = done.name AND parent.id = done.id
    RETURNING 1
), released AS (
    UPDATE {queue}.job AS child
    SET pending_dependencies = greatest(0, child.pending_dependencies - link.parents),
        blocked = child.pending_dependencies > link.parents,
        start_after = CASE WHEN child.pending_dependencies > link.parents THEN child.start_after
                           ELSE greatest(child.start_after, now()) END
    FROM (
        SELECT dependency.child_name, dependency.child_id, count(*)::int AS parents
        FROM {queue}.job_dependency AS dependency
        JOIN done ON dependency.parent_name = done.name AND dependency.parent_id = done.id
        GROUP BY dependency.child_name, dependency.child_id
    ) AS link
    WHERE child.name = link.child_name AND child.id = link.child_id AND child.blocked
    RETURNING child.blocked
)
SELECT (SELECT count(*) FROM resolved) AS resolved,
       (SELECT count(*) FROM released WHERE NOT blocked) AS unblocked

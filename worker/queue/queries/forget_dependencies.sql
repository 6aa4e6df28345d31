-- Forget dependencies of which one side has been deleted; $1 = the queues that were looked at; returns nothing.
DELETE FROM {queue}.job_dependency AS dependency
WHERE (dependency.child_name = ANY ($1::text[])
       AND NOT EXISTS (SELECT FROM {queue}.job WHERE name = dependency.child_name AND id = dependency.child_id))
   OR (dependency.parent_name = ANY ($1::text[])
       AND NOT EXISTS (SELECT FROM {queue}.job WHERE name = dependency.parent_name AND id = dependency.parent_id))

-- How much waits and runs in some queues; $1 = queues, $2 = where counting stops; returns for each queue its due jobs, its jobs at work, and for how many seconds the oldest of the due ones has been due.
SELECT asked.name AS queue,
       least($2, created.jobs + retried.jobs) AS pending,
       active.jobs AS active,
       coalesce(extract(epoch FROM now() - least(created.since, retried.since)), 0)::float8 AS backlog_seconds
FROM unnest($1::text[]) AS asked (name)
-- One subquery for each state, written out: only so do they fit the partial index (name, state, blocked, start_after).
-- It holds what is due in the order of becoming due, so the oldest is its first entry, whatever the queue's length. Older
-- installs lack it: there the fetch index is walked, and the oldest is that of the jobs that were counted.
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs, min(due.start_after) AS since
    FROM (SELECT job.start_after FROM {queue}.job AS job
          WHERE job.name = asked.name AND job.state = 'created' AND NOT job.blocked AND job.start_after <= now()
          ORDER BY job.start_after --@46
          LIMIT $2) AS due) AS created
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs, min(due.start_after) AS since
    FROM (SELECT job.start_after FROM {queue}.job AS job
          WHERE job.name = asked.name AND job.state = 'retry' AND NOT job.blocked AND job.start_after <= now()
          ORDER BY job.start_after --@46
          LIMIT $2) AS due) AS retried
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
    FROM (SELECT FROM {queue}.job AS job WHERE job.name = asked.name AND job.state = 'active' LIMIT $2) AS held) AS active

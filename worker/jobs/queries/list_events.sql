-- A job's timeline; $1 = id, $2 = only after this event id; returns events in order.
SELECT id, at, attempt, worker_id, kind, data FROM worker.job_events WHERE job_id = $1 AND id > $2 ORDER BY id

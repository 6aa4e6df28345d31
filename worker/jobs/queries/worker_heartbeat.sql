-- Be heard of, and count what ended; $1 = worker, $2 = its successes so far, $3 = its errors so far, $4 = the last of these; returns true, or nothing when its row is gone.
WITH known AS MATERIALIZED (
    -- Locked, so that the difference is right whatever else arrives: a write that is repeated adds nothing, and neither
    -- does one that a broken network delivers late.
    SELECT id, successes, errors FROM worker.worker_process WHERE id = $1 FOR UPDATE
)
SELECT worker._worker_heartbeat(id, greatest(0, $2::bigint - successes), greatest(0, $3::bigint - errors), CASE WHEN $3::bigint > errors THEN $4 END)
FROM known

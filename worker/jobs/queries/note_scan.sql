-- Note that a scan begins, and tell whether silent workers count as dead; $1 = lease in seconds, $2 = did the scan before this one fail?; returns that.
UPDATE worker.scan_state
SET last_ok = clock_timestamp(),
    -- Nobody scanned for a while: the database was away, or all workers were. Their leases get time to be renewed.
    available_since = CASE WHEN $2 OR last_ok < clock_timestamp() - make_interval(secs => $1 / 2)
                           THEN clock_timestamp() ELSE available_since END
RETURNING available_since <= clock_timestamp() - make_interval(secs => $1)

-- What recovery keeps in mind, and how it finds its way.

-- The sweep for jobs whose delivery is gone walks along those that wait, and must not read all that ever ended.
CREATE INDEX jobs_queued ON worker.jobs (id) WHERE status = 'queued';

-- One row, shared by all workers: after an outage every lease looks stale, so nobody is taken for dead until scans have
-- gone well for one whole lease.
CREATE TABLE worker.scan_state (
    only_row bool PRIMARY KEY DEFAULT true CHECK (only_row),
    last_ok timestamptz NOT NULL,
    available_since timestamptz NOT NULL
) WITH (fillfactor = 10);
INSERT INTO worker.scan_state (last_ok, available_since) VALUES (clock_timestamp(), clock_timestamp());

-- Which workers there are, when each was last heard of, and what it got done.

-- A worker that is not heard of for twice its expected interval is dead. Whoever looks compares by this database's clock.
CREATE TABLE worker.worker_process (
    id uuid PRIMARY KEY,                         -- = the worker_id of its leases and of its events
    version text NOT NULL,
    expected_interval interval NOT NULL CHECK (expected_interval > interval '0'),
    host text,
    pid int,
    slots int,                                   -- jobs it takes on at once
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_heartbeat timestamptz NOT NULL DEFAULT clock_timestamp(),
    successes bigint NOT NULL DEFAULT 0,         -- jobs and pages done
    errors bigint NOT NULL DEFAULT 0,            -- attempts that failed, whether another one followed or not
    last_error text,
    last_error_at timestamptz,
    stopped_at timestamptz                       -- it said good-bye; null and silent = it died
)
-- As with leases: nothing that a heartbeat touches is indexed, and a new version of the row fits on its page.
WITH (fillfactor = 50);

-- What a worker got done, by queue. No foreign key, on purpose: a worker whose row was removed still writes down what it
-- finishes, and whoever counts a queue's jobs needs no worker to be alive.
CREATE TABLE worker.worker_progress (
    worker_id uuid NOT NULL,
    queue text NOT NULL,
    processed bigint NOT NULL DEFAULT 0,         -- successes and errors together
    last_job text,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (worker_id, queue)
) WITH (fillfactor = 50);

-- A worker begins. Returns the id that it is known by from here on.
CREATE FUNCTION worker._worker_start(version text, expected interval) RETURNS uuid
LANGUAGE sql SET search_path TO pg_catalog, pg_temp AS $$
    INSERT INTO worker.worker_process (id, version, expected_interval) VALUES (gen_random_uuid(), version, expected) RETURNING id
$$;

-- A worker is alive, and got this done since its last heartbeat; last_error null = the one that is known stays.
-- Returns whether its row is still there: one whose row is not was taken for dead, and begins anew.
CREATE FUNCTION worker._worker_heartbeat(worker uuid, successes_delta bigint, errors_delta bigint, last_error text) RETURNS bool
LANGUAGE plpgsql SET search_path TO pg_catalog, pg_temp AS $$
DECLARE
    heard timestamptz := clock_timestamp();
BEGIN
    PERFORM worker._require_delta(successes_delta), worker._require_delta(errors_delta);
    UPDATE worker.worker_process AS process
    SET last_heartbeat = heard,
        successes = process.successes + successes_delta,
        errors = process.errors + errors_delta,
        last_error = coalesce(_worker_heartbeat.last_error, process.last_error),
        last_error_at = CASE WHEN _worker_heartbeat.last_error IS NULL THEN process.last_error_at ELSE heard END
    WHERE process.id = _worker_heartbeat.worker;
    RETURN FOUND;
END
$$;

-- A worker got so many more jobs of a queue off its hands, this one last; 0 makes the queue's row. Returns how many it is by now.
CREATE FUNCTION worker._worker_progress(worker uuid, queue text, count_delta bigint, last_job text) RETURNS bigint
LANGUAGE plpgsql SET search_path TO pg_catalog, pg_temp AS $$
DECLARE
    total bigint;
BEGIN
    PERFORM worker._require_delta(count_delta);
    INSERT INTO worker.worker_progress AS progress (worker_id, queue, processed, last_job)
    VALUES (_worker_progress.worker, _worker_progress.queue, count_delta, _worker_progress.last_job)
    ON CONFLICT ON CONSTRAINT worker_progress_pkey DO UPDATE SET
        processed = progress.processed + excluded.processed,
        last_job = coalesce(excluded.last_job, progress.last_job),
        updated_at = clock_timestamp()
    RETURNING processed INTO total;
    RETURN total;
END
$$;

CREATE FUNCTION worker._require_delta(delta bigint) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path TO pg_catalog, pg_temp AS $$
BEGIN
    IF delta IS NULL OR delta < 0 THEN
        RAISE EXCEPTION 'what is added must be a number and not negative, but is %', coalesce(delta::text, 'null')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;

REVOKE ALL ON FUNCTION worker._worker_start, worker._worker_heartbeat, worker._worker_progress, worker._require_delta FROM PUBLIC;

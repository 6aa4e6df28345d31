-- The authoritative record of every job, its timeline, and the SQL API.
-- `pgboss.job` mirrors `worker.jobs` in the same transaction; whatever touches both locks the pg-boss row first.

CREATE SEQUENCE worker.lease_seq;

CREATE TABLE worker.jobs (
    id uuid PRIMARY KEY,                         -- = pgboss.job.id
    queue text NOT NULL,
    spec jsonb,                                  -- as sent; the worker judges it
    status text NOT NULL DEFAULT 'queued'
        CHECK (status IN ('queued', 'processing', 'done', 'failed', 'cancelled')),
    attempt_count int NOT NULL DEFAULT 0,        -- attempts that ended without success
    max_attempts int NOT NULL,
    crash_count int NOT NULL DEFAULT 0,          -- attempts whose worker was not heard of again
    lease_token bigint,                          -- the fence: every write of a worker carries it
    worker_id uuid,
    processing_started_at timestamptz,
    last_heartbeat_at timestamptz,               -- '-infinity' = the lease was given back
    stage text,
    progress real NOT NULL DEFAULT 0,
    run_id uuid,                                 -- of a page: the job it is a part of
    result jsonb,
    error_code text,
    error_message text,
    cancel_requested_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz,
    CONSTRAINT final_means_finished CHECK ((status IN ('done', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
    CONSTRAINT processing_means_leased CHECK ((status = 'processing') = (lease_token IS NOT NULL))
)
-- Room for beats to stay on their page, and no index on anything a beat touches: with one, each beat wrote 940 bytes
-- of WAL instead of 100 and none was a heap-only update.
WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE INDEX jobs_processing ON worker.jobs (processing_started_at) WHERE status = 'processing';
CREATE INDEX jobs_newest ON worker.jobs (created_at DESC, id);

CREATE TABLE worker.job_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempt int,
    worker_id uuid,
    kind text NOT NULL,
    data jsonb
);
CREATE INDEX job_events_of_job ON worker.job_events (job_id, id);

-- The channel on which pg-boss announces new jobs of queues with `notify`.
CREATE FUNCTION worker.queue_channel() RETURNS text
LANGUAGE sql STABLE SET search_path TO pg_catalog, pg_temp AS $$
    SELECT 'pgboss_' || left(encode(sha224(convert_to(n.nspname, 'UTF8')), 'hex'), 24)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = '{queue}.job'::regclass
$$;

-- Send a job, inside the caller's transaction if there is one. Options are pg-boss's: id, priority, startAfter (seconds,
-- interval or timestamp), retryLimit, retryDelay, retryBackoff, expireInSeconds, retentionSeconds, singletonKey.
-- Returns the job's id, or null when the queue's policy refused it.
CREATE FUNCTION worker.submit(queue text, spec jsonb, options jsonb DEFAULT '{}') RETURNS uuid
LANGUAGE plpgsql SET search_path TO pg_catalog, pg_temp AS $$
DECLARE
    target record;
    due timestamptz := now();
    wanted text := options ->> 'startAfter';
    new_id uuid;
    attempts int;
BEGIN
    SELECT * INTO target FROM {queue}.queue q WHERE q.name = submit.queue;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'queue % does not exist', submit.queue
            USING ERRCODE = 'undefined_object', HINT = 'Create it first: python -m worker migrate creates the configured ones.';
    END IF;
    IF pg_column_size(spec) > 65536 THEN
        RAISE EXCEPTION 'the job''s data has % bytes; at most 65536 are accepted', pg_column_size(spec)
            USING ERRCODE = 'program_limit_exceeded';
    END IF;
    IF wanted IS NOT NULL THEN
        due := CASE WHEN right(wanted, 1) = 'Z' OR wanted ~ '^\d{4}-\d\d-\d\d' THEN wanted::timestamptz ELSE now() + wanted::interval END;
    END IF;
    attempts := coalesce((options ->> 'retryLimit')::int, target.retry_limit) + 1;

    INSERT INTO {queue}.job (id, name, data, priority, start_after, created_on, singleton_key, keep_until, expire_seconds,
        deletion_seconds, retry_limit, retry_delay, retry_backoff, retry_delay_max, heartbeat_seconds, dead_letter, policy)
    VALUES (
        coalesce((options ->> 'id')::uuid, gen_random_uuid()), target.name, spec, coalesce((options ->> 'priority')::int, 0),
        due, now(), options ->> 'singletonKey',
        due + make_interval(secs => coalesce((options ->> 'retentionSeconds')::int, target.retention_seconds)),
        coalesce((options ->> 'expireInSeconds')::int, target.expire_seconds),
        target.deletion_seconds, attempts - 1,
        coalesce((options ->> 'retryDelay')::int, target.retry_delay),
        coalesce((options ->> 'retryBackoff')::bool, target.retry_backoff),
        target.retry_delay_max, target.heartbeat_seconds, target.dead_letter, target.policy)
    ON CONFLICT DO NOTHING
    RETURNING id INTO new_id;
    IF new_id IS NULL THEN
        RETURN NULL;
    END IF;

    INSERT INTO worker.jobs (id, queue, spec, max_attempts) VALUES (new_id, target.name, spec, attempts);
    INSERT INTO worker.job_events (job_id, kind) VALUES (new_id, 'submitted');
    IF target.notify AND due <= now() THEN
        PERFORM pg_notify(worker.queue_channel(), target.name);
    END IF;
    RETURN new_id;
END
$$;

-- Both rows of a job, locked in the one order everybody uses: pg-boss's first.
CREATE FUNCTION worker.lock_job(job_id uuid, OUT queue text, OUT delivery text, OUT status text)
LANGUAGE plpgsql SET search_path TO pg_catalog, pg_temp AS $$
BEGIN
    SELECT j.queue INTO queue FROM worker.jobs j WHERE j.id = job_id;
    IF queue IS NULL THEN
        SELECT j.name, j.state::text INTO queue, delivery FROM {queue}.job j WHERE j.id = job_id FOR UPDATE;
    ELSE
        SELECT j.state::text INTO delivery FROM {queue}.job j WHERE j.name = lock_job.queue AND j.id = job_id FOR UPDATE;
    END IF;
    SELECT j.status INTO status FROM worker.jobs j WHERE j.id = job_id FOR UPDATE;
    IF queue IS NULL THEN
        RAISE EXCEPTION 'there is no job %', job_id USING ERRCODE = 'no_data_found';
    END IF;
END
$$;

-- Cancel a job: at once while it waits, as soon as its worker hears of it while it runs. Returns the status it then has.
CREATE FUNCTION worker.cancel(job_id uuid) RETURNS text
LANGUAGE plpgsql SET search_path TO pg_catalog, pg_temp AS $$
DECLARE
    job record;
BEGIN
    SELECT * INTO job FROM worker.lock_job(job_id);
    IF job.status IN ('done', 'failed', 'cancelled') THEN
        RETURN job.status;
    END IF;
    IF job.status = 'processing' THEN
        UPDATE worker.jobs SET cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp()), updated_at = clock_timestamp()
        WHERE id = job_id;
        INSERT INTO worker.job_events (job_id, kind) VALUES (cancel.job_id, 'cancel:requested');
        PERFORM pg_notify('worker_cancel', job_id::text);
        RETURN 'processing';
    END IF;
    IF job.status IS NULL AND job.delivery NOT IN ('created', 'retry') THEN
        RETURN job.delivery;  -- never ours: another pg-boss worker has it, or had it
    END IF;
    UPDATE {queue}.job SET state = 'cancelled', completed_on = now()
    WHERE name = job.queue AND id = job_id AND state < 'completed';
    INSERT INTO worker.jobs AS w (id, queue, spec, status, max_attempts, cancel_requested_at, created_at, finished_at)
    SELECT j.id, j.name, j.data, 'cancelled', j.retry_limit + 1, clock_timestamp(), j.created_on, clock_timestamp()
    FROM {queue}.job j WHERE j.name = job.queue AND j.id = job_id
    UNION ALL
    SELECT w.id, w.queue, w.spec, 'cancelled', w.max_attempts, clock_timestamp(), w.created_at, clock_timestamp()
    FROM worker.jobs w
    WHERE w.id = job_id AND NOT EXISTS (SELECT FROM {queue}.job j WHERE j.name = job.queue AND j.id = job_id)
    ON CONFLICT (id) DO UPDATE SET status = 'cancelled', cancel_requested_at = clock_timestamp(),
        finished_at = clock_timestamp(), updated_at = clock_timestamp();
    INSERT INTO worker.job_events (job_id, kind) VALUES (cancel.job_id, 'cancelled');
    RETURN 'cancelled';
END
$$;

-- Revive a failed or cancelled job: one more attempt, as pg-boss's retry and resume give. Returns the status it then has.
CREATE FUNCTION worker.retry(job_id uuid) RETURNS text
LANGUAGE plpgsql SET search_path TO pg_catalog, pg_temp AS $$
DECLARE
    job record;
    attempts int;
BEGIN
    SELECT * INTO job FROM worker.lock_job(job_id);
    IF job.status IS NULL OR job.status NOT IN ('failed', 'cancelled') THEN
        RETURN coalesce(job.status, job.delivery);
    END IF;
    UPDATE {queue}.job SET
        state = CASE WHEN started_on IS NULL THEN 'created' ELSE 'retry' END::{queue}.job_state,
        retry_limit = greatest(retry_limit, retry_count + (started_on IS NOT NULL)::int),
        completed_on = NULL,
        start_after = now(),
        keep_until = greatest(keep_until, now() + interval '14 days')
    WHERE name = job.queue AND id = job_id
    RETURNING retry_limit + 1 INTO attempts;
    IF NOT FOUND THEN
        -- pg-boss has deleted its row by age; ours still knows everything.
        INSERT INTO {queue}.job (id, name, data, retry_limit, retry_delay, retry_backoff, retry_delay_max, expire_seconds,
            deletion_seconds, keep_until, dead_letter, policy, heartbeat_seconds)
        SELECT w.id, w.queue, w.spec, 0, q.retry_delay, q.retry_backoff, q.retry_delay_max, q.expire_seconds,
            q.deletion_seconds, now() + make_interval(secs => q.retention_seconds), q.dead_letter, q.policy, q.heartbeat_seconds
        FROM worker.jobs w JOIN {queue}.queue q ON q.name = w.queue WHERE w.id = job_id;
    END IF;
    UPDATE worker.jobs SET status = 'queued', max_attempts = greatest(max_attempts, attempt_count + 1, attempts),
        crash_count = 0, cancel_requested_at = NULL, error_code = NULL, error_message = NULL, stage = NULL, progress = 0,
        finished_at = NULL, updated_at = clock_timestamp()
    WHERE id = job_id;
    INSERT INTO worker.job_events (job_id, kind) VALUES (retry.job_id, 'revived');
    PERFORM pg_notify(worker.queue_channel(), job.queue);
    RETURN 'queued';
END
$$;

REVOKE ALL ON FUNCTION worker.submit, worker.cancel, worker.retry, worker.lock_job, worker.queue_channel FROM PUBLIC;

-- Long media: a job that was split has a run, its pages are jobs of the queue clip.page, and progress lives here.

CREATE TABLE worker.runs (
    id uuid PRIMARY KEY,                         -- = the job that was split
    plan jsonb NOT NULL,                         -- where pages meet, and what is known of the source
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    revived_at timestamptz,                      -- whoever asked a page to stop before that asked for the job's sake
    cleaned_at timestamptz                       -- what the pages stored was removed
);

-- A chain of pages, one after another; chains run at the same time.
CREATE TABLE worker.partition_progress (
    run_id uuid NOT NULL REFERENCES worker.runs ON DELETE CASCADE,
    partition_id int NOT NULL,
    kind text NOT NULL CHECK (kind IN ('pictures', 'sound', 'speech')),
    first_offset int NOT NULL,
    past_offset int NOT NULL,
    heights int[] NOT NULL DEFAULT '{}',         -- of pictures: which sizes each page makes; 0 = the clip's own
    next_offset int NOT NULL,                    -- pages before it are finished; it never goes back
    completed bool NOT NULL DEFAULT false,
    dropped_at timestamptz,                      -- its pages count no more: the job failed for good
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (run_id, partition_id),
    CONSTRAINT next_lies_inside CHECK (next_offset BETWEEN first_offset AND past_offset AND first_offset < past_offset),
    CONSTRAINT completed_means_all CHECK (completed = (next_offset = past_offset))
);

-- One row for each finished page, written by the worker that held it, in the transaction that settled it.
CREATE TABLE worker.pages (
    run_id uuid NOT NULL,
    partition_id int NOT NULL,
    page_offset int NOT NULL,
    job_id uuid NOT NULL,
    facts jsonb NOT NULL,                        -- what it made: keys and checksums, or what was heard
    finished_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (run_id, partition_id, page_offset),
    FOREIGN KEY (run_id, partition_id) REFERENCES worker.partition_progress ON DELETE CASCADE
);

CREATE INDEX jobs_of_run ON worker.jobs (run_id) WHERE run_id IS NOT NULL;

CREATE FUNCTION worker.keep_going_forward() RETURNS trigger
LANGUAGE plpgsql SET search_path TO pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'partition % of run % would go back from page % to %', OLD.partition_id, OLD.run_id, OLD.next_offset, NEW.next_offset
        USING ERRCODE = 'integrity_constraint_violation';
END
$$;
CREATE TRIGGER keep_going_forward BEFORE UPDATE OF next_offset ON worker.partition_progress
    FOR EACH ROW WHEN (NEW.next_offset < OLD.next_offset) EXECUTE FUNCTION worker.keep_going_forward();

-- Have the job that was split look at its pages now instead of within a minute. Never waits: a page holds its own rows
-- already, and whoever holds the job's may be waiting for them. A call that comes to nothing costs a minute.
CREATE FUNCTION worker.wake_run(run_id uuid) RETURNS void
LANGUAGE plpgsql SET search_path TO pg_catalog, pg_temp AS $$
DECLARE
    target text;
BEGIN
    SELECT j.queue INTO target FROM worker.jobs j WHERE j.id = wake_run.run_id;
    UPDATE {queue}.job SET start_after = now()
    WHERE name = target AND id = ANY (ARRAY(
        SELECT j.id FROM {queue}.job j
        WHERE j.name = target AND j.id = wake_run.run_id AND j.state < 'active' AND j.start_after > now()
        FOR UPDATE SKIP LOCKED));
    IF FOUND THEN
        PERFORM pg_notify(worker.queue_channel(), target);
    END IF;
END
$$;

-- Send a page, once: the same page always comes with the same id. It is as urgent as its job. Returns null if it was sent
-- before, even if pg-boss has forgotten it since.
CREATE FUNCTION worker.send_page(run_id uuid, page_job_id uuid, message jsonb) RETURNS uuid
LANGUAGE plpgsql SET search_path TO pg_catalog, pg_temp AS $$
DECLARE
    urgency int;
    sent uuid;
BEGIN
    IF EXISTS (SELECT FROM worker.jobs j WHERE j.id = page_job_id) THEN
        RETURN NULL;
    END IF;
    SELECT delivery.priority INTO urgency
    FROM worker.jobs j JOIN {queue}.job delivery ON delivery.name = j.queue AND delivery.id = j.id WHERE j.id = send_page.run_id;
    sent := worker.submit('clip.page', message, jsonb_build_object('id', page_job_id, 'priority', coalesce(urgency, 0)));
    UPDATE worker.jobs j SET run_id = send_page.run_id WHERE j.id = sent;
    RETURN sent;
END
$$;

-- Pages follow their job, and a job hears at once of a page that ended badly: whoever ended it, and in whatever way.
-- Rows are locked job first, pages after it; from a page to its job nobody waits, and for its pages a job does not wait
-- either: a statement may end many jobs at once, and a beat holds many pages. A page that was passed over is not its
-- turn any more when it is delivered, and if it is at work, its next beat tells it that its job is over.
CREATE FUNCTION worker.follow_run() RETURNS trigger
LANGUAGE plpgsql SET search_path TO pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.run_id IS NOT NULL THEN
        IF NEW.status IN ('failed', 'cancelled') THEN
            PERFORM worker.wake_run(NEW.run_id);
        END IF;
    ELSIF NEW.status IN ('failed', 'cancelled') THEN
        PERFORM worker.cancel(page.id) FROM (
            SELECT delivery.id FROM {queue}.job delivery
            WHERE delivery.name = 'clip.page' AND delivery.id = ANY (ARRAY(
                SELECT j.id FROM worker.jobs j WHERE j.run_id = NEW.id AND j.status IN ('queued', 'processing')))
            FOR UPDATE SKIP LOCKED) AS page;
    ELSE
        -- revived: it goes on behind the pages that are finished
        UPDATE worker.runs SET revived_at = clock_timestamp() WHERE id = NEW.id;
        PERFORM worker.retry(page.id) FROM (
            SELECT j.id FROM worker.jobs j
            JOIN worker.partition_progress p ON p.run_id = j.run_id AND p.partition_id = (j.spec ->> 'partition')::int
                AND p.next_offset = (j.spec ->> 'offset')::int
            WHERE j.run_id = NEW.id AND j.status IN ('failed', 'cancelled') AND p.dropped_at IS NULL AND NOT p.completed
            ORDER BY j.id) AS page;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER follow_run AFTER UPDATE OF status ON worker.jobs FOR EACH ROW
    WHEN (OLD.status IS DISTINCT FROM NEW.status AND (NEW.status IN ('failed', 'cancelled') OR OLD.status IN ('failed', 'cancelled')))
    EXECUTE FUNCTION worker.follow_run();

-- Has nobody looked after a job that waits for its pages, though it is due? A function, because a view of pg-boss's table
-- would keep pg-boss from altering it.
CREATE FUNCTION worker.is_overdue(queue text, job_id uuid) RETURNS bool
LANGUAGE plpgsql STABLE SET search_path TO pg_catalog, pg_temp AS $$
BEGIN
    RETURN NOT EXISTS (
        SELECT FROM {queue}.job j WHERE j.name = is_overdue.queue AND j.id = is_overdue.job_id
            AND (j.state = 'active' OR j.state < 'active' AND j.start_after > now() - interval '5 minutes'));
END
$$;

-- For operators: every run that was ever split, how far it is, and whether it needs somebody.
CREATE VIEW worker.run_status AS
SELECT run.id AS run_id, job.queue, job.status, job.error_code, run.created_at, job.finished_at,
       progress.pages, progress.finished_pages,
       round(100.0 * progress.finished_pages / greatest(1, progress.pages), 1) AS percent,
       progress.partitions, progress.open_partitions,
       live.running AS running_pages, live.waiting AS waiting_pages, live.failed AS failed_pages,
       recent.last_page_at,
       -- Nothing of it waits or runs although something should: the job's next look mends it, unless nobody looks.
       job.status IN ('queued', 'processing') AND (
           progress.open_partitions > live.waiting + live.running OR worker.is_overdue(job.queue, job.id)) AS is_stuck
FROM worker.runs AS run
JOIN worker.jobs AS job ON job.id = run.id
CROSS JOIN LATERAL (
    SELECT count(*) AS partitions, count(*) FILTER (WHERE NOT p.completed) AS open_partitions,
           coalesce(sum(p.past_offset - p.first_offset), 0) AS pages, coalesce(sum(p.next_offset - p.first_offset), 0) AS finished_pages
    FROM worker.partition_progress AS p WHERE p.run_id = run.id AND p.dropped_at IS NULL) AS progress
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE page.status = 'processing') AS running, count(*) FILTER (WHERE page.status = 'queued') AS waiting,
           count(*) FILTER (WHERE page.status = 'failed') AS failed
    FROM worker.jobs AS page WHERE page.run_id = run.id) AS live
CROSS JOIN LATERAL (SELECT max(page.finished_at) AS last_page_at FROM worker.pages AS page WHERE page.run_id = run.id) AS recent;

REVOKE ALL ON FUNCTION worker.wake_run, worker.send_page, worker.follow_run, worker.keep_going_forward, worker.is_overdue FROM PUBLIC;

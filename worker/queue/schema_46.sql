-- The tables and functions of pg-boss 12.38 (schema version 46), written from its behaviour, not from its text.
-- {queue} is the schema's quoted name. Run once, in one transaction, under pg-boss's own advisory lock.
-- Names matter: pg-boss's later migrations find tables, constraints, indexes and function parameters by name.

CREATE SCHEMA IF NOT EXISTS {queue};

-- The order is load-bearing: state < 'active' is queued, state > 'active' is final.
CREATE TYPE {queue}.job_state AS ENUM ('created', 'retry', 'active', 'completed', 'cancelled', 'failed');

-- One row; each *_on is a claim, across all processes, on one periodic pass.
CREATE TABLE {queue}.version (
    version            integer PRIMARY KEY,
    cron_on            timestamptz,
    bam_on             timestamptz,
    flow_on            timestamptz,
    reindex_on         timestamptz,
    monitor_backoff_on timestamptz
);

CREATE TABLE {queue}.queue (
    name                 text        NOT NULL PRIMARY KEY,
    policy               text        NOT NULL,
    retry_limit          integer     NOT NULL,
    retry_delay          integer     NOT NULL,
    retry_backoff        boolean     NOT NULL,
    retry_delay_max      integer,
    expire_seconds       integer     NOT NULL,
    retention_seconds    integer     NOT NULL,
    deletion_seconds     integer     NOT NULL,
    dead_letter          text        REFERENCES {queue}.queue (name),
    partition            boolean     NOT NULL,
    table_name           text        NOT NULL,
    deferred_count       integer     NOT NULL DEFAULT 0,
    blocked_count        integer     NOT NULL DEFAULT 0,
    queued_count         integer     NOT NULL DEFAULT 0,
    ready_count          integer     NOT NULL DEFAULT 0,
    warning_queued       integer     NOT NULL DEFAULT 0,
    active_count         integer     NOT NULL DEFAULT 0,
    failed_count         integer     NOT NULL DEFAULT 0,
    total_count          integer     NOT NULL DEFAULT 0,
    retained_count       integer,
    retained_on          timestamptz,
    created_delta        integer     NOT NULL DEFAULT 0,
    completed_delta      integer     NOT NULL DEFAULT 0,
    failed_delta         integer     NOT NULL DEFAULT 0,
    delta_on             timestamptz,
    delta_seconds        integer,
    wait_bins            integer[],
    run_bins             integer[],
    ready_oldest_seconds integer,
    ready_history        integer[]   NOT NULL DEFAULT '{}',
    heartbeat_seconds    integer,
    notify               boolean     NOT NULL DEFAULT false,
    singletons_active    text[],
    monitor_claim_on     timestamptz,
    monitor_on           timestamptz,
    maintain_on          timestamptz,
    created_on           timestamptz NOT NULL DEFAULT now(),
    updated_on           timestamptz NOT NULL DEFAULT now(),
    CHECK (dead_letter IS DISTINCT FROM name)
);

CREATE TABLE {queue}.schedule (
    name        text        REFERENCES {queue}.queue (name) ON DELETE CASCADE,
    key         text        NOT NULL DEFAULT '',
    kind        text        NOT NULL DEFAULT 'cron' CHECK (kind IN ('cron', 'rrule')),
    cron        text        NOT NULL,
    timezone    text        DEFAULT 'UTC',
    data        jsonb,
    options     jsonb,
    created_on  timestamptz NOT NULL DEFAULT now(),
    updated_on  timestamptz NOT NULL DEFAULT now(),
    last_job_id uuid,
    PRIMARY KEY (name, key)
);

CREATE TABLE {queue}.subscription (
    event      text        NOT NULL,
    name       text        NOT NULL REFERENCES {queue}.queue (name) ON DELETE CASCADE,
    created_on timestamptz NOT NULL DEFAULT now(),
    updated_on timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (event, name)
);

-- Index builds that pg-boss left for later; empty on a fresh schema.
CREATE TABLE {queue}.bam (
    id           uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    name         text        NOT NULL,
    version      integer     NOT NULL,
    status       text        NOT NULL DEFAULT 'pending',
    queue        text,
    table_name   text        NOT NULL,
    command      text        NOT NULL,
    error        text,
    created_on   timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_on   timestamptz,
    completed_on timestamptz
);

CREATE TABLE {queue}.warning (
    id         uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    type       text        NOT NULL,
    message    text        NOT NULL,
    data       jsonb,
    created_on timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX warning_i1 ON {queue}.warning (created_on DESC);

-- Node processes; says nothing about who owns a job.
CREATE TABLE {queue}.instance (
    id                   uuid        PRIMARY KEY,
    name                 text,
    host                 text        NOT NULL,
    pid                  integer     NOT NULL,
    version              text        NOT NULL,
    node_version         text        NOT NULL,
    application_name     text,
    heartbeat_seconds    integer     NOT NULL,
    supervise            boolean     NOT NULL,
    schedule             boolean     NOT NULL,
    migrate              boolean     NOT NULL,
    persist_queue_stats  boolean     NOT NULL,
    persist_warnings     boolean     NOT NULL,
    pool_max             integer,
    pool_total           integer,
    pool_idle            integer,
    pool_waiting         integer,
    workers              jsonb       NOT NULL DEFAULT '[]',
    metrics              jsonb,
    config               jsonb       NOT NULL DEFAULT '{}',
    crash_restarts       integer     NOT NULL DEFAULT 0,
    crash_restarts_since timestamptz,
    started_on           timestamptz NOT NULL DEFAULT now(),
    heartbeat_on         timestamptz NOT NULL DEFAULT now(),
    stopped_on           timestamptz
);

CREATE TABLE {queue}.queue_stats (
    id                   uuid        NOT NULL DEFAULT gen_random_uuid(),
    name                 text        NOT NULL,
    deferred_count       integer     NOT NULL DEFAULT 0,
    queued_count         integer     NOT NULL DEFAULT 0,
    ready_count          integer     NOT NULL DEFAULT 0,
    active_count         integer     NOT NULL DEFAULT 0,
    failed_count         integer     NOT NULL DEFAULT 0,
    total_count          integer     NOT NULL DEFAULT 0,
    created_delta        integer,
    completed_delta      integer,
    failed_delta         integer,
    delta_seconds        integer,
    delta_on             timestamptz,
    wait_bins            integer[],
    run_bins             integer[],
    ready_oldest_seconds integer,
    captured_on          timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id, captured_on)
) PARTITION BY RANGE (captured_on);
CREATE INDEX queue_stats_i1 ON {queue}.queue_stats (name, captured_on DESC)
    INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);

CREATE TABLE {queue}.job (
    id                   uuid                NOT NULL DEFAULT gen_random_uuid(),
    name                 text                NOT NULL,
    priority             integer             NOT NULL DEFAULT 0,
    data                 jsonb,
    state                {queue}.job_state   NOT NULL DEFAULT 'created',
    retry_limit          integer             NOT NULL DEFAULT 2,
    retry_count          integer             NOT NULL DEFAULT 0,
    retry_delay          integer             NOT NULL DEFAULT 0,
    retry_backoff        boolean             NOT NULL DEFAULT false,
    retry_delay_max      integer,
    expire_seconds       integer             NOT NULL DEFAULT 900,
    deletion_seconds     integer             NOT NULL DEFAULT 604800,
    singleton_key        text,
    singleton_on         timestamp,
    group_id             text,
    group_tier           text,
    start_after          timestamptz         NOT NULL DEFAULT now(),
    created_on           timestamptz         NOT NULL DEFAULT now(),
    started_on           timestamptz,
    completed_on         timestamptz,
    keep_until           timestamptz         NOT NULL DEFAULT now() + interval '336 hours',
    output               jsonb,
    dead_letter          text,
    policy               text,
    heartbeat_on         timestamptz,
    heartbeat_seconds    integer,
    blocked              boolean             NOT NULL DEFAULT false,
    blocking             boolean             NOT NULL DEFAULT false,
    pending_dependencies integer             NOT NULL DEFAULT 0,
    source_name          text,
    source_id            uuid,
    source_created_on    timestamptz,
    source_retry_count   integer,
    source_output        jsonb,
    source_root_id       uuid,
    trace_context        jsonb,
    upsert_by_key        boolean,
    PRIMARY KEY (name, id)
) PARTITION BY LIST (name);

CREATE TABLE {queue}.job_dependency (
    child_name  text NOT NULL,
    child_id    uuid NOT NULL,
    parent_name text NOT NULL,
    parent_id   uuid NOT NULL,
    PRIMARY KEY (child_name, child_id, parent_name, parent_id)
);
CREATE INDEX job_dep_parent_idx ON {queue}.job_dependency (parent_name, parent_id);

-- Holds the jobs of every queue that has no table of its own. Keys, checks and indexes live here, not on job:
-- a queue with its own table carries only those its policy needs (see create_queue).
CREATE TABLE {queue}.job_common (LIKE {queue}.job INCLUDING GENERATED INCLUDING DEFAULTS);
ALTER TABLE {queue}.job_common
    ADD PRIMARY KEY (name, id),
    ADD CONSTRAINT q_fkey FOREIGN KEY (name) REFERENCES {queue}.queue (name)
        ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED,
    ADD CONSTRAINT dlq_fkey FOREIGN KEY (dead_letter) REFERENCES {queue}.queue (name)
        ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED,
    ADD CONSTRAINT job_key_strict_fifo_singleton_key_check
        CHECK (NOT (policy = 'key_strict_fifo' AND singleton_key IS NULL));

-- Policies: what may not exist twice. No key counts as one key.
CREATE UNIQUE INDEX job_common_i1 ON {queue}.job_common (name, COALESCE(singleton_key, ''))
    WHERE state = 'created' AND policy = 'short';
CREATE UNIQUE INDEX job_common_i2 ON {queue}.job_common (name, COALESCE(singleton_key, ''))
    WHERE state = 'active' AND policy = 'singleton';
CREATE UNIQUE INDEX job_common_i3 ON {queue}.job_common (name, state, COALESCE(singleton_key, ''))
    WHERE state <= 'active' AND policy = 'stately';
CREATE UNIQUE INDEX job_common_i6 ON {queue}.job_common (name, COALESCE(singleton_key, ''))
    WHERE state <= 'active' AND policy = 'exclusive';
CREATE UNIQUE INDEX job_common_i8 ON {queue}.job_common (name, singleton_key)
    WHERE state IN ('active', 'retry', 'failed') AND policy = 'key_strict_fifo';
-- Throttling, debouncing and cron: one job in a time slot.
CREATE UNIQUE INDEX job_common_i4 ON {queue}.job_common (name, singleton_on, COALESCE(singleton_key, ''))
    WHERE state <> 'cancelled' AND singleton_on IS NOT NULL;
CREATE UNIQUE INDEX job_common_i13 ON {queue}.job_common (name, singleton_key)
    WHERE state = 'created' AND upsert_by_key;
-- Fetching.
CREATE INDEX job_common_i7 ON {queue}.job_common (name, group_id)
    WHERE state = 'active' AND group_id IS NOT NULL;
CREATE INDEX job_common_i10 ON {queue}.job_common (name, singleton_key, state DESC, created_on, id)
    INCLUDE (start_after) WHERE state < 'active' AND NOT blocked AND policy = 'key_strict_fifo';
CREATE INDEX job_common_i11 ON {queue}.job_common (name, priority DESC, created_on, start_after)
    WHERE state < 'active' AND NOT blocked;
-- Flows, lineage, statistics, listing.
CREATE INDEX job_common_i9 ON {queue}.job_common (name, id) WHERE blocking AND state = 'completed';
CREATE INDEX job_common_i12 ON {queue}.job_common (source_root_id) WHERE source_root_id IS NOT NULL;
CREATE INDEX job_common_i14 ON {queue}.job_common (name, state, blocked, start_after)
    WHERE state IN ('created', 'retry', 'active', 'failed');
CREATE INDEX job_common_i15 ON {queue}.job_common (name, created_on);
CREATE INDEX job_common_i16 ON {queue}.job_common (name, completed_on) WHERE completed_on IS NOT NULL;
CREATE INDEX job_common_i17 ON {queue}.job_common (name, singleton_key, created_on)
    WHERE state < 'active' AND singleton_key IS NOT NULL;

ALTER TABLE {queue}.job ATTACH PARTITION {queue}.job_common DEFAULT;

-- The clock of every statement on jobs; pg-boss's test clock replaces it.
CREATE FUNCTION {queue}.job_now() RETURNS timestamptz
LANGUAGE sql STABLE
AS $function$ SELECT pg_catalog.now() $function$;

-- Turns DDL written for "job" and "job_iN" into DDL for one of the tables below it.
CREATE FUNCTION {queue}.job_table_format(command text, table_name text) RETURNS text
LANGUAGE sql IMMUTABLE
AS $function$
    SELECT regexp_replace(
        regexp_replace(command, '\.job\M', '.' || table_name, 'g'),
        '\mjob_i(\d+)\M', table_name || '_i\1', 'g')
$function$;

-- Runs DDL on one table, on one queue's table, or on all of them.
CREATE FUNCTION {queue}.job_table_run(command text, tbl_name text DEFAULT NULL, queue_name text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
AS $function$
DECLARE
    target text;
BEGIN
    FOR target IN
        SELECT tbl_name WHERE tbl_name IS NOT NULL
        UNION ALL
        SELECT q.table_name FROM {queue}.queue q WHERE tbl_name IS NULL AND q.name = queue_name
        UNION ALL
        SELECT 'job_common' WHERE tbl_name IS NULL AND queue_name IS NULL
        UNION ALL
        SELECT q.table_name FROM {queue}.queue q WHERE tbl_name IS NULL AND queue_name IS NULL AND q.partition
    LOOP
        EXECUTE {queue}.job_table_format(command, target);
    END LOOP;
END
$function$;

-- The same choice of tables, but the DDL is left in bam for a Node process to run.
CREATE FUNCTION {queue}.job_table_run_async(
    command_name text, version integer, command text, tbl_name text DEFAULT NULL, queue_name text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql
AS $function$
BEGIN
    INSERT INTO {queue}.bam (name, version, queue, table_name, command)
    SELECT command_name, job_table_run_async.version, target.queue, target.table_name,
           {queue}.job_table_format(job_table_run_async.command, target.table_name)
    FROM (
        SELECT queue_name AS queue, tbl_name AS table_name WHERE tbl_name IS NOT NULL
        UNION ALL
        SELECT q.name, q.table_name FROM {queue}.queue q WHERE tbl_name IS NULL AND q.name = queue_name
        UNION ALL
        SELECT NULL, 'job_common' WHERE tbl_name IS NULL AND queue_name IS NULL
        UNION ALL
        SELECT q.name, q.table_name FROM {queue}.queue q WHERE tbl_name IS NULL AND queue_name IS NULL AND q.partition
    ) AS target;
END
$function$;

-- Adds a queue, with a table of its own if options ask for one. An existing queue stays as it is.
CREATE FUNCTION {queue}.create_queue(queue_name text, options jsonb) RETURNS void
LANGUAGE plpgsql
AS $function$
DECLARE
    own_table text := 'j' || encode(sha224(convert_to(queue_name, 'UTF8')), 'hex');
    has_own_table boolean := COALESCE((options ->> 'partition')::boolean, false);
    policy_indexes text[] := CASE options ->> 'policy'
        WHEN 'short' THEN '{i1}' WHEN 'singleton' THEN '{i2}' WHEN 'stately' THEN '{i3}'
        WHEN 'exclusive' THEN '{i6}' WHEN 'key_strict_fifo' THEN '{i8,i10}' ELSE '{}' END;
    schema_name text;
    common record;
BEGIN
    INSERT INTO {queue}.queue (
        name, policy, retry_limit, retry_delay, retry_backoff, retry_delay_max, expire_seconds, retention_seconds,
        deletion_seconds, warning_queued, dead_letter, partition, table_name, heartbeat_seconds, notify,
        created_on, updated_on)
    VALUES (
        queue_name,
        options ->> 'policy',
        COALESCE((options ->> 'retryLimit')::integer, 2),
        COALESCE((options ->> 'retryDelay')::integer, 0),
        COALESCE((options ->> 'retryBackoff')::boolean, false),
        (options ->> 'retryDelayMax')::integer,
        COALESCE((options ->> 'expireInSeconds')::integer, 900),
        COALESCE((options ->> 'retentionSeconds')::integer, 1209600),
        COALESCE((options ->> 'deleteAfterSeconds')::integer, 604800),
        COALESCE((options ->> 'warningQueueSize')::integer, 0),
        options ->> 'deadLetter',
        has_own_table,
        CASE WHEN has_own_table THEN own_table ELSE 'job_common' END,
        (options ->> 'heartbeatSeconds')::integer,
        COALESCE((options ->> 'notify')::boolean, false),
        {queue}.job_now(),
        {queue}.job_now())
    ON CONFLICT DO NOTHING;

    IF NOT FOUND OR NOT has_own_table THEN
        RETURN;
    END IF;

    SELECT relnamespace::regnamespace INTO schema_name FROM pg_catalog.pg_class
    WHERE oid = '{queue}.job_common'::regclass;

    EXECUTE format('CREATE TABLE %1$s.%2$I (LIKE %1$s.job INCLUDING DEFAULTS)', schema_name, own_table);
    EXECUTE format(
        'ALTER TABLE %1$s.%2$I
            ADD PRIMARY KEY (name, id),
            ADD CONSTRAINT q_fkey FOREIGN KEY (name) REFERENCES %1$s.queue (name)
                ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED,
            ADD CONSTRAINT dlq_fkey FOREIGN KEY (dead_letter) REFERENCES %1$s.queue (name)
                ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED,
            ADD CONSTRAINT cjc CHECK (name = %3$L)',
        schema_name, own_table, queue_name);
    IF options ->> 'policy' = 'key_strict_fifo' THEN
        EXECUTE format(
            'ALTER TABLE %s.%I ADD CONSTRAINT job_key_strict_fifo_singleton_key_check
                CHECK (NOT (policy = ''key_strict_fifo'' AND singleton_key IS NULL))',
            schema_name, own_table);
    END IF;

    -- job_common shows what each index looks like; what follows its name and table is the same here.
    FOR common IN
        SELECT i.indisunique AS is_unique, substring(c.relname FROM 'job_common_(i\d+)') AS suffix,
               substring(pg_get_indexdef(i.indexrelid) FROM ' USING .*') AS definition
        FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
        WHERE i.indrelid = '{queue}.job_common'::regclass AND c.relname ~ '^job_common_i\d+$'
    LOOP
        IF common.suffix = ANY ('{i4,i7,i9,i11,i12,i13,i14,i15,i16,i17}' || policy_indexes) THEN
            EXECUTE format(
                'CREATE %s INDEX %I ON %s.%I%s', CASE WHEN common.is_unique THEN 'UNIQUE' END,
                own_table || '_' || common.suffix, schema_name, own_table, common.definition);
        END IF;
    END LOOP;

    EXECUTE format('ALTER TABLE %1$s.job ATTACH PARTITION %1$s.%2$I FOR VALUES IN (%3$L)', schema_name, own_table, queue_name);
END
$function$;

-- Removes a queue and its jobs.
CREATE FUNCTION {queue}.delete_queue(queue_name text) RETURNS void
LANGUAGE plpgsql
AS $function$
DECLARE
    doomed {queue}.queue%ROWTYPE;
BEGIN
    SELECT q.* INTO doomed FROM {queue}.queue q WHERE q.name = queue_name FOR UPDATE;
    IF doomed.partition THEN
        EXECUTE format('DROP TABLE IF EXISTS %s.%I', (
            SELECT relnamespace::regnamespace FROM pg_catalog.pg_class WHERE oid = '{queue}.queue'::regclass
        ), doomed.table_name);
    ELSE
        DELETE FROM {queue}.job_common WHERE name = queue_name;
    END IF;
    DELETE FROM {queue}.queue WHERE name = queue_name;
END
$function$;

-- Statistics are kept by UTC day; whoever runs pg-boss with persistQueueStats makes the later days.
DO $today$
DECLARE
    first_day date := (now() AT TIME ZONE 'UTC')::date;
    day date;
BEGIN
    FOREACH day IN ARRAY ARRAY[first_day, first_day + 1] LOOP
        EXECUTE format(
            'CREATE TABLE %1$s.%2$I PARTITION OF %1$s.queue_stats FOR VALUES FROM (%3$L) TO (%4$L)',
            (SELECT relnamespace::regnamespace FROM pg_catalog.pg_class WHERE oid = '{queue}.queue'::regclass),
            'queue_stats_' || to_char(day, 'YYYYMMDD'), day || ' 00:00:00+00', day + 1 || ' 00:00:00+00');
    END LOOP;
END
$today$;

INSERT INTO {queue}.version (version) VALUES (46);

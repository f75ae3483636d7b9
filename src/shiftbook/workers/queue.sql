-- What Shiftbook keeps beside the tables of procrastinate, in the queue's own schema.
--
-- Nothing here is truth: the journal is. A queued run has one row for as long as it lives; `due` is the
-- moment of its next wake when no job stands for one yet, and NULL for almost all, so that a look at what is
-- due costs the same with a hundred waiting runs and with a million.

CREATE TABLE layout (
    number integer PRIMARY KEY,
    applied timestamptz NOT NULL DEFAULT now()
);

INSERT INTO layout (number) VALUES (1);

CREATE TABLE queued_runs (
    run text COLLATE "C" PRIMARY KEY,
    queue text NOT NULL,
    priority integer NOT NULL,
    due timestamptz,
    tries integer NOT NULL DEFAULT 0,
    why text NOT NULL DEFAULT '',
    worker text,
    taken timestamptz
) WITH (fillfactor = 80);

CREATE INDEX queued_runs_due ON queued_runs (due) WHERE due IS NOT NULL;

CREATE TABLE workers (
    name text PRIMARY KEY,
    host text NOT NULL,
    pid bigint NOT NULL,
    concurrency integer NOT NULL,
    agents text[] NOT NULL,
    began timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The claim of a job asks for others under the same lock: without this it would read all that wait.
CREATE INDEX shiftbook_jobs_by_lock ON procrastinate_jobs (lock);

-- Who holds a run is asked at every claim under a limit; a million leases that nobody holds must not be read.
-- `until_ms` stays out of it, so that a renewal changes no index.
CREATE INDEX leases_held ON shiftbook.leases (number) WHERE host IS NOT NULL;

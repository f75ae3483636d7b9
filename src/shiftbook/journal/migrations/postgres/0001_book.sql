-- The book on PostgreSQL: everything that a Shiftbook database keeps, in a schema of its own.
--
-- The same as the SQLite book (../0001_book.sql) with what a shared server needs. Truth is `leases` (which
-- run has which number, and its lease epoch), `entries`, `blobs` and `inbox`; `runs`, `tags` and `snapshots`
-- are derived and may be dropped. Payloads are text, byte for byte what was hashed: never json or jsonb.
--
-- Whoever writes to a run first locks its row in `leases`, and reads everything else after that. What is
-- decided under the lock is in functions, since a function's statements each see what was committed before
-- they began: position, lease epoch and inbox are checked and the rows written in one round trip.
--
-- Rules for whoever changes this: a migration that was released is never edited; add the next number.

CREATE SCHEMA shiftbook;

CREATE TABLE shiftbook.migrations (
    number integer PRIMARY KEY,
    name text NOT NULL,
    applied_ms bigint NOT NULL
);

CREATE TABLE shiftbook.kinds (
    number smallint PRIMARY KEY,
    name text NOT NULL UNIQUE
);

INSERT INTO shiftbook.kinds (number, name) VALUES
    (1, 'RunOpened'),
    (2, 'AgentDeclared'),
    (3, 'PersonSaid'),
    (4, 'RuleSet'),
    (5, 'EpochOpened'),
    (6, 'ModelAsked'),
    (7, 'ModelFailed'),
    (8, 'ModelAnswered'),
    (9, 'ModelInterrupted'),
    (10, 'ActionStarted'),
    (11, 'ActionFinished'),
    (12, 'StatementMade'),
    (13, 'PlanChanged'),
    (14, 'TallyChanged'),
    (15, 'ReportWritten'),
    (16, 'LineStruck'),
    (17, 'Recalled'),
    (18, 'LimitReached'),
    (19, 'Warned'),
    (20, 'RunRested'),
    (21, 'RunEnded'),
    (22, 'ReportAsked'),
    (23, 'ReportFailed'),
    (24, 'ReportAnswered');

CREATE TABLE shiftbook.leases (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run text COLLATE "C" NOT NULL UNIQUE,
    epoch bigint NOT NULL,
    host text,
    pid bigint,
    started text,
    until_ms bigint NOT NULL,
    mail bigint NOT NULL,
    checksum bytea NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE shiftbook.entries (
    run bigint NOT NULL,
    position bigint NOT NULL,
    at_ms bigint NOT NULL,
    epoch bigint NOT NULL,
    kind smallint NOT NULL,
    version smallint NOT NULL,
    salt bytea NOT NULL,
    payload text COLLATE "C" NOT NULL,
    head bytea,
    PRIMARY KEY (run, position)
);

CREATE TABLE shiftbook.blobs (
    run bigint NOT NULL REFERENCES shiftbook.leases (number),
    name text COLLATE "C" NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (run, name)
);

CREATE TABLE shiftbook.inbox (
    run bigint NOT NULL REFERENCES shiftbook.leases (number),
    place bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    at_ms bigint NOT NULL,
    payload text COLLATE "C" NOT NULL,
    moved_to bigint,
    checksum bytea NOT NULL,
    PRIMARY KEY (run, place),
    UNIQUE (run, id)
);

CREATE INDEX inbox_waiting ON shiftbook.inbox (run, place) WHERE moved_to IS NULL;

CREATE TABLE shiftbook.runs (
    number bigint PRIMARY KEY REFERENCES shiftbook.leases (number),
    agent text NOT NULL,
    state text NOT NULL,
    ended boolean NOT NULL,
    opened_ms bigint NOT NULL
);

CREATE INDEX runs_by_state ON shiftbook.runs (state, number);

CREATE TABLE shiftbook.tags (
    run bigint NOT NULL REFERENCES shiftbook.runs (number) ON DELETE CASCADE,
    place integer NOT NULL,
    tag text COLLATE "C" NOT NULL,
    PRIMARY KEY (run, place)
);

CREATE INDEX tags_by_tag ON shiftbook.tags (tag, run);

CREATE TABLE shiftbook.snapshots (
    run bigint NOT NULL REFERENCES shiftbook.leases (number),
    name text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    position bigint NOT NULL,
    content text COLLATE "C" NOT NULL,
    checksum bytea NOT NULL,
    PRIMARY KEY (run, name)
);

-- The one source of time, for leases. It is the server's clock at the moment of the call, not the start of
-- the transaction: who waited for a lock must not judge a lease by the time before it waited. Tests set
-- `shiftbook.now_ms` for their session.
CREATE FUNCTION shiftbook.now_ms() RETURNS bigint
LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(
        nullif(current_setting('shiftbook.now_ms', true), '')::bigint,
        floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
    )
$$;

-- Locks a run and says why a commit is not let in: NULL when it is, else 'unknown', 'fenced' (and the epoch),
-- 'conflict' (and the position) or 'mail'.
CREATE FUNCTION shiftbook.admit(
    in_number bigint, in_run text, in_epoch bigint, in_expected bigint, in_if_no_mail boolean,
    in_taken text[], OUT refusal text, OUT seen bigint
)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    SELECT leases.epoch INTO seen FROM shiftbook.leases
    WHERE leases.number = in_number AND leases.run = in_run
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        refusal := 'unknown';
        RETURN;
    END IF;
    IF seen <> in_epoch THEN
        refusal := 'fenced';
        RETURN;
    END IF;
    SELECT coalesce(max(entries.position), 0) INTO seen FROM shiftbook.entries
    WHERE entries.run = in_number;
    IF seen <> in_expected THEN
        refusal := 'conflict';
        RETURN;
    END IF;
    IF in_if_no_mail AND EXISTS (
        SELECT 1 FROM shiftbook.inbox
        WHERE inbox.run = in_number AND inbox.moved_to IS NULL AND inbox.id <> ALL (in_taken)
    ) THEN
        refusal := 'mail';
    END IF;
END
$$;

-- Writes rows behind a position. Only under the lock that `admit` has taken.
CREATE FUNCTION shiftbook.write(
    in_number bigint, in_after bigint, in_kinds smallint[], in_versions smallint[], in_stamps bigint[],
    in_epochs bigint[], in_salts bytea[], in_payloads text[], in_heads bytea[]
) RETURNS void
LANGUAGE sql VOLATILE AS $$
    INSERT INTO shiftbook.entries (run, position, kind, version, at_ms, epoch, salt, payload, head)
    SELECT in_number, in_after + each.place, each.kind, each.version, each.at_ms, each.epoch, each.salt,
        each.payload, each.head
    FROM unnest(in_kinds, in_versions, in_stamps, in_epochs, in_salts, in_payloads, in_heads)
        WITH ORDINALITY AS each (kind, version, at_ms, epoch, salt, payload, head, place)
$$;

-- A plain commit: admitted and written, or refused and nothing written.
CREATE FUNCTION shiftbook.append(
    in_number bigint, in_run text, in_epoch bigint, in_expected bigint, in_if_no_mail boolean,
    in_kinds smallint[], in_versions smallint[], in_stamps bigint[], in_epochs bigint[], in_salts bytea[],
    in_payloads text[], in_heads bytea[], OUT refusal text, OUT seen bigint
)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    SELECT admit.refusal, admit.seen INTO refusal, seen
    FROM shiftbook.admit(in_number, in_run, in_epoch, in_expected, in_if_no_mail, '{}') AS admit;
    IF refusal IS NULL THEN
        PERFORM shiftbook.write(
            in_number, in_expected, in_kinds, in_versions, in_stamps, in_epochs, in_salts, in_payloads,
            in_heads
        );
    END IF;
END
$$;

-- For people with psql: SELECT * FROM shiftbook.book WHERE run = '...';
CREATE VIEW shiftbook.book AS
SELECT
    leases.run AS run,
    entries.position AS position,
    to_timestamp(entries.at_ms / 1000.0) AS at,
    kinds.name AS kind,
    entries.payload AS payload
FROM shiftbook.entries
JOIN shiftbook.leases ON leases.number = entries.run
LEFT JOIN shiftbook.kinds ON kinds.number = entries.kind;

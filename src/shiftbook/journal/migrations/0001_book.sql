-- The book: everything that a Shiftbook database keeps.
--
-- Truth is `leases` (which run has which number, and its lease epoch), `entries`, `blobs` and `inbox`. The
-- rest is derived from them and may be dropped: `runs` and `tags` are the catalogue, `snapshots` a cache.
--
-- A run's first lease gives it a number. An entry's id is (run number << 32) | position, so that the
-- entries of a run lie together in the order of their positions and the row's key costs no index. The
-- chain's head stands on a commit's last row only. A run's inbox items have the places 1, 2, 3 ...; how
-- many were put in stands beside the lease as `mail`, so that one that is gone, or has another place or
-- another run, shows.
--
-- Rules for whoever changes this: a migration that was released is never edited; add the next number.

CREATE TABLE migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE kinds (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

INSERT INTO kinds (number, name) VALUES
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

CREATE TABLE leases (
    number INTEGER PRIMARY KEY,
    run TEXT NOT NULL UNIQUE,
    epoch INTEGER NOT NULL,
    host TEXT,
    pid INTEGER,
    started TEXT,
    until_ms INTEGER NOT NULL,
    mail INTEGER NOT NULL,
    checksum BLOB NOT NULL
) STRICT;

CREATE TABLE entries (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    version INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    salt BLOB NOT NULL,
    payload TEXT NOT NULL,
    head BLOB
) STRICT;

CREATE TABLE blobs (
    run INTEGER NOT NULL REFERENCES leases (number),
    name TEXT NOT NULL,
    content BLOB NOT NULL,
    UNIQUE (run, name)
) STRICT;

CREATE TABLE inbox (
    run INTEGER NOT NULL REFERENCES leases (number),
    place INTEGER NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    payload TEXT NOT NULL,
    moved_to INTEGER,
    checksum BLOB NOT NULL,
    PRIMARY KEY (run, place),
    UNIQUE (run, id)
) STRICT;

CREATE INDEX inbox_waiting ON inbox (run, place) WHERE moved_to IS NULL;

CREATE TABLE runs (
    number INTEGER PRIMARY KEY REFERENCES leases (number),
    agent TEXT NOT NULL,
    state TEXT NOT NULL,
    ended INTEGER NOT NULL,
    opened_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX runs_by_state ON runs (state, number);

CREATE TABLE tags (
    run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    tag TEXT NOT NULL,
    PRIMARY KEY (run, place)
) STRICT, WITHOUT ROWID;

CREATE INDEX tags_by_tag ON tags (tag, run);

CREATE TABLE snapshots (
    run INTEGER NOT NULL REFERENCES leases (number),
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    position INTEGER NOT NULL,
    content TEXT NOT NULL,
    checksum BLOB NOT NULL,
    PRIMARY KEY (run, name)
) STRICT;

-- For people with a sqlite3 shell: SELECT * FROM book WHERE run = '...';
CREATE VIEW book AS
SELECT
    leases.run AS run,
    entries.id & 4294967295 AS position,
    datetime(entries.at_ms / 1000, 'unixepoch') AS at,
    kinds.name AS kind,
    entries.payload AS payload
FROM entries
JOIN leases ON leases.number = entries.id >> 32
LEFT JOIN kinds ON kinds.number = entries.kind;

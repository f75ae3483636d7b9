-- The search index of a journal: a file of its own beside the journal's, so that filling it never takes the
-- lock, the log or the disk of an append. All of it is derived; with another layout it is made anew.
--
-- A unit's id is (run number << 32) | unit. A term has one id in its run; in the full-text table it stands
-- as the token "s" + id where it was said and "d" + id where it was done, so that no text of a run can be
-- anything but a term, and one run's terms find nothing in another. Counts above 1 are in said_more and
-- done_more: pairs of term id and count, as little-endian 32-bit numbers.

CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    run TEXT NOT NULL UNIQUE,
    position INTEGER NOT NULL DEFAULT 0,
    mark BLOB NOT NULL DEFAULT x'',
    units INTEGER NOT NULL DEFAULT 0,
    said_units INTEGER NOT NULL DEFAULT 0,
    said_length INTEGER NOT NULL DEFAULT 0,
    done_units INTEGER NOT NULL DEFAULT 0,
    done_length INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE terms (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    term TEXT NOT NULL,
    said INTEGER NOT NULL,
    done INTEGER NOT NULL,
    UNIQUE (run, term)
) STRICT;

CREATE TABLE units (
    id INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    said_length INTEGER NOT NULL,
    done_length INTEGER NOT NULL,
    traits INTEGER NOT NULL,
    novelty REAL NOT NULL,
    said_more BLOB NOT NULL,
    done_more BLOB NOT NULL
) STRICT;

CREATE VIRTUAL TABLE search USING fts5 (
    terms, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);

-- Vectors, where somebody gives them: of the first `units` units of a run, made by `name`. `vectors` has
-- each whole, under its unit's id; `signs` a row a batch, under the id of the batch's first unit, with the
-- signs of all its vectors one after another.

CREATE TABLE vector_runs (
    run INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    units INTEGER NOT NULL
) STRICT;

CREATE TABLE vectors (
    id INTEGER PRIMARY KEY,
    vector BLOB NOT NULL
) STRICT;

CREATE TABLE signs (
    id INTEGER PRIMARY KEY,
    signs BLOB NOT NULL
) STRICT;

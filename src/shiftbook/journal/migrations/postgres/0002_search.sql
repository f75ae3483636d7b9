-- The search index of recall. All of it is derived: `DELETE` every row and it is filled again to the same.
--
-- It is filled in batches, apart from appends, and never touches a row that an append locks: there is no
-- foreign key to `leases`, whose check would lock the run's row there, and a run has a number of its own.
-- Who fills a run, or drops it, locks its row in `search_runs` first.
--
-- `search_terms` has one row for each term of a run, with in how many units it was said (by a person) and
-- done (in replies and results). `search_postings` says in which: a row for each batch, term and side
-- (0 said, 1 done), with the units in order, each as unit and count in little-endian 32-bit numbers. `upto`
-- is how many units of that term and side there are with this batch, so that the newest N are a range.

CREATE TABLE shiftbook.search_runs (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run text COLLATE "C" NOT NULL UNIQUE,
    position bigint NOT NULL DEFAULT 0,
    mark bytea NOT NULL DEFAULT '',
    units bigint NOT NULL DEFAULT 0,
    said_units bigint NOT NULL DEFAULT 0,
    said_length bigint NOT NULL DEFAULT 0,
    done_units bigint NOT NULL DEFAULT 0,
    done_length bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);

CREATE TABLE shiftbook.search_terms (
    run bigint NOT NULL,
    term text COLLATE "C" NOT NULL,
    key bigint GENERATED ALWAYS AS IDENTITY,
    said bigint NOT NULL,
    done bigint NOT NULL,
    PRIMARY KEY (run, term)
) WITH (fillfactor = 70);

CREATE TABLE shiftbook.search_postings (
    run bigint NOT NULL,
    term bigint NOT NULL,
    side smallint NOT NULL,
    upto bigint NOT NULL,
    units bytea NOT NULL,
    PRIMARY KEY (run, term, side, upto)
);

CREATE TABLE shiftbook.search_units (
    run bigint NOT NULL,
    unit bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    said_length bigint NOT NULL,
    done_length bigint NOT NULL,
    traits smallint NOT NULL,
    novelty double precision NOT NULL,
    PRIMARY KEY (run, unit)
);

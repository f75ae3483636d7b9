-- Vectors in the search index, where somebody gives them. All of it is derived, as the rest of the index is,
-- and whoever writes it locks the run's row in `search_runs` first.
--
-- `search_vector_runs` says by what name a run has them, and of how many of its units from the first on.
-- `search_vectors` has each whole; `search_signs` a row for each batch, under the batch's first unit, with
-- the signs of all its vectors one after another.

CREATE TABLE shiftbook.search_vector_runs (
    run bigint PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    units bigint NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE shiftbook.search_vectors (
    run bigint NOT NULL,
    unit bigint NOT NULL,
    vector bytea NOT NULL,
    PRIMARY KEY (run, unit)
);

CREATE TABLE shiftbook.search_signs (
    run bigint NOT NULL,
    unit bigint NOT NULL,
    signs bytea NOT NULL,
    PRIMARY KEY (run, unit)
);

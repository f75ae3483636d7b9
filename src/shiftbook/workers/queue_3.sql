-- When the upkeep was done last, by the server's time: whoever finds it long enough ago does it. One row.

CREATE TABLE upkeep (
    done timestamptz NOT NULL
);

INSERT INTO upkeep (done) VALUES ('-infinity');

INSERT INTO layout (number) VALUES (3);

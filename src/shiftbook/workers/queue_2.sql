-- Runs that wait for a share (shares.py): parked under its name since a moment, and woken in order.

ALTER TABLE queued_runs ADD COLUMN share text;
ALTER TABLE queued_runs ADD COLUMN since timestamptz;

CREATE INDEX queued_runs_parked ON queued_runs (share, priority DESC, since) WHERE share IS NOT NULL;

INSERT INTO layout (number) VALUES (2);

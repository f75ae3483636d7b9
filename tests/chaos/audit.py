"""What has to be true after the storm, asked of the journal, the service and an auditor in the database.

The auditor is a trigger of its own: for every entry that is written it compares the lease epoch that the
writer claims with the one that the run has in that moment. It shares no code with the engine.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import psycopg

from shiftbook.entries import ActionFinished, ActionStarted
from shiftbook.journal.open import open_store
from shiftbook.run.book import read_entries
from shiftbook.verify import verify
from tests.crash.receiver import Receiver

AUDITOR = """
CREATE SCHEMA auditor;
CREATE TABLE auditor.written (run bigint, position bigint, epoch bigint, held bigint);
CREATE FUNCTION auditor.look() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    current bigint;
BEGIN
    SELECT epoch INTO current FROM shiftbook.leases WHERE number = NEW.run;
    IF current IS DISTINCT FROM NEW.epoch THEN
        INSERT INTO auditor.written VALUES (NEW.run, NEW.position, NEW.epoch, current);
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER auditor BEFORE INSERT ON shiftbook.entries FOR EACH ROW EXECUTE FUNCTION auditor.look();
"""


@dataclass
class Verdict:
    """What was counted, and what was found wrong."""

    runs: int = 0
    entries: int = 0
    actions: int = 0
    attempts: int = 0
    keys: int = 0
    takings: int = 0
    faults: list[str] = field(default_factory=list)


def set_auditor(address: str) -> None:
    """Set the auditor on the journal's entries."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(AUDITOR)


async def audit(address: str, receiver: Receiver, runs: list[str]) -> Verdict:
    """Check every run from end to end."""
    verdict = Verdict(runs=len(runs))
    store = await open_store(address, create=False)
    try:
        states = {row.run: row.state for row in await store.catalogue.runs(limit=len(runs) + 1)}
        for run in runs:
            if states.get(run) != "finished":
                verdict.faults.append(f"run {run} is {states.get(run)}")
            entries = await read_entries(store, run)
            if [entry.position for entry in entries] != list(range(1, len(entries) + 1)):
                verdict.faults.append(f"run {run} has a gap or a double position")
            starts = [entry.what for entry in entries if isinstance(entry.what, ActionStarted)]
            ends = Counter(entry.what.call for entry in entries if isinstance(entry.what, ActionFinished))
            outcomes = {entry.what.outcome for entry in entries if isinstance(entry.what, ActionFinished)}
            keys = {start.call for start in starts}
            effects = receiver.effects(run)
            verdict.entries += len(entries)
            verdict.attempts += len(starts)
            verdict.actions += len(ends)
            verdict.keys += len(effects)
            verdict.takings += len({entry.epoch for entry in entries})
            if set(ends) != keys or set(ends.values()) - {1} or outcomes - {"done"}:
                verdict.faults.append(f"run {run} has calls without exactly one outcome, done")
            if len(effects) != len(keys) or set(effects.values()) - {1}:
                verdict.faults.append(f"run {run}: {len(keys)} keys, effects {sorted(effects.values())}")
            if await store.inbox.waiting(run):
                verdict.faults.append(f"run {run} has mail that nobody took in")
            checked = await verify(store, run)
            verdict.faults += [f"run {run}, entry {each.position}: {each.what}" for each in checked.faults]
    finally:
        await store.close()
    with psycopg.connect(address) as connection:
        rows = connection.execute(
            "SELECT leases.run, written.position, written.epoch, written.held FROM auditor.written "
            "JOIN shiftbook.leases ON leases.number = written.run ORDER BY 1, 2"
        )
        verdict.faults += [
            f"run {run}, entry {position}: written under lease epoch {epoch} while the run's was {held}"
            for run, position, epoch, held in rows
        ]
    return verdict

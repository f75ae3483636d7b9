"""A recorded session through the live engine, by the rules that docs/design.md sets for a rerun."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shiftbook.entries import ActionFinished, Entry, ModelAnswered, PersonSaid, RunRested
from shiftbook.errors import BadInput
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Store
from shiftbook.messages import Text
from shiftbook.providers.scripted import Scripted, say
from shiftbook.rerun import Rerun, Settings, StopAfter, begin, rerun, take_up
from shiftbook.run.agent import Agent
from shiftbook.run.book import read_entries
from shiftbook.run.desk import NoWatcher
from shiftbook.run.loop import start
from shiftbook.sessions import Session, open_session
from shiftbook.testing.crash import Meanwhile, Seams
from shiftbook.verify import verify
from tests.crash.normal import normal
from tests.rerun import recordings

RUN = "rerun0"


@pytest.fixture
def tangled(tmp_path: Path) -> Session:
    return open_session(recordings.tangled().write(tmp_path / "tangled.jsonl"))


def whole(session: Session, settings: Settings = Settings()) -> tuple[Rerun, list[Entry]]:
    """A rerun that nothing disturbs, and its entries."""

    async def work() -> tuple[Rerun, list[Entry]]:
        store = await open_store(":memory:")
        made = await rerun(store, session, settings, run=RUN)
        entries = await read_entries(store, RUN)
        assert (await verify(store, RUN)).faults == ()
        await store.close()
        return made, entries

    return asyncio.run(work())


def spoken(entries: list[Entry]) -> list[tuple[str, str]]:
    """Who said what, or which call was answered how, in order."""
    told: list[tuple[str, str]] = []
    for entry in entries:
        match entry.what:
            case PersonSaid(content=content, author=author):
                told.append((author, "".join(part.text for part in content if isinstance(part, Text))))
            case ModelAnswered(turn=turn):
                told.append(("model", str(turn)))
            case ActionFinished(call=call, outcome=outcome):
                told.append((outcome, call))
    return told


def test_everything_comes_in_its_recorded_place(tangled: Session) -> None:
    made, entries = whole(tangled)
    batch = [("failed" if number == 4 else "done", f"4.{number}") for number in range(1, 12)]
    [gap] = [said for author, said in spoken(entries) if author == "recording"]
    assert spoken(entries) == [
        ("person", "Count the boats."),
        ("person", "And the piers."),
        ("model", "1"),
        ("done", "1.1"),
        ("done", "1.2"),
        ("person", "Quickly, please."),
        ("model", "2"),
        ("recording", gap),
        ("model", "3"),
        ("unknown", "3.1"),
        ("model", "4"),
        *batch,
        ("person", "Good. What else?"),
        ("model", "5"),
        ("done", "5.1"),
        ("person", "Thank you!"),
    ]
    assert "compaction summary" in gap
    assert "Earlier talk" not in gap
    assert entries[-1].what == RunRested("finished", "the recording ends here")
    assert (made.requests_driven, made.requests_in_file) == (5, 5)
    assert dict(made.named)["reasoning"] == 1
    assert dict(made.named)["compaction summary"] == 1


def test_stamps_follow_the_recording_and_never_go_back(tangled: Session) -> None:
    _, entries = whole(tangled)
    stamps = [entry.at_ms for entry in entries]
    assert stamps == sorted(stamps)
    recorded = {step.at_ms for step in tangled.steps}
    assert {entry.at_ms for entry in entries if isinstance(entry.what, ModelAnswered)} <= recorded


@pytest.mark.parametrize("turn", range(1, 6))
def test_stopped_at_a_boundary_and_taken_up_it_ends_the_same(tangled: Session, turn: int) -> None:
    _, undisturbed = whole(tangled)

    async def work() -> tuple[Rerun, Rerun, list[Entry]]:
        store = await open_store(":memory:")
        first = await rerun(store, tangled, run=RUN, stop_after_turn=turn)
        second = await rerun(store, tangled, resume_run=RUN)
        return first, second, await read_entries(store, RUN)

    first, second, entries = asyncio.run(work())
    assert (first.summary.state, first.requests_driven) == ("paused", turn)
    assert (second.summary.state, second.settings.cap) == ("finished", Settings().cap)
    assert normal(entries, {}, frozenset()) == normal(undisturbed, {}, frozenset())
    assert [entry.at_ms for entry in entries] == sorted(entry.at_ms for entry in entries)


def test_no_stop_costs_a_reply_whenever_it_comes(tangled: Session) -> None:
    """A reply that was cut would be followed by the next one: one would be lost."""
    _, undisturbed = whole(tangled)

    async def work(at: int) -> tuple[int, list[Entry]]:
        seams = Seams(Meanwhile(at, do=lambda: handle.stop()))
        store: Store = seams.store(await open_store(":memory:"))
        handle = await begin(store, tangled, run=RUN)
        async with handle:
            await handle.finish()
        passes = len(seams.passed)
        async with await take_up(store, RUN, session=tangled) as again:
            await again.finish()
        return passes, await read_entries(store, RUN)

    async def begun() -> int:
        seams = Seams()
        async with await begin(seams.store(await open_store(":memory:")), tangled, run=RUN):
            return len(seams.passed)

    passes, _ = asyncio.run(work(10**6))
    first = asyncio.run(begun()) + 1
    assert passes - first > 20
    for at in range(first, passes + 1):
        _, entries = asyncio.run(work(at))
        assert normal(entries, {}, frozenset()) == normal(undisturbed, {}, frozenset()), (
            f"stopped at pass {at}"
        )


def test_a_small_cap_is_kept_to_the_end(tmp_path: Path) -> None:
    session = open_session(recordings.long().write(tmp_path / "long.jsonl"))
    made, entries = whole(session, Settings(cap=1_500))
    assert (made.summary.state, made.requests_driven) == ("finished", 41)
    assert sum(entry.kind == "EpochOpened" for entry in entries) > 3
    made, _ = whole(session, Settings(policy="transcript", cap=1_500))
    assert made.summary.state == "limited"


def test_the_cap_includes_the_filler(tmp_path: Path) -> None:
    session = open_session(recordings.long(8).write(tmp_path / "long.jsonl"))
    _, bare = whole(session, Settings(cap=3_000))
    _, filled = whole(session, Settings(cap=3_000, fixed=2_000))
    rebuilds = [sum(entry.kind == "EpochOpened" for entry in entries) for entries in (bare, filled)]
    assert rebuilds[0] < rebuilds[1]
    with pytest.raises(BadInput, match="below the fixed part"):
        whole(session, Settings(cap=3_000, fixed=3_001))


def test_a_recording_that_changed_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    path = recordings.long(4).write(tmp_path / "tape.jsonl")

    async def work() -> tuple[int, int]:
        store = await open_store(":memory:")
        await rerun(store, open_session(path), run=RUN, stop_after_turn=2)
        before = (await store.entries.head(RUN)).position
        recordings.long(5).write(path)
        with pytest.raises(BadInput, match="reads otherwise"):
            await take_up(store, RUN)
        return before, (await store.entries.head(RUN)).position

    before, after = asyncio.run(work())
    assert before == after


def test_a_run_that_is_no_rerun_is_refused() -> None:
    async def work() -> None:
        store = await open_store(":memory:")
        agent = Agent(name="a", model=Scripted([say("Hello.")]), reference="agent.py:a")
        async with await start(store, agent, "Hi", run=RUN) as handle:
            await handle.finish()
        with pytest.raises(BadInput, match=r"no rerun but of the agent agent\.py:a"):
            await take_up(store, RUN)

    asyncio.run(work())


def test_what_a_watcher_sees_is_passed_on(tangled: Session) -> None:
    seen: list[str] = []

    class Seen(NoWatcher):
        def entry(self, entry: Entry) -> None:
            seen.append(entry.kind)

    async def work() -> list[str]:
        store = await open_store(":memory:")
        watch = StopAfter(Seen(), 1)
        handle = await begin(store, tangled, run=RUN, watcher=watch)
        watch.handle = handle
        async with handle:
            await handle.finish()
        return [entry.kind for entry in await read_entries(store, RUN)]

    assert asyncio.run(work()) == seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tape", "cap", "seed"), [(recordings.tangled(), 20_000, 7), (recordings.long(20), 1_500, 8)]
)
def test_killed_at_random_points_it_ends_the_same(
    tape: recordings.Tape, cap: int, seed: int, tmp_path: Path
) -> None:
    words = [str(tape.write(tmp_path / "tape.jsonl")), str(tmp_path), str(cap), str(seed), "6"]
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.rerun.kills", *words]
    told: dict[str, Any] = json.loads(
        subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
    )
    expected = {name: told["whole"][name] for name in ("entries", "view", "faults")}
    assert expected["faults"] == []
    assert expected["view"]["state"] == "finished"
    assert len(told["killed"]) == 12
    for each in told["killed"]:
        assert each["statuses"][0] == 9, f"was not killed at pass {each['at'][0]}"
        assert each["statuses"][2] == 0
        assert {name: each[name] for name in expected} == expected, f"killed at passes {each['at']}"
    assert any(each["cut_off"] for each in told["killed"])

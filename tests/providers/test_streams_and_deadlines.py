"""A stream that is begun again shows once (L1), and a request that does not end is given up in its time."""

from __future__ import annotations

import asyncio
import io
import sys
from typing import Any

import pytest

from shiftbook.cli.live import Live
from shiftbook.entries import Entry, ModelAnswered, ModelFailed, ModelInterrupted
from shiftbook.journal.open import open_store
from shiftbook.messages import CallDelta, ReplyEvent, Text, TextDelta
from shiftbook.providers.pace import Pace
from shiftbook.providers.scripted import call, calls, say
from shiftbook.run.agent import Agent
from shiftbook.run.limits import Limits
from shiftbook.run.loop import start
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.server import Breaks, Cuts, Drops, Fails, Garbles, Hangs, ProviderServer, Turn, think
from shiftbook.tools.function import tool
from tests.providers.wires import ANTHROPIC, CHAT, RESPONSES, WIRES

EACH = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
WORDS = "All of it is counted, every shelf of it, and the sum is seventeen boxes of tea."


@tool(repeat="safe")
async def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: 12 crates"


class Reader:
    """What somebody shows who knows nothing but the promise of a `Watcher`.

    Words are kept by turn and attempt. An attempt drops the words of those before it at its turn; an entry
    of the journal settles its turn.
    """

    def __init__(self) -> None:
        self.words: dict[int, tuple[int, str]] = {}
        self.thoughts: dict[int, tuple[int, str]] = {}
        self.came: list[tuple[int, int, str]] = []

    def entry(self, entry: Entry) -> None:
        what = entry.what
        if isinstance(what, ModelAnswered | ModelInterrupted):
            told = "".join(part.text for part in what.parts if isinstance(part, Text))
            shown = self.words.get(what.turn, (what.attempt, ""))
            assert shown == (what.attempt, told), "what was shown is what is in the journal"

    def delta(self, turn: int, attempt: int, event: ReplyEvent) -> None:
        if isinstance(event, CallDelta):
            return
        kept = self.words if isinstance(event, TextDelta) else self.thoughts
        self.came.append((turn, attempt, event.text))
        before, text = kept.get(turn, (attempt, ""))
        kept[turn] = (attempt, (text if before == attempt else "") + event.text)

    def progress(self, call: str, message: str) -> None: ...

    @property
    def shown(self) -> str:
        """All that stands on the screen."""
        return "|".join(text for _, (_, text) in sorted(self.words.items()))


def watched(
    wire: Any, script: list[Turn], watcher: Any, limits: Limits = Limits(retry_ms_min=0)
) -> list[Any]:
    """A run of that script under a watcher's eyes; what happened in it."""

    async def scenario(server: ProviderServer) -> list[Any]:
        clock = SimulatedClock()
        store = await open_store(":memory:", clock=clock)
        try:
            agent = Agent(name="w", model=wire.at(server, pace=Pace()), tools=(look,), limits=limits)
            seen: list[Any] = []
            async with await start(store, agent, "Begin.", clock=clock, watcher=watcher) as run:
                seen.extend([entry.what async for entry in run.entries()])
                assert (await run.summary()).state == "finished"
            return seen
        finally:
            await store.close()

    with ProviderServer(script) as server:
        seen = asyncio.run(scenario(server))
    assert len(server.exchanges) == len(script), "one request an attempt"
    return seen


def faulty(wire: Any) -> list[Turn]:
    """Two turns that take several attempts each, none of which got as far as words."""
    one = calls(call("look", {"place": "A"}), text="I look at A first.")
    first = one if wire is CHAT else think("A is the first.", one)
    return [
        Fails(500),
        Breaks(first, "start"),
        Drops(first),
        first,
        Fails(529),
        Garbles(say(WORDS), "start"),
        say(WORDS),
    ]


@EACH
def test_l1_a_retried_stream_shows_once(wire: Any) -> None:
    reader = Reader()
    seen = watched(wire, faulty(wire), reader)
    assert reader.shown == f"I look at A first.|{WORDS}"
    assert sum(isinstance(what, ModelFailed) for what in seen) == 5
    assert {(turn, attempt) for turn, attempt, _ in reader.came} == {(1, 4), (2, 3)}


@pytest.mark.parametrize("wire", [ANTHROPIC, RESPONSES], ids=lambda wire: wire.name)
def test_l1_thoughts_of_an_attempt_that_broke_off_are_superseded(wire: Any) -> None:
    thought = "First comes A, since it is the nearest, and then comes the rest of them in turn."
    whole = think(thought, say(WORDS))
    reader = Reader()
    watched(wire, [Cuts(whole, "reasoning"), Breaks(whole, "reasoning"), whole], reader)
    assert {attempt for _, attempt, _ in reader.came} == {1, 2, 3}, "three attempts were heard of"
    assert "".join(text for *_, text in reader.came).count(thought[:20]) == 3, "and each told it again"
    assert reader.thoughts == {1: (3, thought)}
    assert reader.shown == WORDS


@EACH
def test_l1_words_that_broke_off_stand_once_and_the_next_turn_has_its_own(wire: Any) -> None:
    reader = Reader()
    seen = watched(wire, [Cuts(say(WORDS), "text"), Fails(500), say(WORDS)], reader)
    (broken,) = [what for what in seen if isinstance(what, ModelInterrupted)]
    part = "".join(each.text for each in broken.parts if isinstance(each, Text))
    assert 0 < len(part) < len(WORDS)
    assert reader.shown == f"{part}|{WORDS}"
    assert {(turn, attempt) for turn, attempt, _ in reader.came} == {(1, 1), (2, 2)}


class Terminal(io.StringIO):
    """Stdout as a terminal."""

    def isatty(self) -> bool:
        return True


@EACH
def test_l1_the_command_line_shows_every_reply_once(wire: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    watched(wire, faulty(wire), Live(json=False))
    assert out.getvalue().count(WORDS) == 1
    assert out.getvalue().count("I look at A first.") == 1


@EACH
def test_w2_a_request_that_does_not_end_is_given_up_and_asked_again_once(wire: Any) -> None:
    script: list[Turn] = [Hangs(say("never")), say("Done.")]
    seen = watched(wire, script, Reader(), Limits(request_ms=300, retry_ms_min=0))
    (failed,) = [what for what in seen if isinstance(what, ModelFailed)]
    assert failed.error == "no reply within 0.3 s"
    assert failed.retry_at_ms is not None

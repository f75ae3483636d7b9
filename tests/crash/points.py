"""Every way to die and what comes after it, by a name that can be typed: `make crash SCENARIO=short AT=37`.

37               die at point 37, resume, go on to the end
37+message       the same, and a person writes before the resume
37,12            die at point 37, and again at point 12 of the resume
37+takeover      freeze at point 37 (before a commit); another process takes the run; the first wakes up
37+unconfirmed   the commit before point 37 goes through, and its confirmation is lost
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from shiftbook.entries import Entry
from shiftbook.errors import Fenced, StoreUnusable
from shiftbook.testing.crash import Dies, Fails, Meanwhile, Point, Seams
from tests.crash.invariants import broken
from tests.crash.scenarios import LEASE_MS, LONG, SCENARIOS, Scenario, shift, take_up, work
from tests.crash.sweep import EXTRA, Ground, Process
from tests.crash.tools import write
from tests.crash.virtual import at_once
from tests.crash.world import Violation

Violations = list[Violation]
AT_THE_END = 0
"""A message that comes when the process is through, and that the next one takes."""


class PointMissing(ValueError):
    """The run came to its end without passing that point."""


@dataclass(frozen=True)
class Uncrashed:
    """A run in which nobody died: what the crashed ones are held against."""

    ground: Ground
    process: Process

    @property
    def points(self) -> list[Point]:
        """Every point that was passed."""
        return self.process.seams.passed


@cache
def uncrashed(name: str, message_at: int | None = None) -> Uncrashed:
    """The scenario without a crash; a person writes at a point, if one is named."""
    ground = Ground(SCENARIOS[name])
    if message_at is None:
        return Uncrashed(ground, ground.process())
    if message_at == AT_THE_END:
        ground.process()
        return Uncrashed(ground, ground.process(extra=True))
    return Uncrashed(
        ground, ground.process(Meanwhile(message_at, do=lambda: write(ground.world, EXTRA, "Is it raining?")))
    )


def reference(name: str, at: int, *, message: bool) -> Ground:
    """The uncrashed run with which a crash at that point is compared.

    A message is noticed at the next boundary only. So one run of the long scenario, which is not cheap,
    serves all points up to that, unless another message (of `ring`) comes in between.
    """
    plain = uncrashed(name)
    if not message:
        return plain.ground
    later = [each for each in plain.process.boundaries if each >= at]
    if not later:
        return uncrashed(name, AT_THE_END).ground
    rings = {point.number for point in plain.points if point.seam == "tool.ring"}
    if name != LONG.name or not rings.isdisjoint(range(at, min(later) + 1)):
        return uncrashed(name, at).ground
    return uncrashed(name, min(later)).ground


@dataclass(frozen=True)
class Crashed:
    """What a death left behind."""

    ground: Ground
    before: list[Entry]
    at: int


def crash(scenario: Scenario, at: int, engine: Any = shift, kind: type[Ground] = Ground) -> Crashed:
    """Die at a point."""
    ground = kind(scenario)
    process = ground.process(Dies(at), engine=engine)
    if process.seams.died is None:
        raise PointMissing(f"Scenario {scenario.name} has {len(process.seams.passed)} points, not {at}.")
    return Crashed(ground, ground.journal(), at)


def resumed(crashed: Crashed, *, message: bool = False, engine: Any = shift) -> tuple[Process, Violations]:
    """Resume what a death left, on a copy of it."""
    ground = crashed.ground.fork()
    try:
        process = ground.process(engine=engine, extra=message)
        came = EXTRA in ground.world.posted
        same_as = reference(ground.scenario.name, crashed.at, message=came)
        return process, broken(
            ground, summary=process.summary, error=process.error, before=crashed.before, same_as=same_as
        )
    finally:
        ground.close()


def crash_again(crashed: Crashed, at: int, engine: Any = shift) -> Violations:
    """Die at a point of the resume too, and resume once more."""
    ground = crashed.ground.fork()
    try:
        second = ground.process(Dies(at), engine=engine)
        if second.seams.died is None:
            raise PointMissing(
                f"The resume after point {crashed.at} has {len(second.seams.passed)} points, not {at}."
            )
        before = ground.journal()
        if before[: len(crashed.before)] != crashed.before:
            return [Violation("append_only", "the resume changed what was there at the first crash")]
        third = ground.process(engine=engine)
        same_as = uncrashed(ground.scenario.name).ground
        return broken(ground, summary=third.summary, error=third.error, before=before, same_as=same_as)
    finally:
        ground.close()


def taken_over(scenario: Scenario, at: int, engine: Any = shift, kind: type[Ground] = Ground) -> Violations:
    """Freeze before a commit; the lease runs out, another process takes it; the first wakes and must be
    refused."""
    ground = kind(scenario)
    second = Process(None, Seams())
    inner = ground.open()
    taken: list[Any] = []
    found: Violations = []

    def take() -> None:
        ground.time.reach(ground.time.ms + LEASE_MS + 1)
        store = ground.wrapped(inner, second)
        clock = second.seams.clock(ground.clock())
        taken.append(at_once(take_up(scenario, ground.world, store, clock, second.seams)))

    try:
        first = ground.process(Meanwhile(at, do=take), engine=engine)
        if not isinstance(first.error, Fenced):
            found.append(
                Violation(
                    "one_writer", f"whoever lost the lease was not refused: {first.error or first.summary}"
                )
            )
        ground.live(second, _rest_of(*taken[0]))
        return found + broken(ground, summary=second.summary, error=second.error)
    finally:
        at_once(inner.close())
        ground.close()


async def _rest_of(run: Any, person: Any) -> Any:
    async with run:
        return await work(run, person)


def unconfirmed(scenario: Scenario, at: int, engine: Any = shift, kind: type[Ground] = Ground) -> Violations:
    """The commit before the point went through, and the process is told that nobody knows."""
    ground = kind(scenario)
    try:
        first = ground.process(Fails(at, error=StoreUnusable("the connection was lost")), engine=engine)
        before = ground.journal()
        if not isinstance(first.error, StoreUnusable):
            return [Violation("told", f"a lost confirmation was swallowed: {first.error or first.summary}")]
        second = ground.process(engine=engine)
        same_as = uncrashed(scenario.name).ground
        return broken(ground, summary=second.summary, error=second.error, before=before, same_as=same_as)
    finally:
        ground.close()


def commits(name: str, moment: str) -> list[int]:
    """The points before, or after, the commits of a scenario."""
    return [
        point.number
        for point in uncrashed(name).points
        if point.seam == "entries.append" and point.moment == moment
    ]


def at_point(name: str, at: str, engine: Any = shift) -> Violations:
    """Reproduce one death by its name; see the module."""
    scenario = SCENARIOS[name]
    number, _, way = at.partition("+")
    ways: dict[str, Callable[[], Violations]] = {
        "": lambda: resumed(crash(scenario, int(number), engine), engine=engine)[1],
        "message": lambda: resumed(crash(scenario, int(number), engine), message=True, engine=engine)[1],
        "takeover": lambda: taken_over(scenario, int(number), engine),
        "unconfirmed": lambda: unconfirmed(scenario, int(number), engine),
    }
    if "," in number:
        first, second = map(int, number.split(","))
        return crash_again(crash(scenario, first, engine), second, engine)
    return ways[way]()


def told(name: str, at: str, violations: Violations) -> str:
    """What a failing sweep prints."""
    lines = [f"make crash SCENARIO={name} AT={at}", *(f"  {each}" for each in violations[:5])]
    return "\n".join(lines)

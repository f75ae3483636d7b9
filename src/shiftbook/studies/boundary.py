"""What of a session is still in the prompt when the next turn needs it, right after a recorded compaction?

For every policy, at each recorded compaction, the prompt that it builds within a size; beside it, at equal
size, the account that was really written there, alone and with the newest turns behind it. Of the identifiers
that were needed later (`boundaries`) the share that stands in each is counted, once more without lines that
are nothing but lists of identifiers, and how many are shown for one that was needed. What recall brings back
is asked with the words of the turn, its needed identifiers taken out.

Deterministic and without any model: the same files and version give the same bytes. `notes` has its account
by rule here. Refused: judging a text by anything but what stands in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from shiftbook._version import VERSION
from shiftbook.entries import Entry
from shiftbook.errors import BadInput, SessionUnreadable
from shiftbook.messages import Block, Json, Text
from shiftbook.policies import POLICIES
from shiftbook.prompt.measure import Gauge
from shiftbook.sessions import Session, each_session, files_under
from shiftbook.studies.boundaries import Boundary, boundaries
from shiftbook.studies.lives import held_at, journal_of
from shiftbook.studies.looking import Looked, looked_for
from shiftbook.studies.survival import Outcome, outcome, table_of
from shiftbook.tokens import BpeMeter, Meter

SUMMARY = "summary"
SUMMARY_AND_TAIL = "summary and newest turns"
OWN = "own"
"""The size of the recorded account itself."""

CAPS = (3_000, 20_000)
PARTS = ("1st, 3rd ... file", "2nd, 4th ... file")
"""Halves of the files as they come. On which of any files constants were chosen, a study cannot know."""

Told = Callable[[str], None]
"""Takes a line on what is being done, for people."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to study. Empty: 3,000 and 20,000 tokens, every policy. The account's own size is always there."""

    caps: tuple[int, ...] = ()
    policies: tuple[str, ...] = ()

    def checked(self) -> Options:
        """The same, or `BadInput` with one sentence."""
        for name in self.policies:
            if name not in (*POLICIES, SUMMARY):
                known = ", ".join((*POLICIES, SUMMARY))
                raise BadInput(f"There is no policy {name!r} to study; choose of: {known}.")
        if any(cap < 1 for cap in self.caps):
            raise BadInput("A cap is a number of tokens, at least 1.")
        return self


@dataclass(frozen=True, slots=True)
class _Studied:
    """A session with its boundaries. `part` says which half of the files it belongs to."""

    name: str
    part: str
    session: Session
    boundaries: tuple[Boundary, ...]


async def study_boundary(data: Path, options: Options, command: str, told: Told) -> dict[str, Json]:
    """The whole study as one value: a row for each boundary, policy and cap, and the table of the figures."""
    options.checked()
    caps = options.caps or CAPS
    meter: Meter = BpeMeter()
    found: list[Outcome] = []
    looked: list[Looked] = []
    sessions = bounds = 0
    for studied in _studied(data):
        sessions += 1
        bounds += len(studied.boundaries)
        told(f"{studied.name}: {len(studied.boundaries)} compactions")
        entries = None
        for policy in options.policies or (*POLICIES, SUMMARY):
            if policy == SUMMARY:
                entries = entries or await journal_of(studied.session, "window", max(caps))
                found += _of_accounts(studied, entries, caps, meter)
            else:
                entries = await journal_of(studied.session, policy, max(caps))
                found += _of_policy(studied, entries, policy, caps, meter)
        if entries is not None:
            looked += looked_for(
                studied.name, studied.part, studied.boundaries, entries, Gauge(meter=meter, bound=meter)
            )
    if not found:
        raise BadInput(f"There is no session with a recorded compaction in {data}.")
    return {
        "study": "boundary",
        "command": command,
        "version": VERSION,
        "meter": meter.name,
        "sessions": sessions,
        "boundaries": bounds,
        "caps": list(caps),
        "rows": [each.row() for each in found],
        "table": table_of(found, looked),
    }


def _of_policy(
    studied: _Studied, entries: Sequence[Entry], policy: str, caps: Sequence[int], meter: Meter
) -> Iterator[Outcome]:
    gauge = Gauge(meter=meter, bound=meter)
    sizes = [_sizes(each, caps, gauge) for each in studied.boundaries]
    turns = [each.turn for each in studied.boundaries]
    wanted = [sorted(set(each.values())) for each in sizes]
    held = held_at(entries, policy, turns, wanted, gauge)
    for boundary, size, prompts in zip(studied.boundaries, sizes, held, strict=True):
        for name, tokens in size.items():
            yield outcome(studied.name, studied.part, boundary, policy, name, prompts[tokens], gauge)


def _of_accounts(
    studied: _Studied, entries: Sequence[Entry], caps: Sequence[int], meter: Meter
) -> Iterator[Outcome]:
    """The recorded account: as it is, from its beginning where a cap is smaller, and with the newest turns
    behind it where one is larger."""
    gauge = Gauge(meter=meter, bound=meter)
    sizes = [_sizes(each, caps, gauge) for each in studied.boundaries]
    own = [size[OWN] for size in sizes]
    turns = [each.turn for each in studied.boundaries]
    left = [sorted({max(tokens - size[OWN], 0) for tokens in size.values()}) for size in sizes]
    tails = held_at(entries, "window", turns, left, gauge)
    for boundary, size, account, tail in zip(studied.boundaries, sizes, own, tails, strict=True):
        for name, tokens in size.items():
            block = _account(boundary, tokens, gauge)
            yield outcome(studied.name, studied.part, boundary, SUMMARY, name, [block], gauge)
            if tokens > account:
                blocks = [block, *tail[tokens - account]]
                yield outcome(studied.name, studied.part, boundary, SUMMARY_AND_TAIL, name, blocks, gauge)


def _sizes(boundary: Boundary, caps: Sequence[int], gauge: Gauge) -> dict[str, int]:
    """Each size in tokens by the name of its column."""
    own = gauge.fixed + gauge.measure(_block(boundary.summary.text))
    return {OWN: own, **{str(cap): cap for cap in caps}}


def _account(boundary: Boundary, size: int, gauge: Gauge) -> Block:
    """The recorded account within a size: its beginning, where it is longer."""
    text = boundary.summary.text
    while gauge.fixed + gauge.measure(_block(text)) > size:
        tokens = gauge.measure(_block(text))
        text = text[: min(len(text) - 1, len(text) * max(size - gauge.fixed, 0) // tokens)]
    return _block(text)


def _block(text: str) -> Block:
    return Block("user", (Text(text),), SUMMARY)


def _studied(data: Path) -> Iterator[_Studied]:
    """The sessions with a compaction in a file or a folder; halves by the place of the file in the order."""
    for place, path in enumerate(path for path, _ in files_under([data])):
        try:
            for session in each_session(path):
                if bounds := boundaries(session):
                    yield _Studied(f"{path.name}#{session.number}", PARTS[place % 2], session, tuple(bounds))
        except SessionUnreadable:
            if path == data:
                raise

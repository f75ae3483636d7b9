"""What the server answered and what our reader found, as the same few sums, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from shiftbook.errors import SessionUnreadable
from shiftbook.messages import Call, Reasoning
from shiftbook.sessions import FORMATS, RecordedRequests, RequestRow, each_session, walk_requests
from shiftbook.sessions.formats import recognised
from shiftbook.sessions.requests import Kind
from shiftbook.sessions.walk import files_under
from shiftbook.testing.server import Exchange

_KINDS: tuple[Kind, ...] = ("main", "subagent", "compaction", "other")
_DRIVEN = {known.name for known in FORMATS if known.sessions is not None}
_SAID = ("calls", "batches", "answers")


@dataclass(frozen=True, slots=True)
class Figures:
    """Sums over the requests that tell the count; None where none of them does.

    `kinds` is requests by kind, `calls` and `answers` are those of tools; `batches` is the replies that make
    several calls. `compactions` counts marks.
    """

    requests: int
    prompt: int | None
    read: int | None
    written: int | None
    output: int | None
    reasoning: int | None
    kinds: tuple[int, ...]
    calls: int | None
    batches: int | None
    answers: int | None
    compactions: int


@dataclass(frozen=True, slots=True)
class Found:
    """Our reader's figures, and what else it told: formats, how usage came, what was broken."""

    figures: Figures
    formats: tuple[str, ...]
    sources: tuple[str, ...]
    broken: tuple[str, ...]


def of_server(exchanges: Sequence[Exchange], kinds: Mapping[Kind, int], compactions: int) -> Figures:
    """The truth. A request that stands in the body of a later one has been answered."""
    counts = [each.count for each in exchanges if each.count is not None]
    outputs = [each.output for each in exchanges if each.output is not None]
    batches = [list(filter(_is_call, each.reply.parts)) for each in exchanges if each.reply is not None]
    by_kind: dict[Kind, int] = {"main": len(exchanges) - sum(kinds.values()), **kinds}
    made = sum(map(len, batches))
    return Figures(
        requests=len(exchanges),
        prompt=sum(count.prompt for count in counts),
        read=sum(count.read for count in counts),
        written=sum(count.write_5m + count.write_1h for count in counts),
        output=sum(output.total for output in outputs),
        reasoning=sum(output.reasoning for output in outputs),
        kinds=tuple(by_kind.get(kind, 0) for kind in _KINDS),
        calls=made,
        batches=sum(1 for each in batches if len(each) > 1),
        answers=made,
        compactions=compactions,
    )


def of_files(path: Path) -> Found:
    """What the walk of `measure` finds under a path, and the calls that the driven formats tell of."""
    told = list(walk_requests([path]))
    sessions = [each for each in told if isinstance(each, RecordedRequests)]
    unread = [
        f"{Path(each.path).name}: {each.what}" for each in told if not isinstance(each, RecordedRequests)
    ]
    rows = [row for each in sessions for row in each.rows]
    calls = _calls(path)
    return Found(
        Figures(
            requests=sum(row.requests for row in rows),
            prompt=_sum(row.usage.prompt for row in rows),
            read=_sum(row.usage.cache_read for row in rows),
            written=_sum(row.usage.cache_write for row in rows),
            output=_sum(row.usage.output for row in rows),
            reasoning=_sum(row.usage.reasoning for row in rows),
            kinds=tuple(_of_kind(rows, kind) for kind in _KINDS),
            calls=None if calls is None else sum(made for made, _ in calls),
            batches=None if calls is None else sum(1 for made, _ in calls if made > 1),
            answers=None if calls is None else sum(answered for _, answered in calls),
            compactions=sum(1 for each in sessions for mark in each.marks if mark.what == "compaction"),
        ),
        formats=tuple(sorted({each.format for each in sessions})),
        sources=tuple(sorted({row.source for row in rows})),
        broken=(*unread, *(fault.what for each in sessions for fault in each.broken)),
    )


def unlike(ours: Figures, servers: Figures) -> dict[str, tuple[object, object]]:
    """The figures that differ, ours first. A wire leaves out what is nought, so None is no difference to it;
    calls are compared where the format is one whose words are read."""
    mine, theirs = asdict(ours), asdict(servers)
    left_out = {name for name in mine if mine[name] is None and (name in _SAID or theirs[name] == 0)}
    return {
        name: (mine[name], theirs[name])
        for name in mine
        if mine[name] != theirs[name] and name not in left_out
    }


def _is_call(part: object) -> bool:
    """A call, or one that the script sends as the vendor's own block."""
    if isinstance(part, Reasoning):
        return isinstance(part.opaque, Mapping) and part.opaque.get("type") in ("function_call", "tool_use")
    return isinstance(part, Call)


def _of_kind(rows: Iterable[RequestRow], kind: Kind) -> int:
    return sum(row.requests for row in rows if row.kind == kind)


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum of what is known; None when nothing is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _calls(path: Path) -> list[tuple[int, int]] | None:
    """Calls and answers of each reply in the files of driven formats; None when there is no such file."""
    found: list[tuple[int, int]] | None = None
    for file, _ in files_under([path]):
        try:
            _, known = recognised(file)
            if known.name in _DRIVEN:
                for session in each_session(file):
                    found = found or []
                    found += [
                        (len(reply.calls), sum(answer is not None for answer in reply.answers))
                        for reply in session.replies
                    ]
        except SessionUnreadable:
            continue
    return found

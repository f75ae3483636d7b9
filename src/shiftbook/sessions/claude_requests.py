"""The requests of a Claude Code file: one a `requestId`, whatever its lines repeat.

Two to ten lines tell of one request, each with a usage that grows or repeats: the last one counts, and a
plain sum over lines is two to three times too high. Lines are put together by `requestId`, and where that
is absent by `message.id`. `<synthetic>` and API-error replies were written by the tool: no request. A
request that another file of the same walk has told is a copy, which a resumed session makes.

Lines link to a parent. A request that does not lie on the way from the last line back to the first was
rewound: it is priced on a branch of its own, "rewind-N". A parent that is not in the file counts as the
line before. Sidechain lines are a sub-agent's, one branch an `agentId`, else one a chain.

A line is parsed only where `sessions.claude_lines` cannot tell what rows need of it.

A `compact_boundary` line marks a compaction, and so does a summary line that has none before it. A
compaction without any line (the tool clears old results silently) is left to who looks at the figures.
What a boundary names as preserved is a copy: a fork writes it with a usage of zeros, and the true one stands
in the other file. Elsewhere zeros are what a proxy writes that counts nothing: missing.
What a file shows of reasoning switched on or off, and of a program that began anew, is marked as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from shiftbook.economics.usage_forms import anthropic, anthropic_passes
from shiftbook.sessions.claude_lines import glance
from shiftbook.sessions.claude_settings import ClaudeSettings, blocks_of, parts_of
from shiftbook.sessions.loose import inner, stamp_ms, text, whole
from shiftbook.sessions.normal import RecordedUsage
from shiftbook.sessions.requests import Answered, Kind, RecordedRequests
from shiftbook.sessions.rows import MISSING, RowDraft, Seen, recorded
from shiftbook.sessions.source import Source
from shiftbook.sessions.streaming import Faults, parsed, raw_lines

NAME = "claude-code"

_NO_PARENT = -1
_COUNTED = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_HELPERS: Mapping[str, Kind] = {"acompact": "compaction", "aprompt_suggestion": "other"}
"""Openings of the agent ids that Claude Code gives its own helpers."""


@dataclass(slots=True)
class _Request:
    """One request while its lines come in; `nodes` are the linked lines that tell of it."""

    key: str
    request: str
    line: int
    at_ms: int | None
    model: str | None
    agent: str | None
    side: bool
    usage: Mapping[str, object] | None = None
    nodes: list[int] = field(default_factory=list)
    branch: str = ""
    blocks: int = 0
    answers: Answered | None = None
    diagnosis: str | None = None
    preserved: bool = False


@dataclass(slots=True)
class _Links:
    """The tree of lines: a number for each uuid, and the number of its parent."""

    numbers: dict[str, int] = field(default_factory=dict)
    parents: list[int] = field(default_factory=list)
    sides: list[bool] = field(default_factory=list)
    later: dict[int, str] = field(default_factory=dict)
    last: dict[bool, int] = field(default_factory=lambda: {False: _NO_PARENT, True: _NO_PARENT})

    def add(self, uuid: str, parent: str | None, side: bool) -> int:
        """The number of a new line."""
        number = len(self.parents)
        self.numbers[uuid] = number
        known = None if parent is None else self.numbers.get(parent)
        if known is None and parent is not None:
            self.later[number] = parent
        # A sub-agent's chain begins without a parent; a main line without one goes on with what stands above.
        before = _NO_PARENT if side and parent is None else self.last[side]
        self.parents.append(before if known is None else known)
        self.sides.append(side)
        self.last[side] = number
        return number

    def settle(self) -> None:
        """Give the lines that stood above their parents those parents."""
        for number, parent in self.later.items():
            known = self.numbers.get(parent)
            if known is not None:
                self.parents[number] = known
        self.numbers.clear()

    def way_back(self, number: int) -> Iterator[int]:
        """A line and its ancestors, each once: a circle of parents ends where it closes."""
        walked: set[int] = set()
        while number != _NO_PARENT and number not in walked:
            walked.add(number)
            yield number
            number = self.parents[number]


class _File:
    """One file while it is read."""

    def __init__(self, source: Source, seen: Seen) -> None:
        self._draft = RowDraft(NAME, source.path, "", Faults())
        self._seen = seen
        self._links = _Links()
        self._requests: dict[str, _Request] = {}
        self._by_message: dict[str, str] = {}
        self._lines = {False: 0, True: 0}
        self._boundary_open = False
        self._preserved: set[str] = set()
        self._settings = ClaudeSettings()

    @property
    def faults(self) -> Faults:
        """The broken lines."""
        return self._draft.faults

    def take(self, value: Mapping[str, object], line: int) -> None:
        """One line of the file."""
        kind = value.get("type")
        if not isinstance(kind, str):
            self.faults.add(line, 'has no "type"')
            return
        side = value.get("isSidechain") is True
        uuid, node = text(value, "uuid"), None
        if uuid is not None:
            if uuid in self._links.numbers:
                return
            parent = text(value, "parentUuid") or text(value, "logicalParentUuid")
            node = self._links.add(uuid, parent, side)
        self._draft.name = text(value, "sessionId") or self._draft.name
        if kind == "assistant":
            self._reply(value, line, side, node)
        elif kind == "user":
            self._lines[side] += 1
            if value.get("isCompactSummary") is True and not self._boundary_open:
                self._draft.mark("compaction", line, at_ms=stamp_ms(value, "timestamp"))
            self._boundary_open = False
            if not side:
                self._settings.user(value, line)
        elif kind == "system":
            self._boundary(value, line)

    def _boundary(self, value: Mapping[str, object], line: int) -> None:
        what = value.get("subtype")
        if what not in ("compact_boundary", "microcompact_boundary"):
            return
        told = inner(value, "compactMetadata" if what == "compact_boundary" else "microcompactMetadata")
        by = text(told, "trigger") if what == "compact_boundary" else "micro-compaction"
        tokens = whole(told, "preTokens")
        kept = inner(told, "preservedMessages")
        for name in ("uuids", "allUuids"):
            uuids = kept.get(name)
            self._preserved.update(map(str, uuids) if isinstance(uuids, list) else ())
        self._boundary_open = what == "compact_boundary"
        own = text(value, "uuid")
        # A forked session begins with a copy of the old one, its boundaries too.
        if own is not None and self._seen.again(NAME, f"{what} {own}"):
            return
        self._draft.mark("compaction", line, at_ms=stamp_ms(value, "timestamp"), tokens=tokens, by=by)

    def _reply(self, value: Mapping[str, object], line: int, side: bool, node: int | None) -> None:
        message = inner(value, "message")
        model = text(message, "model")
        if model == "<synthetic>" or value.get("isApiErrorMessage") is True:
            return
        self._lines[side] += 1
        parts = parts_of(message)
        if not side:
            self._settings.reply(value, parts, line)
        request, message_id = text(value, "requestId"), text(message, "id")
        if request is not None:
            key = f"request {request}"
        else:
            key = self._by_message.get(message_id or "", f"message {message_id}" if message_id else "")
            key = key or f"line {line}"
        if message_id is not None:
            self._by_message.setdefault(message_id, key)
        found = self._requests.get(key)
        if found is None:
            found = self._requests[key] = _Request(
                key=key,
                request=request or message_id or "",
                line=line,
                at_ms=stamp_ms(value, "timestamp"),
                model=model,
                agent=text(value, "agentId"),
                side=side,
                answers=None if side else self._settings.asked(),
            )
        found.blocks += blocks_of(parts)
        usage = inner(message, "usage")
        if usage:
            found.usage = usage
        if self._preserved and text(value, "uuid") in self._preserved:
            found.preserved = True
        if message.get("diagnostics"):
            found.diagnosis = text(_diagnosed(message), "type") or found.diagnosis
        if node is not None:
            found.nodes.append(node)

    def closed(self) -> RecordedRequests:
        """The rows, each on its branch."""
        self._links.settle()
        all_side = self._lines[True] > 0 and self._lines[False] == 0
        self._lay_branches()
        for line, on in self._settings.switches():
            self._draft.mark("reasoning", line, by="on" if on else "off")
        for line in self._settings.restarts():
            self._draft.mark("restart", line)
        for line in self._settings.plans():
            self._draft.mark("plan", line)
        copied: _Request | None = None
        for request in self._requests.values():
            if request.preserved and _is_blank(request.usage):
                self._draft.copy()
                continue
            if request.request and self._seen.again(NAME, request.key):
                self._draft.copy()
                copied = request
                continue
            if copied is not None and not request.side:
                tokens = _passes(copied)[-1].prompt
                self._draft.mark("resume", request.line, at_ms=request.at_ms, tokens=tokens)
                copied = None
            self._rows_of(request, all_side)
        return self._draft.closed()

    def _rows_of(self, request: _Request, all_side: bool) -> None:
        kind: Kind = "main"
        if request.side:
            agent = request.agent or ""
            kind = next((kind for opening, kind in _HELPERS.items() if agent.startswith(opening)), "subagent")
        *summaries, answer = _passes(request)
        branch = request.agent or "agent" if all_side else request.branch
        for usage in summaries:
            self._draft.row(
                usage,
                request.line,
                at_ms=request.at_ms,
                model=request.model,
                branch=branch,
                kind="compaction",
            )
        self._draft.row(
            answer,
            request.line,
            at_ms=request.at_ms,
            model=request.model,
            request=request.request or None,
            branch=branch,
            kind=kind,
            blocks=request.blocks or None,
            answers=request.answers,
            diagnosis=request.diagnosis,
        )

    def _lay_branches(self) -> None:
        """Name the branch of each request: by its agent, by its chain, or as rewound."""
        links = self._links
        on_way = set(links.way_back(links.last[False]))
        names: dict[int, str] = {}
        rewinds = chains = 0
        for request in self._requests.values():
            if request.side and request.agent:
                request.branch = request.agent
                continue
            if not request.nodes or (not request.side and any(node in on_way for node in request.nodes)):
                continue
            way: list[int] = []
            name: str | None = None
            for node in links.way_back(request.nodes[0]):
                if node in names or (not request.side and node in on_way):
                    name = names.get(node)
                    break
                if request.side and not links.sides[node]:
                    break
                way.append(node)
            if name is None and request.side:
                chains += 1
                name = f"side-{chains}"
            elif name is None:
                rewinds += 1
                name = f"rewind-{rewinds}"
                self._draft.mark("rewind", request.line, at_ms=request.at_ms, branch=name)
            names.update(dict.fromkeys(way, name))
            request.branch = name


def _diagnosed(message: Mapping[str, object]) -> Mapping[str, object]:
    """The vendor's diagnosis of a lost cache; the client asks for one and keeps the reply as it came."""
    return inner(inner(message, "diagnostics"), "cache_miss_reason")


def _is_blank(usage: Mapping[str, object] | None) -> bool:
    """Whether a usage counts nothing at all: no request has a prompt of no tokens."""
    counts = [] if usage is None else [usage[name] for name in _COUNTED if name in usage]
    return bool(counts) and not any(counts)


def _passes(request: _Request) -> list[RecordedUsage]:
    """What the vendor billed for a request: summaries inside it, then the answer."""
    if request.usage is None or _is_blank(request.usage):
        return [MISSING]
    if "iterations" not in request.usage:
        return [recorded(anthropic(request.usage))]
    return [recorded(usage) for usage in anthropic_passes(request.usage)]


def requests(source: Source, seen: Seen, *, quick: bool = True) -> Iterator[RecordedRequests]:
    """A file is one session. Without `quick` every line is parsed, for the same rows in more time."""
    file = _File(source, seen)
    for number, line in raw_lines(source, file.faults):
        value = (glance(line) if quick else None) or parsed(line, number, file.faults)
        if value is not None:
            file.take(value, number)
    yield file.closed()

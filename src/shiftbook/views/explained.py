"""Why a prompt is what it is: what each block was made of, and why an entry that is not there is not.

The prompt is made again from the journal and held against its digest first. The reasons are what the journal
says: the figures of the epoch's opening, the warnings, the lines struck from a report. Nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from shiftbook.entries import (
    MODEL_VISIBLE,
    EpochOpened,
    LineStruck,
    ModelAsked,
    Recalled,
    ReportAnswered,
    ReportAsked,
    ReportWritten,
    Warned,
)
from shiftbook.journal.promises import PAGE_ROWS, Store
from shiftbook.messages import Usage
from shiftbook.prompt.brief import BRIEF_FORMS, BRIEF_KINDS, NAMING
from shiftbook.prompt.epoch import EpochPrompt
from shiftbook.prompt.wording import RECALLED_BY_CODE
from shiftbook.views.prompts import MadeAgain, made_again
from shiftbook.views.rows import entries_of

OF_REPORTS = frozenset({"report by rule", "report cut"})
"""Warnings that hold for as long as their report is shown."""

_VISIBLE = {kind.__name__ for kind in MODEL_VISIBLE}


class ExplainedBlock(TypedDict):
    """A block: its kind, the form its entries have in it, the characters kept of each (None: all)."""

    kind: str
    form: str
    kept: int | None
    tokens: int
    entries: list[int]


class LeftOut(TypedDict):
    """Model-visible entries from `first` to `last` that the prompt does not show, and why."""

    first: int
    last: int
    entries: int
    why: str


class ExplainedReport(TypedDict):
    """The report in a prompt. `requests` were made of a model for it, of `tokens` prompt tokens by our meter.

    `read` is the share of their prompts that the provider read from its cache; None where it did not say.
    """

    entry: int
    writer: str
    first: int
    last: int
    lines: int
    requests: int
    tokens: int
    read: float | None


class ExplainedRecall(TypedDict):
    """Entries that code brought back for this epoch's prompts: `shown` of `found` within `room` tokens.

    `asked_by` is a message or a rebuild; entries that are of use and not found were worth less for a token.
    """

    at: int
    asked_by: str
    query: str
    found: int
    shown: int
    room: int


class ExplainView(TypedDict):
    """A turn's prompt explained. `reason` and `numbers` are those of its epoch's opening, at `opened`.

    `warnings` and `struck` were written for this request, or for its epoch's opening. `report` is None where
    the prompt holds none.
    """

    turn: int
    policy: str
    cap: int
    tokens: int
    meter: str
    epoch: int
    opened: int
    reason: str
    numbers: dict[str, int]
    fixed: int
    blocks: list[ExplainedBlock]
    recalled: list[ExplainedRecall]
    left_out: list[LeftOut]
    warnings: list[str]
    struck: list[str]
    report: ExplainedReport | None


async def explain_view(store: Store, run: str, turn: int | None = None) -> ExplainView:
    """The prompt of turn `turn`, of the newest for None, explained.

    Raises what `prompt_view` raises. Reads the kinds of all rows before the turn, and its epoch's entries.
    """
    made = await made_again(store, run, turn)
    told = await _told(store, run, made)
    return ExplainView(
        turn=made.asked.turn,
        policy=made.agent.policy,
        cap=made.agent.cap,
        tokens=made.asked.tokens,
        meter=made.asked.meter,
        epoch=made.prompt.epoch,
        opened=made.opened_at,
        reason=told.opening.reason,
        numbers=dict(told.opening.numbers),
        fixed=made.gauge.fixed,
        blocks=_blocks(made),
        recalled=told.recalled,
        left_out=_left_out(made.prompt, await _visible(store, run, made.asked_at)),
        warnings=told.warnings,
        struck=told.struck,
        report=_report(made.prompt, told),
    )


class _Told:
    """What the journal says beside the prompt."""

    def __init__(self) -> None:
        self.opening = EpochOpened(0, "")
        self.recalled: list[ExplainedRecall] = []
        self.warnings: list[str] = []
        self.struck: list[str] = []
        self.asked: list[ReportAsked] = []
        """What a model was asked since the request before the epoch's opening."""
        self.usages: list[Usage] = []


async def _told(store: Store, run: str, made: MadeAgain) -> _Told:
    told = _Told()
    pending: list[Warned | LineStruck] = []
    shown = {pick.first for pick in made.prompt.picks if pick.form == "recalled"}
    kept = made.prompt.shown
    # The report and its struck lines, and the warnings, stand right before the epoch's opening.
    rows_before = max(made.opened_at - 1 - PAGE_ROWS, 0)
    async for entry in entries_of(store, run, rows_before, made.asked_at):
        match entry.what:
            case Warned() | LineStruck() as what:
                pending.append(what)
            case EpochOpened() as what:
                told.opening = what
            case ReportAsked() as what if entry.position < made.opened_at:
                told.asked.append(what)
            case ReportAnswered(usage=usage) if entry.position < made.opened_at:
                told.usages.append(usage)
            case Recalled(asked_by=by) as what if by in RECALLED_BY_CODE and entry.position in kept:
                told.recalled.append(_recall(entry.position, what, shown))
            case ModelAsked() if entry.position < made.opened_at:
                pending, told.asked, told.usages = [], [], []
            case ModelAsked() if entry.position < made.asked_at:
                pending = [
                    each for each in pending if isinstance(each, LineStruck) or each.what in OF_REPORTS
                ]
    for each in pending:
        if isinstance(each, Warned):
            told.warnings.append(each.detail)
        else:
            told.struck.append(f"{each.line.text}: {each.why}")
    return told


def _report(prompt: EpochPrompt, told: _Told) -> ExplainedReport | None:
    for entry in prompt.shown.values():
        if isinstance(entry.what, ReportWritten):
            read, whole = [each.cache_read for each in told.usages], [each.prompt for each in told.usages]
            is_known = bool(whole) and None not in read and all(whole)
            return ExplainedReport(
                entry=entry.position,
                writer=entry.what.writer,
                first=entry.what.first,
                last=entry.what.last,
                lines=len(entry.what.lines),
                requests=len(told.asked),
                tokens=sum(asked.tokens for asked in told.asked),
                read=sum(filter(None, read)) / sum(filter(None, whole)) if is_known else None,
            )
    return None


def _recall(at: int, what: Recalled, shown: set[int]) -> ExplainedRecall:
    return ExplainedRecall(
        at=at,
        asked_by=what.asked_by,
        query=what.query,
        found=len(what.found),
        shown=len(shown.intersection(what.found)),
        room=what.room,
    )


def _blocks(made: MadeAgain) -> list[ExplainedBlock]:
    forms: dict[int, tuple[str, int | None]] = {}
    sections: dict[str, int | None] = {}
    for pick in made.prompt.picks:
        if pick.form in BRIEF_FORMS or pick.form == "dropped":
            sections[pick.form] = pick.keep
        else:
            forms.update((at, (pick.form, pick.keep)) for at in range(pick.first, pick.last + 1))
    rows: list[ExplainedBlock] = []
    for block in made.prompt.blocks:
        if block.kind in sections:
            form, kept = block.kind, sections[block.kind]
        else:
            form, kept = forms.get(block.entries[-1], ("", None))
        rows.append(
            ExplainedBlock(
                kind=block.kind,
                form=form,
                kept=kept,
                tokens=made.gauge.measure(block),
                entries=list(block.entries),
            )
        )
    return rows


async def _visible(store: Store, run: str, until: int) -> list[tuple[int, str]]:
    """Position and kind of every model-visible entry before `until`."""
    found: list[tuple[int, str]] = []
    after = 0
    while after < until and (rows := await store.entries.read(run, after, PAGE_ROWS)):
        found += [(row.position, row.kind) for row in rows if row.kind in _VISIBLE and row.position < until]
        after = rows[-1].position
    return found


def _left_out(prompt: EpochPrompt, visible: Iterable[tuple[int, str]]) -> list[LeftOut]:
    shown = {at for block in prompt.blocks if block.kind not in NAMING for at in block.entries}
    reports = [(e.position, e.what) for e in prompt.shown.values() if isinstance(e.what, ReportWritten)]
    notices = [pick for pick in prompt.picks if pick.form == "dropped"]
    forms = {pick.form for pick in prompt.picks}
    briefed = {kind.__name__ for form, kind in BRIEF_KINDS.items() if form in forms and form != "working"}

    def why(at: int, kind: str) -> str:
        if kind in briefed:
            return "replaced or withdrawn since: the brief tells what stands"
        if kind == "ReportWritten":
            return "another report has taken its place"
        if kind == "Recalled":
            return "a line before entries that were brought back; they have left, or nothing was found"
        for position, report in reports:
            if report.first <= at <= report.last:
                return f"left the prompt; told by the report of entry {position}"
        if any(pick.first <= at <= pick.last for pick in notices):
            return "dropped for want of room; a notice says so"
        return "in no block of this prompt"

    rows: list[LeftOut] = []
    is_open = False
    for at, kind in visible:
        if at in shown:
            is_open = False
            continue
        reason = why(at, kind)
        if is_open and rows[-1]["why"] == reason:
            rows[-1]["last"] = at
            rows[-1]["entries"] += 1
        else:
            rows.append(LeftOut(first=at, last=at, entries=1, why=reason))
        is_open = True
    return rows

"""What is kept or dropped together: a reply with all its answers, or one thing that was said.

Vendors want answers directly after their calls, and nothing else between. So fresh entries are arranged: the
replies to the last request first, each with its answers, then whatever was said meanwhile, which no reply has
seen yet. Refused, by an error: a call without exactly one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from shiftbook.entries import (
    ActionFinished,
    Entry,
    ModelAnswered,
    ModelInterrupted,
    PersonSaid,
    Pick,
    Recalled,
    ReportWritten,
)
from shiftbook.errors import Damaged
from shiftbook.messages import Reasoning
from shiftbook.prompt.brief import APART, BRIEF_KINDS
from shiftbook.prompt.epoch import EpochPrompt, Made, Measure
from shiftbook.prompt.grow import merged
from shiftbook.prompt.render import LIVE, calls_of, render_entry
from shiftbook.prompt.wording import RECALLED_BY_CODE


@dataclass(frozen=True, slots=True)
class Piece:
    """One entry and how it is shown."""

    entry: Entry
    form: str = "whole"
    keep: int | None = None

    @property
    def pick(self) -> Pick:
        """The piece as a recipe names it."""
        return Pick(self.entry.position, self.entry.position, self.form, self.keep)

    @property
    def is_persons(self) -> bool:
        """Whether somebody outside said it: such words are cut last."""
        return isinstance(self.entry.what, PersonSaid)

    @property
    def kept(self) -> Piece:
        """The same in the form that crosses a rebuild, if it is live."""
        return Piece(self.entry, "kept", self.keep) if self.form in LIVE else self

    def cut_to(self, keep: int) -> Piece:
        """The same within `keep` characters; what is told as a record stays one."""
        return Piece(self.entry, "quoted" if self.form == "quoted" else "cut", keep)

    def made(self, measure: Measure) -> Made:
        """Its blocks and their sizes."""
        blocks = render_entry(self.entry, self.form, self.keep)
        return tuple([(block, measure(block)) for block in blocks])

    def tokens(self, measure: Measure) -> int:
        """Its size in the prompt."""
        return sum([measure(block) for block in render_entry(self.entry, self.form, self.keep)])


Unit = tuple[Piece, ...]

_PARTED = 0
"""No position: in an order of positions it stands where no two are neighbours."""


def fresh_units(fresh: Sequence[Entry], tools: frozenset[str] | None) -> list[Unit]:
    """The fresh entries as units in the prompt's order, live, or quoted where a tool is not declared."""
    answers = {e.what.call: e for e in fresh if isinstance(e.what, ActionFinished)}
    if len(answers) != sum(isinstance(entry.what, ActionFinished) for entry in fresh):
        raise Damaged("A call has a second answer; `shiftbook verify RUN` says where.")
    replies: list[Unit] = []
    others: list[Unit] = []
    for entry in fresh:
        if isinstance(entry.what, ModelAnswered):
            replies.append(_reply(entry, answers, tools))
        elif isinstance(entry.what, ModelInterrupted):
            replies.append((Piece(entry),))
        elif not (isinstance(entry.what, ActionFinished) or is_by_code(entry)):
            others.append((Piece(entry),))
    if answers:
        raise Damaged(
            f"Call {next(iter(answers))} has an answer and was not asked for since the last request."
        )
    if replies and not others and _has_paused(replies[-1][0].entry):
        # Whatever stood behind it would end the turn that the vendor means to go on with.
        replies[-1] = (Piece(replies[-1][0].entry, "paused"),)
    return replies + others


def _has_paused(entry: Entry) -> bool:
    """Whether the reply paused amid work of the vendor's own: no other can be gone on with just there."""
    what = entry.what
    if not isinstance(what, ModelAnswered) or what.stop != "pause" or calls_of(entry):
        return False
    work = [isinstance(part, Reasoning) and part.is_vendors_work for part in what.parts]
    # No vendor takes a request that ends with reasoning.
    return any(work) and (work[-1] or not isinstance(what.parts[-1], Reasoning))


def is_by_code(entry: Entry) -> bool:
    """Whether code brought entries back here: its line is nothing without them, and never a turn."""
    return isinstance(entry.what, Recalled) and entry.what.asked_by in RECALLED_BY_CODE


def _reply(entry: Entry, answers: dict[str, Entry], tools: frozenset[str] | None) -> Unit:
    """The reply and its answers in the order in which they came; takes them out of `answers`."""
    calls = calls_of(entry)
    for call in calls:
        if call.id not in answers:
            raise Damaged(
                f"Call {call.id} of entry {entry.position} has no answer yet: the model waits for it."
            )
    form = form_of(entry, tools)
    own = sorted((answers.pop(call.id) for call in calls), key=lambda each: each.position)
    return (Piece(entry, form), *(Piece(each, form) for each in own))


def form_of(entry: Entry, tools: frozenset[str] | None) -> str:
    """How a reply is shown live: as a record when it calls a tool that the request does not declare."""
    if tools is None or all(call.tool in tools for call in calls_of(entry)):
        return "whole"
    return "quoted"


def old_units(
    prompt: EpochPrompt,
    tools: frozenset[str] | None,
    apart: Callable[[Entry], bool] = lambda entry: False,
) -> list[Unit]:
    """What the prompt shows, as units in its order, in the forms of a new epoch.

    Left out is what stands apart: by its form, by its entry, as a report, or as brought back by code. What
    was cut stays cut as it was. Units that interleave in the journal are one, so that a range of positions
    can be dropped without a piece of another unit in it.
    """
    units: list[list[Piece]] = []
    form = "kept"
    for pick in prompt.picks:
        if pick.form in APART:
            continue
        for position in range(pick.first, pick.last + 1):
            entry = prompt.shown.get(position)
            if entry is None or isinstance(entry.what, ReportWritten) or is_by_code(entry) or apart(entry):
                continue
            if isinstance(entry.what, ActionFinished) and units:
                units[-1].append(_again(entry, pick.keep, form))
                continue
            form = "quoted" if form_of(entry, tools) == "quoted" else "kept"
            units.append([_again(entry, pick.keep, form)])
    return glued([tuple(unit) for unit in units])


def _again(entry: Entry, keep: int | None, form: str) -> Piece:
    if keep is None:
        return Piece(entry, form)
    return Piece(entry, form).cut_to(keep)


def kept(units: Iterable[Unit]) -> list[Unit]:
    """Live units in the form that crosses a rebuild: no reasoning, nothing of the provider's."""
    return [tuple([piece.kept for piece in unit]) for unit in units]


def is_paused(units: Sequence[Unit]) -> bool:
    """Whether the units end with a reply that paused, in the form in which its vendor goes on with it."""
    return bool(units) and units[-1][-1].form == "paused"


def glued(units: Sequence[Unit]) -> list[Unit]:
    """The units, those that interleave by position made one."""
    result: list[Unit] = []
    for unit in units:
        first = min([piece.entry.position for piece in unit])
        while result and max([piece.entry.position for piece in result[-1]]) > first:
            earlier = result.pop()
            unit = (*earlier, *unit)
            first = min([piece.entry.position for piece in unit])
        result.append(unit)
    return result


def order_of(prompt: EpochPrompt, fresh: Sequence[Entry]) -> list[int]:
    """The positions of what is shown and fresh, so that `recipe_of` merges neighbours and nothing else.

    Entries that the prompt does not show may lie between those that it does: told in a brief or a report, by
    this policy or by the one before, or brought back by code. What is parted there by a pick's end stays
    parted, since a range would bring them in.
    """
    order: list[int] = []
    for pick in prompt.picks:
        if pick.form not in APART:
            order += [at for at in range(pick.first, pick.last + 1) if at in prompt.shown]
            order.append(_PARTED)
    return order + [entry.position for entry in fresh]


def unshown(prompt: EpochPrompt) -> list[Pick]:
    """One pick for the range that the prompt says it does not show, none where it shows everything.

    A report told of its range; whoever leaves the report out has to say that the range is not shown.
    """
    before = [pick for pick in prompt.picks if pick.form == "dropped"]
    reports = [e.what for e in prompt.shown.values() if isinstance(e.what, ReportWritten)]
    before += [Pick(report.first, report.last, "dropped") for report in reports]
    if not before:
        return []
    return [Pick(min(pick.first for pick in before), max(pick.last for pick in before), "dropped")]


def is_briefed(prompt: EpochPrompt) -> bool:
    """Whether the prompt's epoch was opened with a brief, or with a report in it."""
    if any(pick.form in BRIEF_KINDS for pick in prompt.picks):
        return True
    return any(isinstance(entry.what, ReportWritten) for entry in prompt.shown.values())


def recipe_of(units: Iterable[Unit], order: Sequence[int]) -> tuple[Pick, ...]:
    """The units as a recipe, neighbours merged; `order` are the visible positions in question, rising."""
    return tuple(merged([piece.pick for unit in units for piece in unit], order))

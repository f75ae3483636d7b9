"""What stands, a report, and the newest turns: a full history's knowledge in a prompt of bounded size.

The prompt fills to the cap. Then a new epoch is opened, down to the mark: a brief (rules, statements, plan
and tallies as they stand, rendered by code over the whole run; a report of what left; people's earlier words)
and the newest turns, whole. A batch that does not fit opens the epoch and stands in it, and a report by rule
asks nobody: neither needs room to be kept free for it. An epoch is opened too when the provider's cache has
gone cold and the prompt is well above the mark, since then everything would be written anew in any case; and
to make room for what a message brings back (`policies.recalling`).

What it decided on is in `EpochOpened`, in numbers. Between two rebuilds nothing but the end changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shiftbook.entries import Entry, Pick, ReportWritten
from shiftbook.policies.cold import is_cold
from shiftbook.policies.fit import Fitted, fit
from shiftbook.policies.paying import account
from shiftbook.policies.recalling import (
    REBUILD_PART,
    TOKENS_MIN,
    Brought,
    beside,
    brought_back,
    last_message,
    line_tokens,
    message_of,
    parted,
    query_at_rebuild,
    room_for,
    standing_recall,
    told_as_open,
)
from shiftbook.policies.sections import (
    CARRIED_PART,
    SECTIONS,
    STANDING_FORMS,
    Brief,
    brief_of,
    carried,
    is_briefed_kind,
    wanted,
    widened,
    within,
    without,
)
from shiftbook.policies.transcript import notice_tokens, numbers, tokens_of
from shiftbook.policies.units import (
    Piece,
    Unit,
    fresh_units,
    glued,
    is_briefed,
    kept,
    old_units,
    order_of,
    recipe_of,
)
from shiftbook.policies.window import never_shown, newest
from shiftbook.policies.window import rebuilt as rebuilt_without_brief
from shiftbook.prompt.brief import NAMING
from shiftbook.prompt.epoch import (
    Budget,
    Choice,
    EpochPrompt,
    Extend,
    Full,
    Rebuild,
    WantRecall,
    WantReport,
)

REPORT_PART = 0.2
"""What a report that a model writes may take of the room below the mark, and any beside a wide recall."""

RULE_REPORT_PART = 0.3
"""The same of one by rule: half of it is what results held, for which the oldest turns can go."""

REPORT_TOKENS_MIN = 150
"""With less room for a report there is no brief, but a notice of what is not shown."""

SLACK_PART = 0.1
"""So much of the room below the mark stays empty in a new epoch: over the same sessions the cached share is
the same as without, and the median prompt 1,000 tokens shorter."""

RECENT_PART = 0.03
"""Of the cap's room the newest turns keep so much, however much is brought back. With none at all a question
held as much of its evidence (a shared measurement on BEAM: .819 against .818)."""

MAKES_ROOM = 2
"""The epoch ends for a message when less than one part in so many of what it may bring back is free, and that
is at least such a part of what a rebuild writes again: over the recorded sessions every small recall that
ended an epoch took .001 of the cached share."""

ROOM_FOR_RECALL = "room is made for what is brought back"


class Journal:
    """A brief of the run and its newest turns; `Full` when not even a notice fits beside the fixed part."""

    name = "journal"

    def choose(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget) -> Choice:
        """What is fresh at the end up to the cap, else a report, and then a rebuild down to the mark."""
        units = fresh_units([e for e in fresh if not isinstance(e.what, ReportWritten)], budget.tools)
        fitted = fit(units, budget, prompt.fixed, budget.cap - prompt.tokens)
        if fitted is None:
            return rebuilt(prompt, fresh, budget, "the cap is near")
        if is_cold(prompt, fitted, budget):
            return rebuilt(prompt, fresh, budget, "the cache is cold")
        due = account(prompt, fitted, budget)
        if due is not None and due.is_due:
            choice = rebuilt(prompt, fresh, budget, "it pays")
            if not isinstance(choice, Rebuild):
                return choice
            figures = {"reading": due.reading, "writing": due.writing}
            return replace(choice, numbers={**choice.numbers, **figures})
        # Most turns bring no message, and then the prompt need not be looked through.
        message = message_of(fresh)
        message = message if message and is_briefed(prompt) else ""
        free = budget.cap - prompt.tokens - fitted.tokens
        room = room_for(message, budget.recall, budget.cap - prompt.fixed) if message else 0
        if MAKES_ROOM * free < room and MAKES_ROOM * room >= budget.mark - prompt.fixed:
            return rebuilt(prompt, fresh, budget, ROOM_FOR_RECALL)
        if any(isinstance(entry.what, ReportWritten) for entry in fresh):
            # It was written for an epoch that a crash, or mail, has kept from being opened.
            return rebuilt(prompt, fresh, budget, "a report was written")
        return _extended(prompt, fresh, budget, fitted, message, min(free, room))

    def report_room(self, cap: int, mark: int, fixed: int) -> int:
        """The tokens that a report may take, 0 where a brief has no room for one."""
        room = int((min(mark, (cap + fixed) // 2) - fixed) * REPORT_PART)
        return room if room >= REPORT_TOKENS_MIN else 0

    def reopen(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget, reason: str) -> Choice:
        """The same rebuild, whatever room there is."""
        return rebuilt(prompt, fresh, budget, reason)


def _extended(
    prompt: EpochPrompt,
    fresh: Sequence[Entry],
    budget: Budget,
    fitted: Fitted,
    message: str,
    room: int,
) -> Extend | WantRecall:
    """What is fresh at the end, and before a message what is brought back for it within `room`."""
    order = [entry.position for entry in fresh]
    if not message:
        return Extend(recipe_of(fitted.units, order), fitted.warnings, fitted.made)
    recall = standing_recall(fresh)
    shown = frozenset(at for block in prompt.blocks if block.kind not in NAMING for at in block.entries)
    shown |= frozenset(order) | told_as_open(budget.knowledge)
    if recall is None and room >= TOKENS_MIN:
        room -= line_tokens(budget.measure)
        return WantRecall(message, beside(prompt, fresh, budget.knowledge), shown, room, "message")
    brought = brought_back(recall, budget, shown, room)
    if not brought.picks:
        return Extend(recipe_of(fitted.units, order), fitted.warnings, fitted.made)
    before, after = parted(fitted.units)
    return Extend((*recipe_of(before, order), *brought.picks, *recipe_of(after, order)), fitted.warnings)


@dataclass(frozen=True, slots=True)
class _Leaving:
    """What the new epoch does not show in its turns, and what of it is carried in front of them."""

    units: list[Unit]
    carried: list[Unit]
    carried_tokens: int

    @property
    def untold(self) -> list[Entry]:
        """The entries that are not carried either, in order."""
        shown = {piece.entry.position for unit in self.carried for piece in unit}
        entries = {piece.entry.position: piece.entry for unit in self.units for piece in unit}
        return [entries[position] for position in sorted(entries) if position not in shown]


def rebuilt(prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget, reason: str) -> Choice:
    """A brief and the newest turns within the mark; first the report, where something leaves untold.

    What is brought back for a message may pass the mark, and where it does, the turns, the report and the
    earlier words give way to it. The sections of the brief do not.
    """
    room = min(budget.mark, (budget.cap + prompt.fixed) // 2) - prompt.fixed
    if int(room * REPORT_PART) < REPORT_TOKENS_MIN:
        return _without_brief(prompt, fresh, budget, reason)
    last = max((entry.position for entry in fresh), default=prompt.upto)
    hidden = [entry for entry in (*prompt.shown.values(), *fresh) if is_briefed_kind(entry)]
    old = old_units(prompt, budget.tools, is_briefed_kind)
    new = glued(kept(_turns(fresh_units(fresh, budget.tools))))
    # Where nothing has left the prompt, and nothing will, its names stand in the turns.
    is_all_there = prompt.tokens <= budget.mark and not is_briefed(prompt)
    forms = STANDING_FORMS if is_all_there else SECTIONS
    brief = brief_of(budget.knowledge, hidden, last, budget, room, forms)
    front = [pick for pick in prompt.picks if pick.form == "dropped"]
    fixed = prompt.fixed + brief.total + sum(notice_tokens(pick, budget) for pick in front)
    rooms = _rooms(prompt, fresh, budget, room, fixed)
    worth = [] if rooms.is_wide else wanted(old)
    carried_room = min(int(room * CARRIED_PART), tokens_of(worth, budget))
    beside_turns = fixed + rooms.report + carried_room
    if beside_turns > budget.cap:
        return _without_brief(prompt, fresh, budget, reason)
    spare = max(rooms.turns - beside_turns, int((budget.cap - prompt.fixed) * RECENT_PART))
    whole = tokens_of([*old, *new], budget)
    if reason == ROOM_FOR_RECALL and beside_turns + whole + rooms.recall <= budget.cap:
        spare = whole
    fitted, lost = newest(new, budget, prompt.fixed, budget.cap - beside_turns, spare)
    stays = _stays(old, spare - fitted.tokens, budget) if not lost else []
    gone = [*old[: len(old) - len(stays)], *lost]
    worth = [] if rooms.is_wide else wanted(gone)
    leaving = _Leaving(gone, *carried(worth, carried_room, budget.measure))
    report = _standing_report(prompt, fresh)
    if not lost:
        left = rooms.turns - beside_turns - fitted.tokens - tokens_of(stays, budget)
        brief = widened(brief, budget.knowledge, budget, left)
    made = _Opening(front, brief, None, leaving, stays, fitted, lost)
    brought = Brought()
    if report is not None or leaving.untold:
        # Before the report is written, so that this is committed with the epoch that shows it.
        left = budget.cap - made.tokens(prompt.fixed, budget) - rooms.report
        back = _recalled(prompt, fresh, budget, made, min(rooms.recall, left))
        if isinstance(back, WantRecall):
            return back
        brought = back
    want = _want(leaving, report, prompt.upto, rooms.report)
    if want is not None:
        return want
    piece = None if report is None else within(Piece(report, "kept"), rooms.report, budget.measure)
    return _opened(prompt, fresh, budget, reason, replace(made, report=piece), brought)


@dataclass(frozen=True, slots=True)
class _Rooms:
    """Tokens: of the report, of what is brought back, and up to where the turns may reach in the prompt."""

    report: int
    recall: int
    turns: int
    is_wide: bool


def _rooms(prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget, room: int, fixed: int) -> _Rooms:
    message, part = message_of(fresh), int(room * REBUILD_PART)
    recall = room_for(message or last_message(prompt), budget.recall, budget.cap - prompt.fixed)
    recall = recall if message else min(recall, part)
    recall = recall if recall >= TOKENS_MIN else 0
    # Room is kept free below the cap where a model is asked for reports, and only there.
    report = int(room * (REPORT_PART if budget.reserve else RULE_REPORT_PART))
    if recall > part:
        squeezed = int((budget.cap - fixed - recall) * REPORT_PART)
        report = max(min(report, squeezed), REPORT_TOKENS_MIN)
    turns = min(budget.mark, budget.cap - recall) - int(room * SLACK_PART) - min(recall, part)
    return _Rooms(report, recall, turns, is_wide=recall > part)


@dataclass(frozen=True, slots=True)
class _Opening:
    """What a new epoch is made of, but for what is brought back."""

    front: Sequence[Pick]
    brief: Brief
    report: Piece | None
    leaving: _Leaving
    stays: Sequence[Unit]
    fitted: Fitted
    lost: Sequence[Unit]

    def tokens(self, fixed: int, budget: Budget) -> int:
        """All of it, the fixed part included."""
        report = 0 if self.report is None else self.report.tokens(budget.measure)
        head = fixed + sum(notice_tokens(pick, budget) for pick in self.front) + self.brief.total + report
        turns = tokens_of(self.stays, budget) + self.fitted.tokens
        return head + self.leaving.carried_tokens + turns

    @property
    def shown(self) -> frozenset[int]:
        """The positions of the turns and of the words that are carried."""
        units = (*self.leaving.carried, *self.stays, *self.fitted.units)
        return frozenset(piece.entry.position for unit in units for piece in unit)


def _recalled(
    prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget, made: _Opening, room: int
) -> Brought | WantRecall:
    """What comes back in the new epoch within `room`; what to look for where that is not known yet."""
    if room < TOKENS_MIN:
        return Brought()
    recall = standing_recall(fresh)
    if recall is not None:
        return brought_back(recall, budget, made.shown, room)
    message = message_of(fresh)
    query = message or query_at_rebuild(prompt, fresh)
    around = beside(prompt, fresh, budget.knowledge)
    room -= line_tokens(budget.measure)
    shown = made.shown | told_as_open(budget.knowledge)
    return WantRecall(query, around, shown, room, "message" if message else "rebuild")


def _without_brief(
    prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget, reason: str
) -> Rebuild | Full:
    """The newest turns and a notice, with a warning: the room is too small for anything else."""
    choice = rebuilt_without_brief(prompt, fresh, budget, reason)
    if isinstance(choice, Full):
        return choice
    told = "The room below the mark is too small for a brief: only the newest turns are shown."
    return replace(choice, warnings=(*choice.warnings, ("no brief", told)))


def _turns(units: Sequence[Unit]) -> list[Unit]:
    """The units without what the brief and the report tell."""
    return without(units, lambda entry: is_briefed_kind(entry) or isinstance(entry.what, ReportWritten))


def _stays(old: Sequence[Unit], left: int, budget: Budget) -> list[Unit]:
    """The newest of the old units that fit."""
    stays: list[Unit] = []
    for unit in reversed(old):
        size = tokens_of([unit], budget)
        if size > left:
            break
        left -= size
        stays.insert(0, unit)
    return stays


def _standing_report(prompt: EpochPrompt, fresh: Sequence[Entry]) -> Entry | None:
    reports = [e for e in (*prompt.shown.values(), *fresh) if isinstance(e.what, ReportWritten)]
    return max(reports, key=lambda entry: entry.position, default=None)


def _want(leaving: _Leaving, report: Entry | None, upto: int, room: int) -> WantReport | None:
    """The report that has to be written first; None where none is needed or it has been written just now."""
    untold = leaving.untold
    if not untold:
        return None
    first = untold[0].position
    before = report.what if report is not None and isinstance(report.what, ReportWritten) else None
    newest_gone = max(piece.entry.position for unit in leaving.units for piece in unit)
    if report is not None and before is not None:
        if report.position > upto:
            if before.last >= newest_gone:
                return None
            # It was written for this epoch, and more leaves by now: what it told is not told again.
            untold = [entry for entry in untold if entry.position > before.last]
        first, newest_gone = min(before.first, first), max(newest_gone, before.last)
    return WantReport(first, newest_gone, tuple(untold), before, room)


def _opened(
    prompt: EpochPrompt,
    fresh: Sequence[Entry],
    budget: Budget,
    reason: str,
    made: _Opening,
    brought: Brought,
) -> Rebuild:
    order = order_of(prompt, fresh)
    figures = {
        **numbers(prompt, made.tokens(prompt.fixed, budget) + brought.tokens, budget),
        **made.brief.tokens,
        "report": 0 if made.report is None else made.report.tokens(budget.measure),
        "carried": made.leaving.carried_tokens,
        "turns": tokens_of(made.stays, budget),
        "newest": made.fitted.tokens,
        "left": len(made.leaving.untold),
    }
    if brought.picks:
        figures["recalled"] = brought.tokens
    if budget.gap_ms is not None:
        figures["gap_ms"] = budget.gap_ms
    before, after = parted(made.fitted.units) if brought.picks else (made.fitted.units, [])
    return Rebuild(
        reason=reason,
        head=(
            *made.front,
            *made.brief.picks,
            *(() if made.report is None else (made.report.pick,)),
            # Entry by entry: others lie between.
            *[piece.pick for unit in made.leaving.carried for piece in unit],
            *recipe_of(made.stays, order),
        ),
        picks=(*recipe_of(before, order), *brought.picks, *recipe_of(after, order)),
        numbers=figures,
        warnings=(*made.brief.warnings, *made.fitted.warnings, *_lost(made.lost, made.leaving)),
    )


def _lost(lost: Sequence[Unit], leaving: _Leaving) -> tuple[tuple[str, str], ...]:
    shown = {piece.entry.position for unit in leaving.carried for piece in unit}
    return never_shown([tuple(p for p in unit if p.entry.position not in shown) for unit in lost])

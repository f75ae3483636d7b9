"""What stands, a report, and the newest turns: a full history's knowledge in a prompt of bounded size.

The prompt fills to the cap. Then a new epoch is opened, down to the mark: a brief (rules, statements, plan
and tallies as they stand, rendered by code over the whole run; a report of what left; people's earlier words)
and the newest turns, whole. A batch that does not fit opens the epoch and stands in it, and a report by rule
asks nobody: neither needs room to be kept free for it. An epoch is opened too when the provider's cache has
gone cold and the prompt is well above the mark, since then everything would be written anew in any case.

What it decided on is in `EpochOpened`, in numbers. Between two rebuilds nothing but the end changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shiftbook.entries import Entry, Pick, ReportWritten
from shiftbook.policies.cold import is_cold
from shiftbook.policies.fit import Fitted, fit
from shiftbook.policies.sections import (
    CARRIED_PART,
    STANDING_FORMS,
    Brief,
    brief_of,
    carried,
    is_briefed_kind,
    wanted,
    within,
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
from shiftbook.prompt.brief import BRIEF_KINDS
from shiftbook.prompt.epoch import Budget, Choice, EpochPrompt, Extend, Full, Rebuild, WantReport

REPORT_PART = 0.2
"""What the report may take of the room below the mark."""

REPORT_TOKENS_MIN = 150
"""With less room for a report there is no brief, but a notice of what is not shown."""

SLACK_PART = 0.1
"""So much of the room below the mark stays empty in a new epoch: over the same sessions the cached share is
the same as without, and the median prompt 1,000 tokens shorter."""


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
        if any(isinstance(entry.what, ReportWritten) for entry in fresh):
            # It was written for an epoch that a crash, or mail, has kept from being opened.
            return rebuilt(prompt, fresh, budget, "a report was written")
        order = [entry.position for entry in fresh]
        return Extend(recipe_of(fitted.units, order), fitted.warnings, fitted.made)

    def report_room(self, cap: int, mark: int, fixed: int) -> int:
        """The tokens that a report may take, 0 where a brief has no room for one."""
        room = int((min(mark, (cap + fixed) // 2) - fixed) * REPORT_PART)
        return room if room >= REPORT_TOKENS_MIN else 0

    def reopen(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget, reason: str) -> Choice:
        """The same rebuild, whatever room there is."""
        return rebuilt(prompt, fresh, budget, reason)


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
    """A brief and the newest turns within the mark; first the report, where something leaves untold."""
    room = min(budget.mark, (budget.cap + prompt.fixed) // 2) - prompt.fixed
    report_room = int(room * REPORT_PART)
    if report_room < REPORT_TOKENS_MIN:
        return _without_brief(prompt, fresh, budget, reason)
    last = max((entry.position for entry in fresh), default=prompt.upto)
    hidden = [entry for entry in (*prompt.shown.values(), *fresh) if is_briefed_kind(entry)]
    old = old_units(prompt, budget.tools, is_briefed_kind)
    new = glued(kept(_turns(fresh_units(fresh, budget.tools))))
    # Where nothing has left the prompt, and nothing will, its names stand in the turns.
    is_all_there = prompt.tokens <= budget.mark and not is_briefed(prompt)
    forms = STANDING_FORMS if is_all_there else tuple(BRIEF_KINDS)
    brief = brief_of(budget.knowledge, hidden, last, budget, room, forms)
    front = [pick for pick in prompt.picks if pick.form == "dropped"]
    head = brief.total + report_room + sum(notice_tokens(pick, budget) for pick in front)
    carried_room = min(int(room * CARRIED_PART), tokens_of(wanted(old), budget))
    beside = prompt.fixed + head + carried_room
    if beside > budget.cap:
        return _without_brief(prompt, fresh, budget, reason)
    spare = max(budget.mark - int(room * SLACK_PART) - beside, 0)
    fitted, lost = newest(new, budget, prompt.fixed, budget.cap - beside, spare)
    stays = _stays(old, spare - fitted.tokens, budget) if not lost else []
    gone = [*old[: len(old) - len(stays)], *lost]
    leaving = _Leaving(gone, *carried(wanted(gone), carried_room, budget.measure))
    report = _standing_report(prompt, fresh)
    want = _want(leaving, report, prompt.upto, report_room)
    if want is not None:
        return want
    piece = None if report is None else within(Piece(report, "kept"), report_room, budget.measure)
    return _opened(prompt, fresh, budget, reason, front, brief, piece, leaving, stays, fitted, lost)


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
    turns = [
        tuple(p for p in unit if not (is_briefed_kind(p.entry) or isinstance(p.entry.what, ReportWritten)))
        for unit in units
    ]
    return [unit for unit in turns if unit]


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
    front: Sequence[Pick],
    brief: Brief,
    report: Piece | None,
    leaving: _Leaving,
    stays: Sequence[Unit],
    fitted: Fitted,
    lost: Sequence[Unit],
) -> Rebuild:
    order = order_of(prompt, fresh)
    report_tokens = 0 if report is None else report.tokens(budget.measure)
    turns = tokens_of(stays, budget)
    after = prompt.fixed + sum(notice_tokens(pick, budget) for pick in front)
    after += brief.total + report_tokens + leaving.carried_tokens + turns + fitted.tokens
    figures = {
        **numbers(prompt, after, budget),
        **brief.tokens,
        "report": report_tokens,
        "carried": leaving.carried_tokens,
        "turns": turns,
        "newest": fitted.tokens,
        "left": len(leaving.untold),
    }
    if budget.gap_ms is not None:
        figures["gap_ms"] = budget.gap_ms
    return Rebuild(
        reason=reason,
        head=(
            *front,
            *brief.picks,
            *(() if report is None else (report.pick,)),
            *_parted(leaving.carried),
            *recipe_of(stays, order),
        ),
        picks=recipe_of(fitted.units, order),
        numbers=figures,
        warnings=(*brief.warnings, *fitted.warnings, *_lost(lost, leaving)),
    )


def _parted(units: Sequence[Unit]) -> list[Pick]:
    """What is carried, entry by entry: others lie between."""
    return [piece.pick for unit in units for piece in unit]


def _lost(lost: Sequence[Unit], leaving: _Leaving) -> tuple[tuple[str, str], ...]:
    shown = {piece.entry.position for unit in leaving.carried for piece in unit}
    return never_shown([tuple(p for p in unit if p.entry.position not in shown) for unit in lost])

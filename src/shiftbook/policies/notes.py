"""Notes and the newest turns: at the window the notes are written again, and the run goes on with them.

The loop that most agents have today ("compaction"): when the prompt is full, an account of the whole run so
far is written, its own earlier account included, and takes the place of everything but the newest turns.
The account is asked for through `WantReport`; where no model writes, as in reruns and studies, it is the
report by rule, and the prompt says so in the account's first line. Standing rules are told in front of it:
they stand for what such loops keep in their instructions.

It knows no statements, no plan and no tallies, carries nobody's words beside the notes, and rebuilds at the
window alone. What the notes leave out, and what they get wrong, stays so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shiftbook.entries import Entry, ReportWritten
from shiftbook.policies.fit import fit
from shiftbook.policies.sections import RULES, brief_left, brief_of, is_rule, within, without
from shiftbook.policies.transcript import notice_tokens, numbers, tokens_of
from shiftbook.policies.units import Piece, Unit, fresh_units, glued, kept, old_units, order_of, recipe_of
from shiftbook.policies.window import never_shown, newest
from shiftbook.policies.window import rebuilt as rebuilt_without_notes
from shiftbook.prompt.epoch import Budget, Choice, EpochPrompt, Extend, Full, Rebuild, WantReport

NOTES_PART = 0.3
"""What the notes may take of the room below the mark."""

NOTES_TOKENS_MIN = 150
"""With less room for notes there are none, but a notice of what is not shown."""


class Notes:
    """Notes and the newest turns; `Full` only when not even a notice fits beside the fixed part."""

    name = "notes"

    def choose(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget) -> Choice:
        """What is fresh at the end up to the cap, else notes, and then a rebuild down to the mark."""
        units = fresh_units(without_notes(fresh), budget.tools)
        fitted = fit(units, budget, prompt.fixed, budget.cap - prompt.tokens)
        if fitted is None:
            return rebuilt(prompt, fresh, budget, "the cap is near")
        if len(units) and any(isinstance(entry.what, ReportWritten) for entry in fresh):
            # They were written for an epoch that a crash, or mail, has kept from being opened.
            return rebuilt(prompt, fresh, budget, "notes were written")
        order = [entry.position for entry in fresh]
        return Extend(recipe_of(fitted.units, order), fitted.warnings, fitted.made)

    def report_room(self, cap: int, mark: int, fixed: int) -> int:
        """The tokens that notes may take, 0 where there is no room for any."""
        room = int((min(mark, (cap + fixed) // 2) - fixed) * NOTES_PART)
        return room if room >= NOTES_TOKENS_MIN else 0

    def reopen(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget, reason: str) -> Choice:
        """The same rebuild, whatever room there is."""
        return rebuilt(prompt, fresh, budget, reason)


def without_notes(entries: Sequence[Entry]) -> list[Entry]:
    """The entries that happened, without accounts of them."""
    return [entry for entry in entries if not isinstance(entry.what, ReportWritten)]


def rebuilt(prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget, reason: str) -> Choice:
    """Rules, notes and the newest turns within the mark; first the notes, where something leaves untold."""
    room = min(budget.mark, (budget.cap + prompt.fixed) // 2) - prompt.fixed
    notes_room = int(room * NOTES_PART)
    if notes_room < NOTES_TOKENS_MIN:
        return _without_notes(prompt, fresh, budget, reason)
    last = max((entry.position for entry in fresh), default=prompt.upto)
    hidden = [entry for entry in (*prompt.shown.values(), *fresh) if is_rule(entry)]
    brief = brief_of(budget.knowledge, hidden, last, budget, room, RULES)
    front = [pick for pick in prompt.picks if pick.form == "dropped"]
    beside = prompt.fixed + brief.total + sum(notice_tokens(pick, budget) for pick in front)
    old = old_units(prompt, budget.tools, is_rule)
    new = glued(kept(without(fresh_units(without_notes(fresh), budget.tools), is_rule)))
    notes = _standing(prompt, fresh)
    # Where everything fits below the mark, nothing has to be told: no room is kept for notes then.
    told = notes_room if notes or beside + tokens_of([*old, *new], budget) > budget.mark else 0
    if beside + told > budget.cap:
        return _without_notes(prompt, fresh, budget, reason)
    spare = max(budget.mark - beside - told, 0)
    fitted, lost = newest(new, budget, prompt.fixed, budget.cap - beside - told, spare)
    stays = [] if lost else _newest_of(old, spare - fitted.tokens, budget)
    gone = [*old[: len(old) - len(stays)], *lost]
    if want := _want(gone, notes, prompt.upto, notes_room):
        return want
    piece = None if notes is None else within(Piece(notes, "kept"), notes_room, budget.measure)
    order = order_of(prompt, fresh)
    own = 0 if piece is None else piece.tokens(budget.measure)
    turns = tokens_of(stays, budget)
    figures = {
        **numbers(prompt, beside + own + turns + fitted.tokens, budget),
        **brief.tokens,
        "notes": own,
        "turns": turns,
        "newest": fitted.tokens,
        "left": sum(len(unit) for unit in gone),
    }
    head = (*front, *brief.picks, *(() if piece is None else (piece.pick,)), *recipe_of(stays, order))
    warnings = (*brief_left(prompt), *brief.warnings, *fitted.warnings, *never_shown(lost))
    return Rebuild(reason, head, recipe_of(fitted.units, order), figures, warnings)


def _without_notes(
    prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget, reason: str
) -> Rebuild | Full:
    choice = rebuilt_without_notes(prompt, without_notes(fresh), budget, reason)
    if isinstance(choice, Full):
        return choice
    told = "The room below the mark is too small for notes: only the newest turns are shown."
    return replace(choice, warnings=(*choice.warnings, ("no notes", told)))


def _newest_of(old: Sequence[Unit], left: int, budget: Budget) -> list[Unit]:
    """The newest of the old units that fit, up to the first that does not."""
    stays: list[Unit] = []
    for unit in reversed(old):
        left -= tokens_of([unit], budget)
        if left < 0:
            break
        stays.insert(0, unit)
    return stays


def _standing(prompt: EpochPrompt, fresh: Sequence[Entry]) -> Entry | None:
    found = [e for e in (*prompt.shown.values(), *fresh) if isinstance(e.what, ReportWritten)]
    return max(found, key=lambda entry: entry.position, default=None)


def _want(gone: Sequence[Unit], notes: Entry | None, upto: int, room: int) -> WantReport | None:
    """The notes that have to be written first; None where none are needed or they have just been written."""
    entries = {piece.entry.position: piece.entry for unit in gone for piece in unit}
    if not entries:
        return None
    first, last = min(entries), max(entries)
    before = notes.what if notes is not None and isinstance(notes.what, ReportWritten) else None
    if notes is not None and before is not None:
        if notes.position > upto and before.last >= last:
            return None
        first, last = min(first, before.first), max(last, before.last)
    return WantReport(first, last, tuple(entries[at] for at in sorted(entries)), before, room, rewrite=True)

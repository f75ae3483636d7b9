"""The brief of a rebuilt prompt, section by section, each within its part of the room.

Rules, statements, plan, tallies and what is open are folded by the renderer over the whole run, so that they
stand in every brief. What a section cannot hold within its part, the newest lines first, is counted in it,
and told as a warning. Of the words that people said before, all are carried while they fit: the first and
then the newest whole, the others cut. A call whose outcome nobody knows is told among what is open, and
nowhere else: its batch is not carried too.

Nothing is summed up here: only which entries, in which form, cut where.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from shiftbook.entries import Entry, ModelAnswered, Pick, RuleSet, What
from shiftbook.policies.units import Piece, Unit
from shiftbook.projections.knowledge import Knowledge, needed
from shiftbook.projections.pending import excerpts
from shiftbook.projections.rules import RULERS
from shiftbook.prompt.brief import BRIEF_KINDS, PENDING
from shiftbook.prompt.epoch import Budget, EpochPrompt, Measure, Warnings
from shiftbook.prompt.pending import pending_pick
from shiftbook.prompt.render import chars, render_pick

PARTS: Mapping[str, float] = {
    "rules": 0.2,
    "statements": 0.16,
    "plan": 0.1,
    "tallies": 0.1,
    PENDING: 0.1,
    "working": 0.5,
}
"""What a section may take of the room below the mark."""

SECTIONS = ("rules", "statements", "plan", "tallies", PENDING, "working")
"""The forms of a brief in its order."""

STANDING_FORMS = tuple(form for form in SECTIONS if form != "working")
"""What stands until it is changed or settled; the working set is what was used last."""

WORKING_TOKENS_MAX = 2_000
"""The working set takes no more than this, however much room there is."""

CARRIED_PART = 0.16
"""What people's earlier words may take of it."""

CUT_WORDS_CHARS = 400
"""Earlier words that are not carried whole are cut to this many characters."""

KEEP_TRIES = 16


@dataclass(frozen=True, slots=True)
class Brief:
    """The picks of the brief's sections, their tokens by section, and what has to be said about them."""

    picks: tuple[Pick, ...]
    tokens: Mapping[str, int]
    warnings: Warnings = ()

    @property
    def total(self) -> int:
        """Tokens of all sections."""
        return sum(self.tokens.values())


def is_briefed_kind(entry: Entry) -> bool:
    """Whether a brief tells the entry: then a rebuild does not show it beside the brief."""
    if isinstance(entry.what, RuleSet):
        return is_rule(entry)
    return type(entry.what) in _KINDS


def is_rule(entry: Entry) -> bool:
    """Whether the entry sets or withdraws a rule that binds; what a recording has as one does not."""
    return isinstance(entry.what, RuleSet) and entry.what.author in RULERS


RULES = ("rules",)
"""The one section that every policy has in front of a rebuilt prompt."""


def brief_left(prompt: EpochPrompt) -> Warnings:
    """That a policy without them comes after a brief with more sections than the rules."""
    forms = sorted({pick.form for pick in prompt.picks if pick.form in SECTIONS} - set(RULES))
    if not forms:
        return ()
    told = f"Under this policy the brief is not shown any more ({', '.join(forms)}); the journal keeps it."
    return (("brief left", told),)


def without(units: Sequence[Unit], is_told: Callable[[Entry], bool]) -> list[Unit]:
    """The units without the pieces that are told elsewhere."""
    left = [tuple(piece for piece in unit if not is_told(piece.entry)) for unit in units]
    return [unit for unit in left if unit]


_KINDS: frozenset[type[What]] = frozenset(BRIEF_KINDS.values()) - {ModelAnswered}
"""The working set tells names out of replies, not the replies."""


def brief_of(
    knowledge: Knowledge,
    hidden: Iterable[Entry],
    last: int,
    budget: Budget,
    room: int,
    forms: Collection[str] = SECTIONS,
) -> Brief:
    """The sections of what stands after `last`; `hidden` are the entries that only the brief tells."""
    kinds = {type(entry.what) for entry in hidden}
    picks: list[Pick] = []
    tokens: dict[str, int] = {}
    warnings: list[tuple[str, str]] = []
    for form in SECTIONS:
        if form not in forms:
            continue
        found: Pick | None
        if form == PENDING:
            entries = {entry.position: entry for entry in excerpts(knowledge.pending)}
            found = pending_pick(knowledge.pending, last)
        else:
            kind = BRIEF_KINDS[form]
            entries = {entry.position: entry for entry in needed(knowledge, (kind,))}
            found = Pick(1, last, form) if entries or kind in kinds else None
        if found is None:
            continue
        part = int(room * PARTS[form])
        if form == "working":
            part = min(part, WORKING_TOKENS_MAX)
        pick, size = section(found, entries, budget.measure, part)
        if pick.keep is not None and form != "working":
            told = "open calls and words" if form == PENDING else form
            detail = f"The {told} pass their part of the brief: the newest are shown, the others counted."
            warnings.append(("brief cut", detail))
        picks.append(pick)
        tokens[form] = size
    return Brief(tuple(picks), tokens, tuple(warnings))


def widened(brief: Brief, knowledge: Knowledge, budget: Budget, left: int) -> Brief:
    """The brief with older names in use in what the turns leave of the room; no larger where all stand."""
    cut = next((pick for pick in brief.picks if pick.form == "working" and pick.keep is not None), None)
    if cut is None or left <= 0:
        return brief
    entries = {entry.position: entry for entry in needed(knowledge, (BRIEF_KINDS["working"],))}
    room = min(brief.tokens["working"] + left, WORKING_TOKENS_MAX)
    pick, size = section(replace(cut, keep=None), entries, budget.measure, room)
    if not brief.tokens["working"] < size <= room:
        return brief
    picks = tuple(pick if each is cut else each for each in brief.picks)
    return replace(brief, picks=picks, tokens={**brief.tokens, "working": size})


def section(pick: Pick, entries: Mapping[int, Entry], measure: Measure, room: int) -> tuple[Pick, int]:
    """The section within `room` tokens, as near as the size of its head allows."""
    size, length = _size(pick, entries, measure)
    keep = length
    for attempt in range(KEEP_TRIES):
        if size <= room or keep == 0:
            break
        # In proportion, which is nearly right, then lower in small steps, and at last in large ones.
        near = min(keep * 19 // 20, keep * max(room, 0) // size)
        keep = near if attempt < KEEP_TRIES // 2 else min(near, keep * 4 // 5)
        pick = replace(pick, keep=keep)
        size, _ = _size(pick, entries, measure)
    return pick, size


def _size(pick: Pick, entries: Mapping[int, Entry], measure: Measure) -> tuple[int, int]:
    blocks = render_pick(pick, entries)
    length = sum(len(getattr(part, "text", "")) for block in blocks for part in block.parts)
    return sum(map(measure, blocks)), length


def within(piece: Piece, room: int, measure: Measure) -> Piece | None:
    """The piece cut so that it takes at most `room` tokens; None when even its head is longer."""
    size = piece.tokens(measure)
    keep = chars(piece.entry) if piece.keep is None else piece.keep
    while size > room:
        if keep == 0:
            return None
        keep = min(keep * 9 // 10, keep * max(room, 0) // size + 1)
        piece = piece.cut_to(keep)
        size = piece.tokens(measure)
    return piece


# --- excerpts that are carried -------------------------------------------------------------------------


def wanted(units: Sequence[Unit]) -> list[Unit]:
    """What of these units is worth carrying: people's words, each alone."""
    return [(piece,) for unit in units for piece in unit if piece.is_persons]


def carried(units: Sequence[Unit], room: int, measure: Measure) -> tuple[list[Unit], int]:
    """Those of `wanted` units that fit `room` tokens, in their order, and what they take.

    The first words come first, then the newest. First words that do not fit whole are cut to half of the
    room, others to a few lines, and left out when not even that fits.
    """
    taken: dict[int, Unit] = {}
    left = room
    for number in [*range(len(units))[:1], *reversed(range(1, len(units)))]:
        shown = units[number]
        size = _tokens(shown, measure)
        if size > left and number == 0 and (first := within(shown[0], left // 2, measure)):
            # Who said first what is wanted said it at length: they have half of the room.
            shown, size = (first,), first.tokens(measure)
        elif size > left:
            shown = tuple(_cut(piece, CUT_WORDS_CHARS, measure) for piece in shown)
            size = _tokens(shown, measure)
        if size <= left:
            taken[number] = shown
            left -= size
    return [taken[number] for number in sorted(taken)], room - left


def _cut(piece: Piece, keep: int, measure: Measure) -> Piece:
    length = chars(piece.entry) if piece.keep is None else piece.keep
    if length <= keep:
        return piece
    lower = piece.cut_to(keep)
    return lower if lower.tokens(measure) < piece.tokens(measure) else piece


def _tokens(unit: Unit, measure: Measure) -> int:
    return sum(piece.tokens(measure) for piece in unit)

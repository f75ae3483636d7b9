"""What each recorded compaction kept of what stood before it, and of what was needed after it.

Two questions of the same account. *Kept*: of everything of a kind that had been said, asked or answered
before the compaction, the share that stands in the account; most of it will never be asked for again.
*Needed*: of what a later call used, that stood before, and that nobody had shown again, the share that stands
in it (`studies.boundaries`). Nobody judges: an identifier stands in the account or it does not.

Decisions have no form that code can be sure of. Counted is a sentence of a person's words or of a reply that
has one of a few deciding words and at least three long ones; it is kept when at least half of its long words
stand in the account. That is a rough measure, and is told as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shiftbook.messages import Json
from shiftbook.sessions import PersonText, Reply, Session, Step, TextPart
from shiftbook.studies.boundaries import boundaries, said
from shiftbook.studies.identifiers import KINDS, Identifier, identifiers
from shiftbook.tokens import Meter

_DECIDING = re.compile(
    r"\b(decid\w+|agreed|let's|we'll|we will|we should|instead of|rather than|prefer\w*|go with|going with"
    r"|do not|don't|never|always|must)\b",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
_LONG_WORDS = re.compile(r"[^\W\d_]{5,}")
LONG_WORDS = 3
KEPT_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Part:
    """How many there were, and how many of them the account holds."""

    of: int
    held: int

    @property
    def share(self) -> float | None:
        """Held over all; None when there were none."""
        return self.held / self.of if self.of else None

    def __add__(self, other: Part) -> Part:
        return Part(self.of + other.of, self.held + other.held)


@dataclass(frozen=True, slots=True)
class Survived:
    """One compaction. `turn` is the number of replies before it; `tokens` the account's, by our meter.

    `kept` has a part for each kind of identifier and one for "decisions", `needed` one for each kind.
    """

    number: int
    turn: int
    tokens: int
    kept: Mapping[str, Part]
    needed: Mapping[str, Part]


def survived(session: Session, meter: Meter) -> list[Survived]:
    """Every compaction of a session that has a reply before and after it, in order."""
    found: list[Survived] = []
    steps = list(_before_each(session))
    known: set[Identifier] = set()
    decided: set[frozenset[str]] = set()
    for boundary in boundaries(session):
        for step in steps[boundary.number - 1]:
            known |= identifiers("\n".join(said(step)))
            decided.update(_decisions(step))
        account = identifiers(boundary.summary.text)
        words = _words(boundary.summary.text)
        kept: dict[str, Part] = {kind: _part(known, account, kind) for kind in KINDS}
        kept["decisions"] = Part(
            len(decided), sum(len(each & words) >= KEPT_SHARE * len(each) for each in decided)
        )
        needed: dict[str, Part] = {kind: _part(boundary.needed, account, kind) for kind in KINDS}
        tokens = meter.count(boundary.summary.text)
        found.append(Survived(boundary.number, boundary.turn, tokens, kept, needed))
    return found


def pooled(found: Iterable[Survived]) -> tuple[Mapping[str, Part], Mapping[str, Part]]:
    """Kept and needed over all compactions."""
    kept: dict[str, Part] = {kind: Part(0, 0) for kind in (*KINDS, "decisions")}
    needed: dict[str, Part] = {kind: Part(0, 0) for kind in KINDS}
    for each in found:
        kept = {kind: part + each.kept[kind] for kind, part in kept.items()}
        needed = {kind: part + each.needed[kind] for kind, part in needed.items()}
    return kept, needed


def survival_row(each: Survived) -> dict[str, Json]:
    """One compaction as a plain row; counts alone, nothing that was said."""
    return {
        "number": each.number,
        "turn": each.turn,
        "tokens": each.tokens,
        "kept": parts_row(each.kept),
        "needed": parts_row(each.needed),
    }


def parts_row(parts: Mapping[str, Part]) -> dict[str, Json]:
    """Kinds and what was held of them."""
    return {kind: {"of": part.of, "held": part.held, "share": part.share} for kind, part in parts.items()}


def _part(of: Iterable[Identifier], account: set[Identifier], kind: str) -> Part:
    wanted = {each for each in of if each[0] == kind}
    return Part(len(wanted), len(wanted & account))


def _before_each(session: Session) -> Iterator[Sequence[Step]]:
    """The steps before each compaction, since the one before it."""
    lines = {each.line for each in session.compactions}
    gathered: list[Step] = []
    last = None
    for step in session.steps:
        if step.line in lines and not isinstance(step, (PersonText, Reply)):
            if step.line != last:
                yield gathered
                gathered = []
            last = step.line
        else:
            gathered.append(step)


def _decisions(step: Step) -> Iterator[frozenset[str]]:
    """The long words of each deciding sentence of a person or a reply."""
    texts: list[str] = []
    if isinstance(step, PersonText):
        texts = [step.text]
    elif isinstance(step, Reply):
        texts = [part.text for part in step.parts if isinstance(part, TextPart)]
    for text in texts:
        for sentence in _SENTENCES.split(text):
            words = _words(sentence)
            if len(words) >= LONG_WORDS and _DECIDING.search(sentence):
                yield words


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _LONG_WORDS.findall(text))

"""What a query asks for: its terms, and whether it wants a set of things or what was answered before.

A question about an order or for a summary wants many entries; one about what "you suggested" wants replies.
The signs are plain English phrases for these wishes. A query that shows none is about a point, which is also
the answer for other languages: it is ranked the same and only gets no extra room.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from shiftbook.projections.recall_terms import content_terms

Kind = Literal["point", "order", "summary"]

BESIDE_WEIGHT = 0.3
"""What a term of the plan and the last turns counts beside one of the message itself. A judgement."""

QUERY_TERMS = 64
"""Terms of a query that are used: a message of a person may be a whole file. The heaviest, then the first."""

POINT_SHARE = (3, 8)
"""A point question's part of the room that a set question gets: 12k against 32k held as much evidence as a
fixed cap of the same average (a shared measurement on BEAM: .835 against .818)."""

_ORDER = re.compile(
    r"\b(?:in order|(?:what|which|the) order|timeline|chronolog\w+|sequence of|evol(?:ved?|ution)|"
    r"progress(?:ed|ion)?|over time|step by step|history of)\b",
    re.IGNORECASE,
)
_SUMMARY = re.compile(r"\b(?:summar\w+|overview|recap\w*|everything|outline|comprehensive)\b", re.IGNORECASE)
_TOLD = re.compile(
    r"\b(?:(?:did|have|had) you|you(?:['\u2019]ve| have| had)?\s+(?:recommended|suggested|said|told|"
    r"mentioned|advised|proposed|listed|explained|provided|gave|given|described|wrote|shared|helped|"
    r"showed))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Question:
    """A query as the ranking sees it. `terms` maps each term to its weight; `told` asks for replies."""

    terms: Mapping[str, float]
    kind: Kind = "point"
    told: bool = False

    @property
    def wants_set(self) -> bool:
        """Whether many entries are wanted, not the best few."""
        return self.kind != "point"


def question(text: str, beside: Sequence[str] = ()) -> Question:
    """A query by its words; `beside` are the plan and the last turns, which count for less."""
    weights: Counter[str] = Counter()
    for term in content_terms(text):
        weights[term] += 1
    asked = {term: float(weight) for term, weight in weights.items()}
    for other in beside:
        for term in dict.fromkeys(content_terms(other)):
            asked.setdefault(term, BESIDE_WEIGHT)
    # Sorting is stable: among equals the first asked stay.
    heaviest = sorted(asked, key=lambda term: -asked[term])[:QUERY_TERMS]
    return Question({term: asked[term] for term in heaviest}, _kind(text), _TOLD.search(text) is not None)


def room(asked: Question, tokens: int) -> int:
    """Of the tokens that recall may take at most, what this question gets."""
    if asked.wants_set:
        return tokens
    return tokens * POINT_SHARE[0] // POINT_SHARE[1]


def _kind(text: str) -> Kind:
    if _SUMMARY.search(text):
        return "summary"
    return "order" if _ORDER.search(text) else "point"

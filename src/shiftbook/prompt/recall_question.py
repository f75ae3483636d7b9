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
from shiftbook.prompt.epoch import RecallRoom

Kind = Literal["point", "order", "summary"]

BESIDE_WEIGHT = 0.3
"""What a term of the plan and the last turns counts beside one of a message that says next to nothing ("go
on"). A judgement."""

SPEAKS_FOR_ITSELF = 5
"""With so many terms of its own a message is asked by these alone; with fewer, what stands beside fades in. A
short question asks for one thing as well as a long one, and the last turns are often about another: at 10 it
cost .005 on LoCoMo and .014 at 834k (tuned halves, `shiftbook study recall DATA --policy journal`)."""

QUERY_TERMS = 64
"""Terms of a query that are used: a message of a person may be a whole file. The heaviest, then the first."""

CONVERSING = RecallRoom(point=20_000, whole_set=32_000)
"""What a message to an agent that converses may bring back, in tokens, unless the agent says otherwise. At
12, 16, 20 and 22 thousand chats of 834k hold .76, .79, .81 and .82 of what is asked for (`shiftbook study
recall DATA --policy recall-only --cap ...`); sets gain beyond that, points hardly."""

WORKING = RecallRoom(point=600, whole_set=1_200)
"""The same for an agent that works on tasks: its messages steer more than they ask, it can look for itself,
and what stands in its prompt is sent with every call."""

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
    """A query by its words; `beside` are the plan and the last turns, which count for less, or not at all."""
    weights: Counter[str] = Counter()
    for term in content_terms(text):
        weights[term] += 1
    asked = {term: float(weight) for term, weight in weights.items()}
    share = BESIDE_WEIGHT * max(0, SPEAKS_FOR_ITSELF - len(weights)) / SPEAKS_FOR_ITSELF
    for other in beside if share else ():
        for term in dict.fromkeys(content_terms(other)):
            asked.setdefault(term, share)
    # Sorting is stable: among equals the first asked stay.
    heaviest = sorted(asked, key=lambda term: -asked[term])[:QUERY_TERMS]
    return Question({term: asked[term] for term in heaviest}, _kind(text), _TOLD.search(text) is not None)


def _kind(text: str) -> Kind:
    if _SUMMARY.search(text):
        return "summary"
    return "order" if _ORDER.search(text) else "point"

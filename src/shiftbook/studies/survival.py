"""What stood in a prompt of what was needed, and the figures that follow.

Shares are pooled over all that was needed at all boundaries, each with Wilson's interval of 95%. Identifiers
of one boundary are not independent, so the intervals are rather too narrow than too wide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

from shiftbook.messages import Block, Call, Json, Result, Text
from shiftbook.prompt.measure import Gauge
from shiftbook.studies.boundaries import Boundary
from shiftbook.studies.identifiers import KINDS, Identifier, identifiers, outside_bare_lines, texts_in
from shiftbook.studies.intervals import wilson
from shiftbook.studies.looking import Looked

Figures = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One prompt at one boundary. `outside` are those held in a line that is more than a list, `of_lines`
    those needed that stood before it as numbers of lines alone."""

    session: str
    part: str
    boundary: int
    policy: str
    cap: str
    tokens: int
    needed: frozenset[Identifier]
    held: frozenset[Identifier]
    outside: frozenset[Identifier]
    shown: int
    of_lines: frozenset[Identifier] = frozenset()

    def row(self) -> Figures:
        """The row of the study's JSON: counts alone, no identifier of anybody's session."""
        return {
            "session": self.session,
            "part": self.part,
            "boundary": self.boundary,
            "policy": self.policy,
            "cap": self.cap,
            "tokens": self.tokens,
            "shown": self.shown,
            **{
                kind: {
                    "needed": len(of_kind(self.needed, kind)),
                    "held": len(of_kind(self.held, kind)),
                    "without_bare": len(of_kind(self.outside, kind)),
                }
                for kind in KINDS
            },
        }


def outcome(
    session: str, part: str, boundary: Boundary, policy: str, cap: str, blocks: Sequence[Block], gauge: Gauge
) -> Outcome:
    """What these blocks hold of what was needed after the boundary."""
    texts = [text for block in blocks for text in texts_of(block)]
    shown = {each for text in texts for each in identifiers(text)}
    outside = {each for text in texts for each in outside_bare_lines(text)}
    tokens = gauge.fixed + sum(gauge.measure(block) for block in blocks)
    needed = boundary.needed
    return Outcome(
        session,
        part,
        boundary.number,
        policy,
        cap,
        tokens,
        needed,
        needed & shown,
        needed & outside,
        len(shown),
        boundary.of_lines,
    )


def texts_of(block: Block) -> Iterator[str]:
    """Every text of a block: words, the inputs of calls, and results."""
    for part in block.parts:
        match part:
            case Text(text):
                yield text
            case Call(arguments=arguments, raw=raw):
                yield from texts_in(raw if arguments is None else arguments)
            case Result(content=content):
                yield from (each.text for each in content if isinstance(each, Text))


def of_kind(found: Iterable[Identifier], kind: str) -> list[Identifier]:
    """Those of one kind."""
    return [each for each in found if each[0] == kind]


def table_of(found: Sequence[Outcome], looked: Sequence[Looked]) -> Mapping[str, Json]:
    """`[policy][cap]` to figures, in the order in which they were studied."""
    table: dict[str, dict[str, Json]] = {}
    brought = {(each.session, each.boundary): each.brought for each in looked}
    for each in found:
        table.setdefault(each.policy, {}).setdefault(each.cap, None)
    for policy, caps in table.items():
        for cap in caps:
            chosen = [each for each in found if (each.policy, each.cap) == (policy, cap)]
            parts = sorted({each.part for each in chosen})
            caps[cap] = _figures(chosen, brought) | {
                "by_part": {part: _figures([e for e in chosen if e.part == part], brought) for part in parts}
            }
    return table


def _figures(found: Sequence[Outcome], brought: Mapping[tuple[str, int], frozenset[Identifier]]) -> Figures:
    held = sum(len(each.held) for each in found)
    shown = sum(each.shown for each in found)
    needed, lacking, back = (
        _counts(found, of)
        for of in (
            lambda each: each.needed,
            lambda each: each.needed - each.held,
            lambda each: (each.needed - each.held) & brought.get((each.session, each.boundary), frozenset()),
        )
    )
    hits = _counts(found, lambda each: each.held)
    outside = _counts(found, lambda each: each.outside)
    needed_text = _counts(found, lambda each: each.needed - each.of_lines)["numbers"]
    held_text = _counts(found, lambda each: each.held - each.of_lines)["numbers"]
    tokens = [each.tokens for each in found]
    return {
        **{kind: _share(hits[kind], needed[kind]) for kind in KINDS},
        "shown_per_needed": round(shown / held, 2) if held else None,
        "n": needed,
        "interval": {kind: [round(end, 4) for end in wilson(hits[kind], needed[kind])] for kind in KINDS},
        "numbers_in_text": _share(held_text, needed_text),
        "n_in_text": needed_text,
        "without_bare": {kind: _share(outside[kind], needed[kind]) for kind in KINDS},
        "lacking_recalled": {kind: _share(back[kind], lacking[kind]) for kind in KINDS},
        "tokens": {"median": median_low(tokens), "max": max(tokens)} if tokens else None,
        "boundaries": len(found),
    }


def _counts(found: Sequence[Outcome], of: Callable[[Outcome], Iterable[Identifier]]) -> dict[str, int]:
    return {kind: sum(len(of_kind(of(each), kind)) for each in found) for kind in KINDS}


def _share(hits: int, of: int) -> float | None:
    return round(hits / of, 4) if of else None

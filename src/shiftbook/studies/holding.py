"""Whether a prompt holds what was labelled as evidence, and the figures that follow.

Two rules. *whole*: the message's full text stands in the prompt. *cut*: at least its first 400 characters do.
A text counts only in a block that was made from that message, so that a short "Yes" elsewhere does not. For
each question *any* is whether some evidence is held, *all* whether all of it is, *mean* the share of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from shiftbook.messages import Block, Json, Result, Text
from shiftbook.prompt.cut import plain_text
from shiftbook.studies.chats import Asked, Chat
from shiftbook.studies.intervals import wilson

CUT_CHARS = 400
"""Of a longer message the rule *cut* wants so many characters from its beginning."""

RULES = ("whole", "cut")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question put to one prompt: how many of its labels are held, by either rule."""

    chat: Chat
    asked: Asked
    policy: str
    cap: int
    whole: int
    cut: int
    tokens: int
    """The prompt by the study's meter, the question included where the policy shows it."""


def held(blocks: Iterable[Block], chat: Chat, asked: Asked) -> tuple[int, int]:
    """How many of the question's labels these blocks hold, whole and cut."""
    texts: dict[int, list[str]] = {place: [] for place in asked.evidence}
    for block in blocks:
        for place in block.entries:
            if place in texts:
                texts[place].append(_text_of(block))
    whole = cut = 0
    for place, shown in texts.items():
        text = plain_text(chat.messages[place - 1].text)
        whole += any(text in each for each in shown)
        cut += any(text[:CUT_CHARS] in each for each in shown)
    return whole, cut


def figures(outcomes: Sequence[Outcome]) -> dict[str, Json]:
    """The figures of some questions by the rule *whole*, and beside them by the rule *cut*.

    `interval` holds Wilson's intervals of 95% for any and all.
    """
    whole, cut = (_figures(outcomes, rule) for rule in RULES)
    by_type = {
        name: _figures(chosen, "whole") | {"cut": _figures(chosen, "cut")}
        for name, chosen in grouped(outcomes, lambda each: each.asked.type).items()
    }
    parts = {
        name: _figures(chosen, "whole") | {"cut": _figures(chosen, "cut")}
        for name, chosen in grouped(outcomes, lambda each: each.chat.part).items()
    }
    return whole | {
        "cut": cut,
        "by_type": by_type,
        "by_part": parts,
        "tokens_max": max((each.tokens for each in outcomes), default=None),
    }


def grouped(outcomes: Iterable[Outcome], key: Callable[[Outcome], str]) -> dict[str, list[Outcome]]:
    """Outcomes by a name, the names in order."""
    groups: dict[str, list[Outcome]] = {}
    for each in outcomes:
        groups.setdefault(key(each), []).append(each)
    return {name: groups[name] for name in sorted(groups)}


def _figures(outcomes: Sequence[Outcome], rule: str) -> dict[str, Json]:
    n = len(outcomes)
    counts = [each.whole if rule == "whole" else each.cut for each in outcomes]
    labels = [len(each.asked.evidence) for each in outcomes]
    any_held = sum(1 for count in counts if count)
    all_held = sum(1 for count, of in zip(counts, labels, strict=True) if count == of)
    shares = [count / of for count, of in zip(counts, labels, strict=True)]
    return {
        "n": n,
        "any": _rounded(any_held / n) if n else None,
        "all": _rounded(all_held / n) if n else None,
        "mean": _rounded(sum(shares) / n) if n else None,
        "interval": {name: _interval(hits, n) for name, hits in (("any", any_held), ("all", all_held))},
    }


def _interval(hits: int, n: int) -> list[Json]:
    return [_rounded(end) for end in wilson(hits, n)]


def _rounded(share: float) -> float:
    return round(share, 4)


def _text_of(block: Block) -> str:
    texts = []
    for part in block.parts:
        content = part.content if isinstance(part, Result) else (part,)
        texts += [each.text for each in content if isinstance(each, Text)]
    return "\n".join(texts)


def table_of(outcomes: Sequence[Outcome]) -> Mapping[str, Json]:
    """`[source][size][policy][cap]` to figures."""
    table: dict[str, dict[str, dict[str, dict[str, Json]]]] = {}
    keyed = grouped(outcomes, lambda e: f"{e.chat.source}\n{e.chat.size}\n{e.policy}\n{e.cap:012}")
    for name, chosen in keyed.items():
        source, size, policy, cap = name.split("\n")
        by_policy = table.setdefault(source, {}).setdefault(size, {})
        by_policy.setdefault(policy, {})[str(int(cap))] = figures(chosen)
    return table

"""A run as recall sees it: units of what was said and done, each as counts of terms and a few traits.

A unit is one thing that a person said with the reply and results that followed it, or a later reply with its
results. Units are numbered in the run's order from 0. What is told to a model by code (rules, statements, the
plan, a recall) is no unit: it stands in a brief or was brought back already.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

from shiftbook import canonical
from shiftbook.entries import ActionFinished, Entry, ModelAnswered, ModelInterrupted, PersonSaid
from shiftbook.messages import Call, Missing, Part, Text
from shiftbook.projections.recall_terms import terms

Voice = Literal["person", "reply", "result"]

RECALL_TOOLS = frozenset({"recall", "read_entry"})
"""The book tools whose results are older entries."""

_OPENS_ACKNOWLEDGING = re.compile(
    r"\W*(?:thanks|thank you|ok|okay|sounds|great|got it|sure|yeah|yes|cool|perfect|alright|awesome|nice|"
    r"i see|right|understood)\b",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Spoken:
    """An entry's words and whose voice it is."""

    position: int
    voice: Voice
    text: str


@dataclass(frozen=True, slots=True)
class UnitWords:
    """What a ranking knows of a unit: counts of terms, lengths in terms, and three traits.

    `novelty` is the share of its distinct terms that stood in no unit before.
    """

    said: Mapping[str, int]
    done: Mapping[str, int]
    said_length: int
    done_length: int
    acknowledges: bool = False
    has_number: bool = False
    novelty: float = 0.0


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of a run: its number, the positions that it reaches over, and its words."""

    number: int
    first: int
    last: int
    words: UnitWords


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of a whole run, whatever part of it is ranked: how many units have words of a side, how long these
    are together in terms, and in how many units of that side each of a question's terms stands."""

    said_units: int
    said_length: int
    done_units: int
    done_length: int
    said_in: Mapping[str, int]
    done_in: Mapping[str, int]


def words_of(entries: Iterable[Entry]) -> Iterator[Spoken]:
    """The words of these entries, in their order, as recall finds them by.

    Kinds that are not recalled are passed over, and so is what a recall brought back: it stands elsewhere.
    """
    brought_back: set[str] = set()
    for entry in entries:
        match entry.what:
            case PersonSaid(content=content):
                yield Spoken(entry.position, "person", _text(content))
            case ModelAnswered(parts=parts) | ModelInterrupted(parts=parts):
                looks = {part.id for part in parts if isinstance(part, Call) and part.tool in RECALL_TOOLS}
                brought_back |= looks
                own = [part for part in parts if not (isinstance(part, Call) and part.id in looks)]
                yield Spoken(entry.position, "reply", _text(own))
            case ActionFinished(call=call, content=content) if call not in brought_back:
                yield Spoken(entry.position, "result", _text(content))


def unit_numbers(voices: Sequence[Voice]) -> list[int]:
    """The unit of each record, from 0: a person's words open one, so does a reply after another reply.

    Results belong to the reply before them.
    """
    opens: list[int] = []
    has_reply = False
    for place, voice in enumerate(voices):
        is_new = place > 0 and opens_unit(voice, has_reply)
        opens.append(int(is_new))
        has_reply = voice == "reply" or (has_reply and not is_new)
    return list(accumulate(opens))


def opens_unit(voice: Voice, has_reply: bool) -> bool:
    """Whether this voice begins a unit after one that has a reply already, or has none."""
    return voice == "person" or (voice == "reply" and has_reply)


def unit_words(said: Sequence[str], done: Sequence[str], known: Container[str]) -> UnitWords:
    """A unit's words from its texts; `known` are the terms of all units before it."""
    said_terms = Counter(term for text in said for term in terms(text))
    done_terms = Counter(term for text in done for term in terms(text))
    words = UnitWords(
        said=said_terms,
        done=done_terms,
        said_length=sum(said_terms.values()),
        done_length=sum(done_terms.values()),
        acknowledges=bool(said) and _OPENS_ACKNOWLEDGING.match(said[0]) is not None,
        has_number=any(_DIGIT.search(text) for text in (said or done)),
    )
    return with_novelty(words, known)


def unit_text(said: Sequence[str], done: Sequence[str]) -> str:
    """The text that a unit's vector is made of: what was said in it, else what was done."""
    return "\n".join(said or done)


def with_novelty(words: UnitWords, known: Container[str]) -> UnitWords:
    """The same words after units with these terms."""
    distinct = words.said or words.done
    fresh = sum(1 for term in distinct if term not in known)
    return replace(words, novelty=fresh / len(distinct) if distinct else 0.0)


def closed_units(words: Iterable[Spoken]) -> Iterator[tuple[Spoken, ...]]:
    """The words in groups, a unit each; the last one, which may still grow, is left out."""
    group: list[Spoken] = []
    has_reply = False
    for each in words:
        if group and opens_unit(each.voice, has_reply):
            yield tuple(group)
            group, has_reply = [], False
        group.append(each)
        has_reply = has_reply or each.voice == "reply"


def _text(parts: Iterable[Part]) -> str:
    texts: list[str] = []
    for part in parts:
        match part:
            case Text(text):
                texts.append(text)
            case Missing(what):
                texts.append(what)
            case Call(_, tool, arguments, raw):
                given = raw or "" if arguments is None else canonical.encode(dict(arguments))
                texts += [tool, given]
    return "\n".join(text for text in texts if text)

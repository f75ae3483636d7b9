"""Bringing older entries back word for word: what of a run is wanted now, within a budget of tokens.

Turns are ranked, not sessions, and by what people said first: their words are a tenth of a long chat and hold
most of what is asked for later. `Memory` holds a run's records in memory and is right for some thousands of
them and for studies; a longer run is searched through `journal.index`, which hands the same ranking its
candidates. Both are used alike by automatic recall on a message, at a rebuild, and by the model's own tool.
Refused: any model, clock or chance; a rule for one data set; showing what is not in the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shiftbook.entries import Recalled
from shiftbook.projections.recall_units import (
    Statistics,
    UnitWords,
    Voice,
    opens_unit,
    unit_text,
    unit_words,
)
from shiftbook.prompt.epoch import WantRecall
from shiftbook.prompt.recall_pack import KEEP_CHARS, Found, Piece, pack
from shiftbook.prompt.recall_question import Question, question
from shiftbook.prompt.recall_rank import Ranked, rank
from shiftbook.vectors.likeness import likeness
from shiftbook.vectors.promise import Vectors

QUERY_CHARS_KEPT = 200
"""Of what code asked about so much is written down: the words themselves stand in the journal."""


def recalled(want: WantRecall, found: Sequence[Found]) -> Recalled:
    """What is written down of a recall by code: which entries, in which form, in how much room."""
    cut = [each for each in found if each.keep is not None]
    return Recalled(
        query=want.query[:QUERY_CHARS_KEPT],
        found=tuple(each.position for each in found),
        asked_by=want.asked_by,
        cut=tuple(each.position for each in cut),
        keep=next((each.keep for each in cut if each.keep is not None), 0),
        room=want.room,
    )


@dataclass(frozen=True, slots=True)
class Record:
    """An entry as recall sees it. Sizes are in tokens by the caller's meter, as the entry would be shown.

    `cut_tokens` is its size with `KEEP_CHARS` of its characters, None where that is no gain.
    """

    position: int
    voice: Voice
    text: str
    tokens: int
    cut_tokens: int | None = None


class Memory:
    """The records of a run, in the run's order; more may be added at any time, and all be asked often.

    With `vectors` the likeness of each unit to the question's own words is one more ranking.
    """

    def __init__(self, records: Iterable[Record] = (), vectors: Vectors | None = None) -> None:
        self._pieces: list[Piece] = []
        self._texts: list[tuple[list[str], list[str]]] = []
        self._units: dict[int, UnitWords] = {}
        self._said: dict[str, list[int]] = {}
        self._done: dict[str, list[int]] = {}
        self._known: set[str] = set()
        """The terms of all units before the last."""
        self._has_reply = False
        self._vectors = vectors
        self._vector_of: dict[int, bytes] = {}
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Take in the next record of the run."""
        if not self._texts or opens_unit(record.voice, self._has_reply):
            if self._texts:
                words = self._units[len(self._texts) - 1]
                self._known.update(words.said, words.done)
            self._texts.append(([], []))
            self._has_reply = False
        self._has_reply = self._has_reply or record.voice == "reply"
        unit = len(self._texts) - 1
        self._pieces.append(Piece(record.position, unit, record.voice, record.tokens, record.cut_tokens))
        said, done = self._texts[unit]
        (said if record.voice == "person" else done).append(record.text)
        self._units[unit] = words = unit_words(said, done, self._known)
        self._vector_of.pop(unit, None)
        for postings, terms in ((self._said, words.said), (self._done, words.done)):
            for term in terms:
                units = postings.setdefault(term, [])
                if not units or units[-1] != unit:
                    units.append(unit)

    def ranked(self, asked: Question, text: str = "") -> Ranked:
        """The units, by their numbers, in the light of a question; `text` is its own, for vectors."""
        matching = {
            unit for term in asked.terms for unit in (*self._said.get(term, ()), *self._done.get(term, ()))
        }
        statistics = Statistics(
            said_units=sum(1 for words in self._units.values() if words.said_length),
            said_length=sum(words.said_length for words in self._units.values()),
            done_units=sum(1 for words in self._units.values() if words.done_length),
            done_length=sum(words.done_length for words in self._units.values()),
            said_in={term: len(self._said.get(term, ())) for term in asked.terms},
            done_in={term: len(self._done.get(term, ())) for term in asked.terms},
        )
        others = [self._alike(self._vectors, text)] if self._vectors is not None and text else []
        return rank(asked, statistics, self._units, matching, others)

    def recall(
        self,
        query: str | Question,
        budget: int,
        *,
        beside: Sequence[str] = (),
        shown: frozenset[int] = frozenset(),
        keep: int = KEEP_CHARS,
    ) -> tuple[Found, ...]:
        """What comes back for a query within `budget` tokens, in the order of the run.

        `beside` are the plan and the last turns; `shown` are positions that stand in the prompt already and
        do not come back a second time, though they still lend their neighbours weight.
        """
        asked = question(query, beside) if isinstance(query, str) else query
        ranked = self.ranked(asked, query if isinstance(query, str) else "")
        return pack(asked, ranked, (p for p in self._pieces if p.position not in shown), budget, keep)

    def _alike(self, vectors: Vectors, text: str) -> dict[int, float]:
        for unit, (said, done) in enumerate(self._texts):
            if unit not in self._vector_of:
                self._vector_of[unit] = vectors.of(unit_text(said, done))
        return likeness(self._vector_of, vectors.of(text))

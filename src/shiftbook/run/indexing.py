"""A run's search index in its holder's hands: filled between turns, asked by recall, never a reason to stop.

It is opened when it is first wanted. It is brought forward a batch at a time where it lags by one, after a
commit and before the next request, and at rest; before every search by what is missing, up to a batch. So
what it does not know yet is newer than the turns that stand in a prompt. One that turns out to be damaged is
made anew, once, and the run says so. Where it cannot be opened or used
the run says so and goes on without it: the `recall` tool reads the journal through instead, and code
brings nothing back on its own. It is tried again later, since a lock ends and a disk gets room; but ever more
seldom, since a locked file holds the loop up for its time-out at each try. The run says when it is back.

With vectors each unit gets one once its words are in, by batches of the same size; until a run has them all,
as after vectors were switched on for a long one, words alone rank.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from shiftbook.errors import Damaged, ShiftbookError
from shiftbook.journal.index import Alike, Candidates, Covered, Index, Lacking, fill
from shiftbook.journal.index_vectors import fill_vectors
from shiftbook.journal.open import open_index
from shiftbook.journal.promises import Store
from shiftbook.projections.recall_units import Unit
from shiftbook.prompt.epoch import Measure, WantRecall
from shiftbook.prompt.recall_pack import Found
from shiftbook.run.recalling import recall, search_index
from shiftbook.run.search import search_words
from shiftbook.vectors.promise import Vectors

log = logging.getLogger("shiftbook")

FILL_LAG = 100
"""Entries by which the index may be behind before it is brought forward between turns: fewer than a prompt of
some thousand tokens shows, and at 0.43 ms an entry (`python -m benchmarks.recall`) no long wait."""

REST_BATCHES = 4
"""Batches that are taken in at rest; what is left then comes between the next turns."""

SHORT = 500
"""Entries that are read through as fast as they are searched."""

TAIL_SHARE = 4
"""One part in so many of what a search gives back is kept for entries that the index does not know yet."""

LEFT_ALONE = 8
"""So many times an index that cannot be used is not asked, then it is tried again; after each failure twice
as many times, up to `LEFT_ALONE_MAX`."""

LEFT_ALONE_MAX = 1_024

UNUSABLE = "search index unusable"
USABLE = "search index usable again"
MADE_ANEW = "search index made anew"
NO_VECTORS = "vectors unusable"
"""The names of the warnings."""

T = TypeVar("T")


class IndexLost(Exception):
    """The index cannot be used; the message says why. `is_damaged`: what it holds is not what was put in."""

    def __init__(self, why: str, *, is_damaged: bool = False) -> None:
        super().__init__(why)
        self.is_damaged = is_damaged


class VectorsLost(Exception):
    """What makes vectors failed; the message says how."""


class Opens(Protocol):
    """Opens a store's index; `anew`, an empty one in the place of the one that there is."""

    def __call__(self, store: Store, *, anew: bool = False) -> Index | None: ...


class RunIndex:
    """One run's way to the index of its journal. `warn` is told, by a warning's name and its detail, that it
    cannot be used, that it is again, and once at the most that it was made anew."""

    def __init__(
        self,
        store: Store,
        run: str,
        warn: Callable[[str, str], object],
        *,
        is_wanted: bool = True,
        vectors: Vectors | None = None,
        opens: Opens = open_index,
    ) -> None:
        self._store, self._run, self._warn, self._opens = store, run, warn, opens
        self._is_wanted = is_wanted
        self._vectors = None if vectors is None else _GuardedVectors(vectors)
        self._index: _Guarded | None = None
        self._has_none = False
        """There is nothing to be opened (any more)."""
        self._is_lost = False
        self._left_alone, self._next_left_alone = 0, LEFT_ALONE
        self._was_damaged = False
        self._looked_at = 0
        """The run's last position when the index was last brought forward."""

    async def keep_up(self, position: int, batches: int = 1) -> None:
        """Take in what is new where the index lags by a batch; `position` is the last one committed."""
        if self._is_wanted and position - self._looked_at >= FILL_LAG:
            await self._asked(lambda index: self._forward(index, position, batches), None)

    async def recall(self, want: WantRecall, measure: Measure) -> tuple[Found, ...]:
        """What comes back for a policy; nothing where there is no index."""

        async def found(index: Index) -> tuple[Found, ...]:
            await self._fill(index)
            return await recall(
                index,
                self._store,
                self._run,
                want.query,
                want.room,
                measure,
                beside=want.beside,
                shown=want.shown,
                vectors=self._vectors,
            )

        return await self._asked(found, ())

    async def search(self, query: str, limit: int) -> list[int]:
        """The positions of entries about a query, the best first, whatever state the index is in.

        What it does not know yet is read through, and all of a journal that is short, or of which the index
        lacks much.
        """

        async def searched(index: Index) -> list[int] | None:
            has_more_words, _ = await self._fill(index)
            if has_more_words:
                return None
            found = await search_index(index, self._store, self._run, query, limit, self._vectors)
            known = (await index.covered(self._run)).position
            newer = await search_words(self._store, self._run, query, limit, after=known)
            kept = found[: limit - min(len(newer), max(1, limit // TAIL_SHARE))]
            return [*kept, *newer[: limit - len(kept)]]

        is_short = (await self._store.entries.head(self._run)).position <= SHORT
        found = None if is_short else await self._asked(searched, None)
        return await search_words(self._store, self._run, query, limit) if found is None else found

    async def close(self) -> None:
        """Let go of it."""
        self._has_none = True
        await self._let_go()

    async def _let_go(self) -> None:
        index, self._index = self._index, None
        if index is not None:
            await index.close()

    async def _asked(self, ask: Callable[[Index], Awaitable[T]], otherwise: T) -> T:
        """What the index says, or `otherwise` where there is none; one that is damaged is made anew first."""
        if self._left_alone:
            self._left_alone -= 1
            return otherwise
        try:
            try:
                index = self._opened()
                found = otherwise if index is None else await ask(index)
            except VectorsLost as fault:
                self._lose_vectors(fault)
                return await self._asked(ask, otherwise)
            except IndexLost as fault:
                if not fault.is_damaged or self._was_damaged:
                    raise
                await self._made_anew(fault)
                index = self._opened()
                found = otherwise if index is None else await ask(index)
        except IndexLost as fault:
            await self._lose(fault)
            return otherwise
        if self._is_lost:
            self._is_lost = False
            self._warn(USABLE, "What was written meanwhile is taken in, and older entries are brought back.")
        return found

    def _lose_vectors(self, fault: VectorsLost) -> None:
        self._vectors = None
        log.warning("run %s goes on without vectors: %s", self._run, fault)
        self._warn(NO_VECTORS, f"The agent's vectors failed, so recall ranks by words alone: {fault}")

    async def _made_anew(self, fault: IndexLost) -> None:
        self._was_damaged, self._looked_at = True, 0
        await self._let_go()
        self._opened(anew=True)
        log.warning("run %s has its search index made anew: %s", self._run, fault)
        self._warn(MADE_ANEW, "It was damaged and is filled again; until then less is brought back.")

    def _opened(self, *, anew: bool = False) -> _Guarded | None:
        if self._index is None and not self._has_none:
            try:
                index = self._opens(self._store, anew=anew)
            except (ShiftbookError, OSError) as fault:
                raise IndexLost(str(fault), is_damaged=isinstance(fault, Damaged)) from None
            if index is None:
                self._has_none = True  # This kind of store has none, which is no fault.
            else:
                self._index = _Guarded(index)
        return self._index

    async def _forward(self, index: Index, position: int, batches: int) -> None:
        while batches and await self._filled(index, position):
            batches -= 1

    async def _filled(self, index: Index, position: int) -> bool:
        more_words, more_vectors = await self._fill(index)
        if more_words:
            self._looked_at = (await index.covered(self._run)).position
        elif not more_vectors:
            self._looked_at = position
        return more_words or more_vectors

    async def _fill(self, index: Index) -> tuple[bool, bool]:
        """Take in a batch of words, then one of vectors; whether more of each may be left."""
        more_words = await fill(index, self._store, self._run)
        if self._vectors is None:
            return more_words, False
        return more_words, await fill_vectors(index, self._store, self._run, self._vectors)

    async def _lose(self, fault: IndexLost) -> None:
        self._looked_at, self._left_alone = 0, self._next_left_alone
        self._next_left_alone = min(2 * self._next_left_alone, LEFT_ALONE_MAX)
        with suppress(IndexLost):
            await self._let_go()
        if self._is_lost:
            return
        self._is_lost = True
        log.warning("run %s goes on without a search index: %s", self._run, fault)
        self._warn(
            UNUSABLE,
            f"The search index cannot be used, so nothing is brought back by itself until it is: {fault}",
        )


class _GuardedVectors:
    """Vectors whose failures are told apart: who made them is not known here. One that is no bytes, or not as
    long as the others, is a failure too: in the index it would look like damage."""

    def __init__(self, inner: Vectors) -> None:
        self._inner = inner
        self._length = 0
        self.name = inner.name

    def of(self, text: str) -> bytes:
        try:
            vector: object = self._inner.of(text)
        except Exception as fault:  # noqa: BLE001 - an author's code may raise anything at all
            raise VectorsLost(f"{type(fault).__name__}: {fault}"[:200]) from None
        if not isinstance(vector, bytes) or not vector or len(vector) != (self._length or len(vector)):
            raise VectorsLost(f"{vector!r:.60} is no vector of bytes as long as the others.")
        self._length = len(vector)
        return vector


class _Guarded:
    """An index whose refusals are told apart from those of the journal."""

    def __init__(self, inner: Index) -> None:
        self._inner = inner

    async def covered(self, run: str) -> Covered:
        return await _kept(self._inner.covered(run))

    async def add(self, run: str, units: Sequence[Unit], covered: Covered, to: Covered) -> bool:
        return await _kept(self._inner.add(run, units, covered, to))

    async def known(self, run: str, terms: Iterable[str]) -> set[str]:
        return await _kept(self._inner.known(run, terms))

    async def candidates(
        self,
        run: str,
        terms: Sequence[str],
        *,
        reach: int,
        limit: int | None = None,
        alike: Alike | None = None,
    ) -> Candidates:
        return await _kept(self._inner.candidates(run, terms, reach=reach, limit=limit, alike=alike))

    async def lacking(self, run: str, name: str, limit: int) -> Lacking:
        return await _kept(self._inner.lacking(run, name, limit))

    async def add_vectors(self, run: str, name: str, start: int, vectors: Sequence[bytes]) -> bool:
        return await _kept(self._inner.add_vectors(run, name, start, vectors))

    async def drop(self, run: str | None = None) -> None:
        await _kept(self._inner.drop(run))

    async def close(self) -> None:
        await _kept(self._inner.close())


async def _kept(asked: Awaitable[T]) -> T:
    try:
        return await asked
    except ShiftbookError as fault:
        raise IndexLost(str(fault), is_damaged=isinstance(fault, Damaged)) from None

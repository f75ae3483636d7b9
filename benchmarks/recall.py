"""How long a search over a run takes, by the run's length; `python -m benchmarks.recall [ENTRIES ...]`.

With `--postgres` before the lengths it is asked of a server started for it: the CPU is then this process's
alone, so believe the wall, on a machine that is not busy. With `--vectors FOLDER` each unit has a vector
from that folder too, and each query is asked by its words alone and by a vector as well, one after the other;
making the vectors is part of the figures.

A made-up run: words by Zipf's law from 20,000, a person's message of 25 words in every tenth unit, replies of
120 words, results of 60. The index is filled with it in batches, then asked queries of 6 to 12 words, common
and rare mixed, and the ranking puts the candidates in order. Printed: CPU time to fill an entry, the file's
size, and the time of a search with its ranking, for a point and for a set: CPU and wall, medians of a
hundred, and the 95th of the wall. On a busy machine believe the CPU.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from random import Random

from shiftbook.journal import sqlite_index
from shiftbook.journal.index import Alike, Covered, Index
from shiftbook.journal.open import open_index, open_store
from shiftbook.projections.recall_units import Unit, unit_text, unit_words
from shiftbook.prompt.recall_question import question
from shiftbook.prompt.recall_rank import NEAR, WIDE, rank
from shiftbook.vectors.promise import Vectors
from shiftbook.vectors.static import static_vectors
from tests import postgres

VOCABULARY = 20_000
QUERIES = 100
BATCH_UNITS = 200


def main() -> int:
    """Measure each length that was asked for."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.recall")
    options.add_argument("--postgres", action="store_true")
    options.add_argument("--vectors", metavar="FOLDER")
    options.add_argument("entries", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    given = options.parse_args()
    vectors = None if given.vectors is None else static_vectors(given.vectors)
    for entries in given.entries:
        told = asyncio.run((_on_server if given.postgres else _in_file)(entries, vectors))
        print(json.dumps(told), flush=True)
    return 0


async def _in_file(entries: int, vectors: Vectors | None) -> dict[str, float | int]:
    with tempfile.TemporaryDirectory() as folder:
        index = sqlite_index.open_index(str(Path(folder) / "run.db"))
        told = await measured(index, entries, vectors)
        size = _size(Path(folder))
        await index.close()
    return {**told, "bytes_per_entry": round(size / entries)}


def _size(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.glob(f"*{sqlite_index.SUFFIX}*"))


async def _on_server(entries: int, vectors: Vectors | None) -> dict[str, float | int]:
    with postgres.server(durable=True) as server:
        store = await open_store(server.address)
        index = open_index(store)
        assert index is not None
        told = await measured(index, entries, vectors)
        await store.close()
        tables = "SELECT oid FROM pg_class WHERE relkind = 'r' AND relname LIKE 'search_%'"
        ((size,),) = server.sql(
            server.address, f"SELECT sum(pg_total_relation_size(oid))::bigint FROM ({tables}) AS those"
        )
    return {**told, "bytes_per_entry": round(int(str(size)) / entries)}


async def measured(index: Index, entries: int, vectors: Vectors | None = None) -> dict[str, float | int]:
    """The figures of one length."""
    words = Words()
    began, at = time.process_time(), time.perf_counter()
    await _fill(index, entries, words, vectors)
    filled, took = time.process_time() - began, time.perf_counter() - at
    kinds = {"": None} if vectors is None else {"": None, "alike_": vectors}
    times: dict[str, list[tuple[float, float]]] = {}
    for number in range(QUERIES):
        text = words.query(Random(number))
        for kind, by in kinds.items():
            times.setdefault(f"{kind}point", []).append(await _asked(index, text, by))
            wide = f"Give me an overview of {text}"
            times.setdefault(f"{kind}set", []).append(await _asked(index, wide, by))
    return {
        "entries": entries,
        "fill_us_per_entry": round(filled / entries * 1e6),
        "fill_wall_us_per_entry": round(took / entries * 1e6),
        **{name: figure for kind, each in times.items() for name, figure in _told(kind, each).items()},
    }


def _told(name: str, times: list[tuple[float, float]]) -> dict[str, float]:
    cpu, wall = (sorted(each) for each in zip(*times, strict=True))
    return {
        f"{name}_cpu_ms": round(statistics.median(cpu), 1),
        f"{name}_wall_ms": round(statistics.median(wall), 1),
        f"{name}_wall_ms_p95": round(wall[len(wall) * 95 // 100], 1),
    }


async def _asked(index: Index, text: str, vectors: Vectors | None) -> tuple[float, float]:
    """CPU and wall milliseconds of one search and its ranking."""
    cpu, wall = time.process_time(), time.perf_counter()
    asked = question(text)
    reach = len(WIDE if asked.wants_set else NEAR)
    alike = None if vectors is None else Alike(vectors.name, vectors.of(text))
    found = await index.candidates("run", list(asked.terms), reach=reach, alike=alike)
    others = [found.likeness] if alike is not None else []
    assert rank(asked, found.statistics, found.words, found.matching, others).useful
    return (time.process_time() - cpu) * 1_000, (time.perf_counter() - wall) * 1_000


async def _fill(index: Index, entries: int, words: Words, vectors: Vectors | None) -> None:
    """Three entries a unit in nine of ten, a message and a reply in the tenth: 2.9 on average."""
    covered = Covered()
    known: set[str] = set()
    batch: list[Unit] = []
    texts: list[str] = []
    position = 0
    for number, (said, done) in enumerate(words.units()):
        if position >= entries:
            break
        counts = unit_words(said, done, known)
        known.update(counts.said, counts.done)
        batch.append(Unit(number, position + 1, position + len(said) + len(done), counts))
        texts.append(unit_text(said, done))
        position += len(said) + len(done)
        if len(batch) == BATCH_UNITS or position >= entries:
            to = Covered(position, b"mark", number + 1)
            assert await index.add("run", batch, covered, to)
            if vectors is not None:
                made = [vectors.of(text) for text in texts]
                assert await index.add_vectors("run", vectors.name, covered.units, made)
            covered, batch, texts = to, [], []


class Words:
    """Texts by chance, always the same."""

    def __init__(self) -> None:
        self._names = [f"w{number:05}x" for number in range(VOCABULARY)]
        self._weights = list(accumulate(1 / (rank + 3) for rank in range(VOCABULARY)))

    def units(self) -> Iterator[tuple[list[str], list[str]]]:
        """Units of a run that works on tasks, for ever: what was said, and what was done."""
        chance = Random(1)
        number = 0
        while True:
            number += 1
            said = [self._text(chance, 25)] if number % 10 == 0 else []
            yield said, [self._text(chance, 120)] + ([self._text(chance, 60)] * (0 if said else 1))

    def chat(self) -> Iterator[str]:
        """A message of a person, a reply, and so on, for ever."""
        chance = Random(2)
        while True:
            yield self._text(chance, 25)
            yield self._text(chance, 120)

    def query(self, chance: Random) -> str:
        """A question of 6 to 12 words."""
        return self._text(chance, chance.randint(6, 12))

    def _text(self, chance: Random, length: int) -> str:
        return " ".join(chance.choices(self._names, cum_weights=self._weights, k=length))


if __name__ == "__main__":
    sys.exit(main())

"""Journals of every release are read as on their first day: whole, the same view, the same prompts."""

from __future__ import annotations

import asyncio
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from shiftbook import canonical
from shiftbook.entries import KIND_NUMBERS, KINDS
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Store
from shiftbook.testing.clock import SimulatedClock
from shiftbook.transfer import export_run, import_run
from shiftbook.verify import verify
from shiftbook.views import prompt_view
from tests import golden
from tests.journal.places import fresh_database

ALL = sorted(golden.JOURNALS.glob("*/*.jsonl"))


FORMAT_PAGE = golden.JOURNALS.parent.parent / "docs" / "reference" / "format.md"


def test_the_contract_names_every_kind_with_its_number_and_fields() -> None:
    told = re.findall(
        r"^\| (\d+) \| `(\w+)` \| (.*) \|$", FORMAT_PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    wanted = []
    for name, number in KIND_NUMBERS.items():
        names = [
            (each.name, each.default is not MISSING or each.default_factory is not MISSING)
            for each in fields(KINDS[name])
        ]
        wanted.append((str(number), name, names))
    got = [
        (number, name, [(part.split(" ")[0], "(" in part) for part in re.split(r", (?![^(]*\))", line)])
        for number, name, line in told
    ]
    assert got == wanted


def expected(path: Path) -> Any:
    text = path.with_suffix(".told.json").read_text(encoding="utf-8")
    return canonical.decode(text.removesuffix("\n"))


def test_nobody_edits_a_golden_journal() -> None:
    assert golden.HASHES.read_text(encoding="utf-8") == golden.hashes(), (
        "make a new one; never edit an old one"
    )


def test_this_release_has_its_golden_journals_and_they_hold_every_kind() -> None:
    mine = [path for path in ALL if path.parent == golden.FOLDER]
    assert len(mine) == len(golden.MAKERS)
    assert {kind for path in mine for kind in expected(path)["kinds"]} == set(KINDS)


@pytest.mark.parametrize("path", ALL, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_golden_journal_is_read_as_on_its_first_day(path: Path) -> None:
    text, wanted = path.read_bytes().decode("utf-8"), expected(path)

    async def check() -> None:
        async with golden.in_memory(SimulatedClock(1), f"read {path.stem}") as store:
            await as_on_its_first_day(store, text, wanted)

    asyncio.run(check())


@pytest.mark.parametrize("path", ALL, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_g5_a_golden_journal_is_read_the_same_on_postgres(path: Path) -> None:
    text, wanted = path.read_bytes().decode("utf-8"), expected(path)

    async def check(address: str) -> None:
        store = await open_store(address, clock=SimulatedClock(1))
        try:
            await as_on_its_first_day(store, text, wanted)
        finally:
            await store.close()

    with fresh_database() as address:
        asyncio.run(check(address))


async def as_on_its_first_day(store: Store, text: str, wanted: Any) -> None:
    run = (await import_run(store, text.split("\n")[:-1])).run
    verdict = await verify(store, run)
    assert verdict.ok, verdict.faults
    got = await golden.told(store, run)
    assert verdict.prompts == len(wanted["prompts"]) + wanted["kinds"].count("ReportAsked")
    assert got["kinds"] == wanted["kinds"]
    assert got["prompts"] == wanted["prompts"]
    for part in ("view", "figures"):
        # A later release may tell more; what the first one told stays.
        plain = canonical.decode(canonical.encode({name: got[part][name] for name in wanted[part]}))
        assert plain == wanted[part]
    for turn, digest in enumerate(wanted["prompts"], start=1):
        prompt = await prompt_view(store, run, turn)
        assert prompt["digest"] == digest
    again = "".join([line async for line in export_run(store, run)])
    assert again == text, "and goes out again to the byte"

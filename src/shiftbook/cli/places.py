"""Where the journal is, and which run is meant.

The order: the flag, SHIFTBOOK_DB, `db` under [tool.shiftbook] in the nearest pyproject.toml at or above the
working folder that has it, ./shiftbook.db. A path in a pyproject.toml is relative to that file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from shiftbook.errors import BadInput
from shiftbook.journal.open import open_store
from shiftbook.journal.postgres_address import names_a_server
from shiftbook.journal.promises import Store

DB_DEFAULT = "shiftbook.db"
DB_VARIABLE = "SHIFTBOOK_DB"


def address(flag: str | None) -> str:
    """The journal's address by the order above; `BadInput` for a pyproject.toml that cannot be read."""
    if flag is not None:
        return flag
    return os.environ.get(DB_VARIABLE) or _from_project(Path.cwd()) or DB_DEFAULT


def server(flag: str | None) -> str:
    """The same, for what needs a server; `BadInput` for a file, which is neither looked for nor made."""
    where = address(flag)
    if not names_a_server(where):
        raise BadInput(
            f"{where} is no PostgreSQL database, and only there can runs wait in a queue: give --db "
            "postgresql://HOST/DATABASE."
        )
    return where


def _from_project(folder: Path) -> str | None:
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if not file.is_file():
            continue
        try:
            tools = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
            raise BadInput(
                f"{file} cannot be read ({fault}): mend it, or name the journal by --db."
            ) from None
        if "shiftbook" not in tools:
            continue
        db = tools["shiftbook"].get("db") if isinstance(tools["shiftbook"], dict) else None
        if db is None:
            continue
        if not isinstance(db, str) or not db:
            raise BadInput(
                f'{file}: `db` under [tool.shiftbook] has to be a path, such as db = "shiftbook.db".'
            )
        return db if names_a_server(db) else str(place / Path(db).expanduser())
    return None


@asynccontextmanager
async def journal(flag: str | None, *, create: bool = False, read_only: bool = False) -> AsyncIterator[Store]:
    """The open journal, closed at the end. Only verbs that begin runs create it."""
    store = await open_store(address(flag), create=create, read_only=read_only)
    try:
        yield store
    finally:
        await store.close()


async def run_meant(store: Store, run: str | None, last: bool) -> str:
    """The whole id of the run that a person named by a prefix or by `--last`."""
    if run is not None and last:
        raise BadInput(f"Both a run ({run}) and --last were given: give one of the two.")
    if run is not None:
        return await store.catalogue.find(run)
    if not last:
        raise BadInput("No run was named: give its id or a prefix of it, or --last for the newest.")
    newest = await store.catalogue.runs(limit=1)
    if not newest:
        raise BadInput(
            "There is no run in this journal yet: `shiftbook run agent.py:NAME MESSAGE` begins one."
        )
    return newest[0].run

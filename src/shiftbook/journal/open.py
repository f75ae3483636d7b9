"""Opens the store that an address names."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import quote

from shiftbook.clock import Clock, SystemClock
from shiftbook.errors import StoreUnusable
from shiftbook.journal import sqlite_index
from shiftbook.journal.index import Index
from shiftbook.journal.postgres import open_postgres
from shiftbook.journal.postgres_address import is_postgres, names_a_server
from shiftbook.journal.postgres_connections import Connections
from shiftbook.journal.postgres_index import PostgresIndex
from shiftbook.journal.promises import Store
from shiftbook.journal.sqlite import open_sqlite
from shiftbook.journal.sqlite_database import Address

MEMORY = ":memory:"


async def open_store(
    address: str,
    *,
    clock: Clock | None = None,
    commits: Literal["in-loop", "writer"] = "in-loop",
    create: bool = True,
    read_only: bool = False,
) -> Store:
    """Open the journal's database, making it if it is not there.

    `address` is postgresql://USER:PASSWORD@HOST:PORT/DATABASE or the path of a SQLite file; `:memory:` is a
    database that ends with its store, and `:memory:NAME` one that the stores of this process share until the
    last of them is closed. `commits` says where a SQLite file's commits run: "in-loop" on the event loop's
    thread, for a single run; "writer" on one thread that commits for many runs at once (a database in memory
    has no use for it and always commits in the loop).
    With `create=False` a file that is not there is refused; with `read_only` nothing is ever written.

    Raises `StoreUnusable`, whose one sentence says what to do, and `NewerFormat`.
    """
    clock = clock or SystemClock()
    if is_postgres(address):
        return await open_postgres(address, clock, create=create, read_only=read_only)
    if not address or "\0" in address or names_a_server(address):
        raise StoreUnusable(
            "The address of a journal is the path of a SQLite file, :memory: or "
            "postgresql://USER:PASSWORD@HOST:PORT/DATABASE."
        )
    if address.startswith(MEMORY):
        named = quote(address.removeprefix(MEMORY), safe="") or clock.new_run_id()
        target = Address(address, f"file:/shiftbook-{named}?vfs=memdb", in_memory=True)
        return await open_sqlite(target, clock, create=True)
    return await open_sqlite(_file(address), clock, commits=commits, create=create, read_only=read_only)


def open_index(store: Store, *, anew: bool = False) -> Index | None:
    """The search index that belongs to a store, made if need be; None where a kind of store has none.

    On a server it lies beside the journal and is asked over the store's own connections; the one of a SQLite
    file is a file, and one of a store in memory ends with whoever opened it. `anew` puts an empty one in the
    place of such a file, which was found damaged; the tables of a server are refused to be. Raises `Damaged`,
    `StoreUnusable`, and `StoreError` where the disk refuses.
    """
    connections = getattr(store, "connections", None)
    if isinstance(connections, Connections):
        if anew:
            raise StoreUnusable(
                f"{store.name}: the tables of the search index are not as Shiftbook made them; restore them "
                "from a copy. What is in them is derived, so that all rows may be deleted."
            )
        return PostgresIndex(connections)
    return None if names_a_server(store.name) else sqlite_index.open_index(store.name, anew=anew)


def _file(address: str) -> Address:
    return Address(address, str(Path(address).expanduser().absolute()))

"""Another program's SQLite file, read and never written, with nothing in it run.

The file is opened read-only and unlocked; with a write-ahead log beside it, read-only, so that the newest
rows count. Only true tables are read: a view or a virtual table could run for ever or reach out.
A value above LINE_BYTES_MAX is refused by SQLite itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import apsw

from shiftbook.errors import SessionUnreadable
from shiftbook.sessions.source import LINE_BYTES_MAX, Source

Row = tuple[object, ...]


@contextmanager
def opened(source: Source) -> Iterator[apsw.Connection]:
    """A connection that cannot write; raises SessionUnreadable when the file is no sound database."""
    path = Path(source.path).absolute()
    with path.open("rb") as plain:
        if plain.read(2) == b"\x1f\x8b":
            raise SessionUnreadable(source.path, 0, "is a packed database; unpack it first (gunzip)")
    log = path.with_name(f"{path.name}-wal")
    live = log.is_file() and log.stat().st_size > 0
    for how in ("mode=ro", "immutable=1") if live else ("immutable=1",):
        try:
            connection = apsw.Connection(
                f"file:{quote(str(path))}?{how}", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
            )
        except apsw.Error:
            continue
        try:
            connection.limit(apsw.SQLITE_LIMIT_LENGTH, LINE_BYTES_MAX)
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except (apsw.Error, UnicodeDecodeError):
            connection.close()
            continue
        try:
            yield connection
        except (apsw.Error, UnicodeDecodeError) as problem:
            raise SessionUnreadable(source.path, 0, f"is a damaged database ({problem})") from None
        finally:
            connection.close()
        return
    raise SessionUnreadable(source.path, 0, "is no SQLite database that can be opened for reading")


def tables(source: Source) -> Mapping[str, list[str]]:
    """The columns of each true table, by the table's name."""
    found: dict[str, list[str]] = {}
    with opened(source) as connection:
        for name, kind in connection.execute("SELECT name, type FROM pragma_table_list WHERE schema='main'"):
            if kind == "table":
                columns = connection.execute("SELECT name FROM pragma_table_xinfo(?)", (name,))
                found[str(name)] = [str(column) for (column,) in columns]
    return found


def rows(connection: apsw.Connection, query: str, values: Row = ()) -> Iterator[Row]:
    """The rows of a query, one at a time."""
    yield from connection.execute(query, values)

"""Opening a PostgreSQL journal: made once whoever comes first, and each thing that is wrong told in one
sentence that never holds the password."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from shiftbook.clock import SystemClock
from shiftbook.entries import KIND_NUMBERS, RunOpened
from shiftbook.errors import NewerFormat, ShiftbookError, StoreError, StoreUnusable
from shiftbook.journal import postgres_schema
from shiftbook.journal.open import open_store
from shiftbook.journal.postgres_address import parse_address
from shiftbook.journal.postgres_database import Known, connect
from shiftbook.journal.postgres_schema import migrate, migrations
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.ground import LEASE_MS, Writer, elsewhere, read_all, said
from shiftbook.verify import verify
from tests import postgres
from tests.cli.program import run as program
from tests.journal.places import fresh_database
from tests.proxy import proxy

CATALOGUE = """
SELECT 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull::text,
    a.attcollation::regcollation::text, pg_get_expr(d.adbin, d.adrelid)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'shiftbook'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL SELECT 'index', indexname, indexdef, '', '', '', '' FROM pg_indexes WHERE schemaname = 'shiftbook'
UNION ALL SELECT 'constraint', conname, pg_get_constraintdef(oid), '', '', '', ''
FROM pg_constraint WHERE connamespace = 'shiftbook'::regnamespace
UNION ALL SELECT 'function', proname, pg_get_functiondef(oid), '', '', '', ''
FROM pg_proc WHERE pronamespace = 'shiftbook'::regnamespace
UNION ALL SELECT 'view', viewname, definition, '', '', '', '' FROM pg_views WHERE schemaname = 'shiftbook'
UNION ALL SELECT 'row', number::text, name, '', '', '', '' FROM shiftbook.kinds
UNION ALL SELECT 'migration', number::text, name, '', '', '', '' FROM shiftbook.migrations
ORDER BY 1, 2, 3
"""


@pytest.fixture
def address() -> Iterator[str]:
    with fresh_database() as made:
        yield made


@pytest.fixture(scope="module")
def own_server() -> Iterator[postgres.Server]:
    """A server with passwords, whose settings a test may change."""
    missing = postgres.why_not()
    if missing:
        pytest.skip(missing)
    with postgres.server("wal_level=replica", "max_wal_senders=4") as server:
        if server.data is None:
            pytest.skip("needs a server of its own")
        access = server.data / "pg_hba.conf"
        access.write_text(f"host all jo 127.0.0.1/32 scram-sha-256\n{access.read_text()}")
        server.sql(server.address, "CREATE ROLE jo LOGIN PASSWORD 's3cret'", "SELECT pg_reload_conf()")
        yield server


async def opened(address: str, **options: Any) -> None:
    await (await open_store(address, **options)).close()


def refused(address: str, said_so: str, kind: type[ShiftbookError] = StoreUnusable, **options: Any) -> str:
    """The one sentence that this address is refused with."""
    with pytest.raises(kind, match=said_so) as told:
        asyncio.run(opened(address, **options))
    whole = "".join(traceback.format_exception(told.value))
    error: BaseException | None = told.value
    while error is not None:
        whole += repr(error) + repr(vars(error)) + str(error.args)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert "s3cret" not in whole
    message = str(told.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert told.value.exit_code == 2
    return message


def catalogue(address: str) -> list[tuple[object, ...]]:
    return postgres.shared().sql(address, CATALOGUE)


# --- made once ---------------------------------------------------------------------------------------


def test_two_that_start_at_once_make_it_once(address: str) -> None:
    async def main() -> None:
        await asyncio.gather(*(opened(address) for _ in range(8)))

    asyncio.run(main())
    made = [row for row in catalogue(address) if row[0] == "migration"]
    assert len(made) == len(migrations()) == postgres_schema.SCHEMA


def test_kinds_have_the_numbers_of_the_format(address: str) -> None:
    asyncio.run(opened(address))
    rows = postgres.shared().sql(address, "SELECT name, number FROM shiftbook.kinds")
    assert {str(name): number for name, number in rows} == KIND_NUMBERS


def test_g3_it_is_made_within_a_callers_transaction(address: str) -> None:
    """G3: rolled back with everything else of the caller's, and committed with it."""

    async def main(keep: bool) -> None:
        database = await connect(parse_address(address), SystemClock(), Known(), read_only=False)
        with contextlib.suppress(ZeroDivisionError):
            async with database.transaction():
                await database.run("CREATE TABLE theirs (number integer)")
                await migrate(database)
                await migrate(database)
                assert keep or 1 // 0
        await database.connection.close()

    asyncio.run(main(keep=False))
    assert postgres.shared().sql(address, "SELECT to_regnamespace('shiftbook'), to_regclass('theirs')") == [
        (None, None)
    ]
    asyncio.run(main(keep=True))
    asyncio.run(opened(address, create=False))


def test_what_was_made_step_by_step_is_what_was_made_at_once(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G2: a database that came through every release is the same as a fresh one."""
    asyncio.run(opened(address))
    with fresh_database() as other:
        for number, _ in migrations():
            with monkeypatch.context() as patch:
                patch.setattr(postgres_schema, "migrations", lambda until=number: migrations()[:until])
                patch.setattr(postgres_schema, "SCHEMA", number)
                asyncio.run(opened(other))
        assert catalogue(other) == catalogue(address)


@pytest.mark.parametrize("what", ["lose_request", "lose_reply"])
def test_a_making_that_was_cut_off_half_way_leaves_nothing_or_all(address: str, what: str) -> None:
    async def main() -> None:
        async with proxy(address) as line:
            setattr(line, what, b"INSERT INTO shiftbook.migrations")
            with pytest.raises(StoreError):
                await opened(line.address)
            assert line.lost == 1
        await opened(address)
        store = await open_store(address, create=False)
        lease = await store.leases.take("run1", elsewhere(), LEASE_MS, new=True)
        await Writer(store, lease, SimulatedClock()).append(said("one"))
        await store.close()

    asyncio.run(main())


# --- what is wrong is told ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("odd", "said_so"),
    [
        ("postgresql://jo:s3cret@127.0.0.1:1/db", "nothing listens there"),
        ("postgresql://jo:s3cret@no-such-host.invalid/db", "no host of that name"),
        ("postgresql://jo:s3cret@%2Fnowhere/db", "no server listens on that socket"),
        ("postgresql://jo:p@s3cret@h/db", "cannot be read"),
        ("postgresql://jo:p/s3cret@h/db", "cannot be read"),
        ("postgresql://jo:p?s3cret@h/db", "cannot be read"),
        ("postgresql://jo:p#s3cret@h/db", "cannot be read"),
        ("postgresql://jo:s3cret@h:port/db", "cannot be read"),
        ("postgresql://jo:s3cret@[h/db", "cannot be read"),
        ("postgresql://jo:s3cret%zz@h/db", "cannot be read"),
        ("postgresql://h/db?password=s3cret&odd=s3cret", "cannot be read"),
        ("postgresql://127.0.0.1:1/db?password=s3cret", "nothing listens there"),
        ("postgresql://jo:s3cret\0@h/db", "cannot be read"),
    ],
)
def test_f9_an_address_that_leads_nowhere_is_told_without_its_password(odd: str, said_so: str) -> None:
    refused(odd, said_so)


def test_the_name_of_a_store_holds_no_secret(address: str) -> None:
    name = parse_address("postgresql://jo:s3cret@h:5/b?sslpassword=s3cret&sslmode=disable").name
    assert name == "postgresql://jo@h:5/b"
    assert parse_address("postgresql:///b?host=/tmp&port=7&password=s3cret").name == (
        "postgresql:///b?host=/tmp&port=7"
    )
    assert "s3cret" not in repr(parse_address("postgresql://jo:s3cret@h/b"))


def test_what_a_server_refuses_at_its_door(own_server: postgres.Server) -> None:
    inside = own_server.create()
    jo = inside.replace("book@", "jo:s3cret@")
    refused(jo.replace("s3cret", "wrong-s3cret"), "refused the user or the password")
    refused(jo.replace(":s3cret", ""), "refused the user or the password")
    refused(inside.replace("book@", "nobody-here:s3cret@"), "does not let this user in")
    refused(jo.rpartition("/")[0] + "/nothing", "there is no such database")
    refused(jo, "lacks rights")
    own_server.sql(inside, f"ALTER DATABASE {inside.rpartition('/')[2]} CONNECTION LIMIT 0")
    refused(jo, "no connection left")


def test_a_user_without_rights_is_told_and_one_who_has_them_needs_no_more(
    own_server: postgres.Server,
) -> None:
    """Whoever may only read and write what is there need not be able to make it."""
    inside = own_server.create()
    jo = inside.replace("book@", "jo:s3cret@")
    asyncio.run(opened(inside))
    refused(jo, "lacks rights")
    own_server.sql(
        inside,
        "GRANT USAGE ON SCHEMA shiftbook TO jo",
        "GRANT SELECT ON ALL TABLES IN SCHEMA shiftbook TO jo",
    )

    async def main() -> None:
        store = await open_store(jo)
        with pytest.raises(StoreUnusable, match="lacks rights; nothing of this was written"):
            await store.leases.take("run1", elsewhere(), LEASE_MS, new=True)
        own_server.sql(inside, "GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA shiftbook TO jo")
        lease = await store.leases.take("run1", elsewhere(), LEASE_MS, new=True)
        await Writer(store, lease, SimulatedClock()).append(said("one"))
        await store.close()

    asyncio.run(main())


def test_a_full_disk_is_told_and_nothing_is_lost(address: str) -> None:
    """The server's own answer to a write that finds no room; then there is room again."""

    async def main() -> None:
        store = await open_store(address)
        lease = await store.leases.take("run1", elsewhere(), LEASE_MS, new=True)
        writer = Writer(store, lease, SimulatedClock())
        await writer.append(said("one"))
        postgres.shared().sql(
            address,
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION 'could not extend file: No space left' USING ERRCODE = '53100'; END $$",
            "CREATE TRIGGER full_disk BEFORE INSERT ON shiftbook.entries "
            "FOR EACH ROW EXECUTE FUNCTION full_disk()",
        )
        commit = await writer.commit(said("two"))
        for _ in range(2):
            with pytest.raises(StoreError, match="disk is full; nothing of this was written"):
                await store.entries.append(commit)
        assert len(await read_all(store, "run1")) == 1
        postgres.shared().sql(address, "DROP TRIGGER full_disk ON shiftbook.entries")
        await store.entries.append(commit)
        assert len(await read_all(store, "run1")) == 2
        await store.close()

    asyncio.run(main())


def test_an_old_server_is_told(address: str) -> None:
    with psycopg.connect(address) as connection:
        version = connection.info.parameter_status("server_version")
    assert version is not None
    told = version.encode()

    async def main() -> None:
        old = b"9.6".ljust(len(told))
        async with proxy(address) as line:
            line.rewrite = (b"server_version\0" + told, b"server_version\0" + old)
            with pytest.raises(StoreUnusable, match=r"the server is PostgreSQL 9; Shiftbook needs 14"):
                await opened(line.address)

    asyncio.run(main())


def test_other_databases_are_left_as_they_are(address: str) -> None:
    server = postgres.shared()
    server.sql(address, "CREATE SCHEMA shiftbook")
    refused(address, "belongs to another program")
    server.sql(address, "DROP SCHEMA shiftbook")
    refused(address, "There is no journal in", create=False)
    refused(address, "There is no journal in", read_only=True)
    asyncio.run(opened(address))
    server.sql(address, "INSERT INTO shiftbook.migrations VALUES (99, 'later', 0)")
    refused(address, "laid out by a newer Shiftbook", NewerFormat)


def test_a_database_in_another_encoding_is_told() -> None:
    missing = postgres.why_not()
    if missing:
        pytest.skip(missing)
    server = postgres.shared()
    server.sql(
        server.address,
        "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
    )
    try:
        refused(server.named("latin"), "keeps its texts as LATIN1")
    finally:
        server.drop(server.named("latin"))


def test_without_the_driver_one_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    refused("postgresql://jo:s3cret@h/db", r"install shiftbook\[postgres\]")
    ran = program(tmp_path, "runs", "--db", "postgresql://jo:s3cret@h/db")
    assert ran.code == 2
    assert "shiftbook[postgres]" in ran.err


def test_on_a_replica_everything_is_read_and_nothing_written(own_server: postgres.Server) -> None:
    """A standby that follows: reading verbs work, a run cannot be begun, and the sentence says why."""
    inside = own_server.create()

    async def fill() -> None:
        store = await open_store(inside)
        lease = await store.leases.take("run1", elsewhere(), LEASE_MS, new=True)
        await Writer(store, lease, SimulatedClock()).append(RunOpened("run1", "a.py:a", "0"), said("one"))
        await store.leases.give_back(lease)
        await store.close()

    asyncio.run(fill())
    with postgres.replica(own_server) as standby:
        there = standby.named(inside.rpartition("/")[2])
        refused(there, "is read-only")

        async def main() -> None:
            store = await open_store(there, read_only=True)
            assert len(await read_all(store, "run1")) == 2
            assert (await verify(store, "run1")).ok
            with pytest.raises(StoreUnusable, match="read-only"):
                await store.leases.take("run2", elsewhere(), LEASE_MS, new=True)
            await store.close()

        asyncio.run(main())


def test_a_database_that_is_set_read_only_is_told(address: str) -> None:
    asyncio.run(opened(address))

    async def main() -> None:
        store = await open_store(address, read_only=True)
        with pytest.raises(StoreUnusable, match="read-only"):
            await store.leases.take("run2", elsewhere(), LEASE_MS, new=True)
        await store.close()

    asyncio.run(main())


def test_f9_no_verb_prints_the_password_whatever_goes_wrong(
    own_server: postgres.Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    inside = own_server.create().replace("book@", "jo:s3cret@")
    for words in (
        ["runs", "-v", "--db", inside],
        ["show", "x", "-v", "--db", inside],
        ["verify", "x", "-v", "--db", inside],
        ["copy", "-v", "--from", inside, "--to", "x.db"],
        ["copy", "-v", "--from", inside + "?odd=1", "--to", inside],
    ):
        ran = program(tmp_path, *words)
        assert ran.code == 2
        assert "s3cret" not in ran.out + ran.err + caplog.text


def test_a_lease_is_renewed_by_another_thread_on_a_connection_of_its_own(
    own_server: postgres.Server,
) -> None:
    """The keeper opens the store again, which needs the password; the store's name does not hold it."""
    inside = own_server.create()
    own_server.sql(own_server.address, "GRANT CREATE ON DATABASE " + inside.rpartition("/")[2] + " TO jo")

    async def main() -> None:
        clock = SimulatedClock()
        store = await open_store(inside.replace("book@", "jo:s3cret@"), clock=clock)
        assert "s3cret" not in store.name
        lease = await store.leases.take("run1", elsewhere(), LEASE_MS, new=True)

        async def renew() -> None:
            again = await store.reopen()
            await again.leases.renew(lease, 5 * LEASE_MS)
            await again.close()

        await asyncio.to_thread(lambda: asyncio.run(renew()))
        assert (await store.leases.look("run1")).until_ms == clock.now_ms() + 5 * LEASE_MS
        await store.close()

    asyncio.run(main())

"""A server whose owner has set limits for everybody, and a pooler in between: work goes on or says why."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from shiftbook.clock import SystemClock
from shiftbook.errors import StoreUnusable
from shiftbook.journal.postgres import open_postgres
from shiftbook.workers import Worker
from tests import postgres
from tests.workers.ground import PATIENCE_S, check, entered, fresh_database, queue_at, raw, shop

NOBODY = 65534

LIMITS = {
    "statement_timeout": "1min",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "15s",
    "idle_session_timeout": "0",
    "transaction_timeout": "0",
}
"""What Shiftbook's sessions have, whatever their server's owner has set."""


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_that_the_servers_owner_set_for_everybody_does_not_break_off_work(limit: str) -> None:
    asked = f"SELECT current_setting('{limit}') AS now"

    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            ((now,),) = await queue.store.connections.run(lambda database: database.rows(asked))
            assert now == LIMITS[limit]
            async with queue.app.open_async():
                told = await queue.app.connector.execute_query_one_async(asked)
            assert told["now"] == LIMITS[limit]
            await entered(queue, shop(), "one")
            at_work = Worker(queue, load=lambda reference: shop())
            await asyncio.wait_for(at_work.work(once=True), PATIENCE_S)
            assert (at_work.counts.rested, at_work.counts.outages) == (1, 0)
            await check(queue, "one")

    with fresh_database() as address:
        name = urlsplit(address).path.lstrip("/")
        server = postgres.shared()
        if not server.sql(server.address, f"SELECT 1 FROM pg_settings WHERE name = '{limit}'"):
            pytest.skip(f"this server has no {limit}")
        server.sql(server.address, f"ALTER DATABASE {name} SET {limit} = '300ms'")
        asyncio.run(main(address))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("default_transaction_isolation", "repeatable read"),
        ("default_transaction_isolation", "serializable"),
        ("synchronous_commit", "off"),
    ],
)
def test_how_the_servers_owner_has_transactions_begin_is_not_how_ours_do(setting: str, value: str) -> None:
    """Who waited for a lock must see what was committed before: under another isolation a wake that two
    programs put in at once is there and cannot be seen, and each would look for it for ever."""
    asked = f"SELECT current_setting('{setting}') AS now"

    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            usual = {
                "default_transaction_isolation": "read committed",
                "synchronous_commit": "on",
            }
            ((now,),) = await queue.store.connections.run(lambda database: database.rows(asked))
            async with queue.app.open_async():
                told = await queue.app.connector.execute_query_one_async(asked)
            assert [now, told["now"]] == [usual[setting]] * 2
            await entered(queue, shop(), "one")
            at_work = Worker(queue, load=lambda reference: shop())
            await asyncio.wait_for(at_work.work(once=True), PATIENCE_S)
            assert (at_work.counts.rested, at_work.counts.outages) == (1, 0)
            await check(queue, "one")

    with fresh_database() as address:
        name = urlsplit(address).path.lstrip("/")
        server = postgres.shared()
        server.sql(server.address, f"ALTER DATABASE {name} SET {setting} = '{value}'")
        asyncio.run(main(address))


@contextlib.contextmanager
def pooled(address: str, mode: str, folder: Path) -> Iterator[str]:
    """The address of a pgbouncer in front of a server; it is ended with the block."""
    program = shutil.which("pgbouncer")
    parts = urlsplit(address)
    if program is None:
        pytest.skip("pgbouncer is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = f"host={parts.hostname} port={parts.port}" if parts.hostname else ""
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = {place} user={parts.username}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\n"
    )
    for each in (folder, *folder.parents):
        if each.stat().st_uid == os.geteuid() and str(each).startswith("/tmp/"):
            each.chmod(0o755)
    user = NOBODY if os.geteuid() == 0 else None  # It refuses to run as root.
    process = subprocess.Popen([program, "-q", settings], user=user, stderr=subprocess.DEVNULL)
    try:
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None, "pgbouncer did not start"
        yield urlunsplit(parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}", query=""))
    finally:
        process.kill()
        process.wait()


def test_a_pool_in_transaction_mode_is_refused_with_the_reason(tmp_path: Path) -> None:
    async def main(address: str) -> None:
        with pytest.raises(StoreUnusable, match="one session of the server to several connections"):
            await open_postgres(address, SystemClock())

    with fresh_database() as address, pooled(address, "transaction", tmp_path) as through:
        asyncio.run(main(through))
        with raw(address) as connection:
            assert connection.execute("SELECT to_regnamespace('shiftbook')").fetchone() == (None,)


def test_a_pool_in_session_mode_serves_journal_queue_and_workers(tmp_path: Path) -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), "one")
            at_work = Worker(queue, load=lambda reference: shop())
            await asyncio.wait_for(at_work.work(once=True), PATIENCE_S)
            assert at_work.counts.rested == 1
            await check(queue, "one")

    with fresh_database() as address, pooled(address, "session", tmp_path) as through:
        asyncio.run(main(through))

"""The queue: a message and its wake together, no wake lost, nobody else's jobs touched."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import psycopg
import pytest
from procrastinate.schema import SchemaManager

from shiftbook.errors import AgentMistake, BadInput, StoreError, UnknownRun
from shiftbook.journal.open import open_store
from shiftbook.journal.postgres_database import Database
from shiftbook.journal.postgres_inbox import put_in
from shiftbook.workers import Worker, open_queue
from shiftbook.workers.connector import POOL_MAX
from shiftbook.workers.queue import QUEUE_NAME_MAX, UPKEEP, queue_of
from tests.proxy import proxy
from tests.workers.ground import (
    REFERENCE,
    entered,
    fetched,
    fresh_database,
    item,
    jobs,
    queue_at,
    raw,
    shop,
    state_of,
)


def test_a_message_and_its_wake_are_there_together_or_not_at_all() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), "one")
            assert fetched(address) == "one"
            with raw(address) as connection:
                connection.execute(
                    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
                    "$$ BEGIN RAISE 'no job today'; END $$"
                )
                connection.execute(
                    "CREATE TRIGGER refuse BEFORE INSERT ON procrastinate_jobs "
                    "FOR EACH ROW EXECUTE FUNCTION refuse()"
                )
            with pytest.raises(StoreError, match="the database refused"):
                await queue.send("one", item("lost"))
            waiting = [each.id for each in await queue.store.inbox.waiting("one")]
            assert "lost" not in waiting
            with raw(address) as connection:
                connection.execute("DROP TRIGGER refuse ON procrastinate_jobs")
            assert await queue.send("one", item("lost"))
            assert [each.id for each in await queue.store.inbox.waiting("one")] == [*waiting, "lost"]
            assert jobs(address) == [("one", "doing"), ("one", "todo")]

    with fresh_database() as address:
        asyncio.run(main(address))


@pytest.mark.parametrize("what", ["lose_request", "lose_reply"])
@pytest.mark.parametrize(
    "mark",
    [
        b"SET LOCAL search_path",
        b"FOR NO KEY UPDATE",
        b"INSERT INTO shiftbook.inbox",
        b"SELECT run, queue, priority",
        b"status = 'todo' FOR UPDATE",
        b"procrastinate_defer_jobs",
        b"COMMIT",
    ],
)
def test_a_message_whose_connection_dies_at_any_statement_is_there_once_with_one_wake(
    what: str, mark: bytes
) -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), "one")
        assert fetched(address) == "one"
        async with proxy(address) as line, queue_at(line.address) as cut_off:
            setattr(line, what, mark)
            assert await cut_off.send("one", item("late"))
            assert line.lost == 1
            assert [each.id for each in await cut_off.store.inbox.items("one")].count("late") == 1
        assert sorted(jobs(address)) == [("one", "doing"), ("one", "todo")]

    with fresh_database() as address:
        asyncio.run(main(address))


def test_wakes_that_nobody_has_taken_are_one_and_a_taken_one_is_followed_by_another() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), "one")
            for number in range(3):
                assert await queue.send("one", item(f"mail {number}"))
            assert jobs(address) == [("one", "todo")]
            assert fetched(address) == "one"
            assert await queue.send("one", item("late"))
            assert jobs(address) == [("one", "doing"), ("one", "todo")]
            assert fetched(address) is None, "one worker at a time looks at a run"

    with fresh_database() as address:
        asyncio.run(main(address))


def test_a_wake_that_a_message_has_joined_is_not_taken_before_the_message_is_there() -> None:
    """Else a worker would look, see no message and end, and the message would lie there for ever."""

    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), "one")

            async def join(database: Database) -> None:
                async with database.transaction():
                    await database.run("SET LOCAL search_path TO shiftbook_queue")
                    await put_in(database, "one", item("joins"))
                    assert await queue._wake(database, ["one"]) == 1
                    assert await asyncio.to_thread(fetched, address) is None

            await queue.store.connections.run(join)
            assert fetched(address) == "one"
            assert jobs(address) == [("one", "doing")]

    with fresh_database() as address:
        asyncio.run(main(address))


def test_many_senders_at_once_leave_one_wake_and_all_their_messages() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as first, queue_at(address) as second:
            await entered(first, shop(), "one")
            assert fetched(address) == "one"
            sent = [(first, second)[number % 2].send("one", item(f"mail {number}")) for number in range(20)]
            assert all(await asyncio.gather(*sent))
            assert len(await first.store.inbox.waiting("one")) == 21
            assert jobs(address) == [("one", "doing"), ("one", "todo")]

    with fresh_database() as address:
        asyncio.run(main(address))


def test_mail_for_a_run_that_is_in_no_queue_calls_nobody() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), "one")
            with raw(address) as connection:
                connection.execute("DELETE FROM queued_runs")
                connection.execute("DELETE FROM procrastinate_jobs")
            assert not await queue.send("one", item("by hand"))
            assert jobs(address) == []
            with pytest.raises(UnknownRun):
                await queue.send("two", item("nobody"))

    with fresh_database() as address:
        asyncio.run(main(address))


def test_the_greater_priority_goes_first_and_equals_in_their_order() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            for run, priority in (("low", -1), ("first", 0), ("second", 0), ("high", 7)):
                await entered(queue, shop(), run, priority=priority)
            assert [fetched(address) for _ in range(4)] == ["high", "first", "second", "low"]

    with fresh_database() as address:
        asyncio.run(main(address))


def test_what_was_put_off_is_woken_when_it_is_due_and_the_earlier_moment_counts() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), "one")
            assert fetched(address) == "one"
            with raw(address) as connection:
                connection.execute("DELETE FROM procrastinate_jobs")
            await queue.put_off("one", 3_600_000, "later")
            assert await queue.due() == 0
            assert 3_590 < state_of(address, "one")["wait_s"] <= 3_600
            await queue.put_off("one", 7_200_000, "still later", failed=False)
            assert state_of(address, "one")["wait_s"] <= 3_600
            await queue.put_off("one", 0, "now")
            assert await queue.due() == 1
            assert jobs(address) == [("one", "todo")]
            assert state_of(address, "one") == {"wait_s": None, "tries": 2, "why": "now"}
            assert await queue.due() == 0

    with fresh_database() as address:
        asyncio.run(main(address))


def test_a_run_with_something_to_do_and_nobody_to_wake_it_is_found() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            for run in ("lost", "due", "waits"):
                await entered(queue, shop(), run)
            await queue.put_off("due", 3_600_000, "later")
            with raw(address) as connection:
                connection.execute("DELETE FROM procrastinate_jobs WHERE lock <> 'waits'")
            assert await queue.orphans() == 1
            assert sorted(jobs(address)) == [("lost", "todo"), ("waits", "todo")]
            assert await queue.orphans() == 0

    with fresh_database() as address:
        asyncio.run(main(address))


def test_connections_that_the_server_ended_while_they_lay_idle_are_replaced_without_a_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They went back into the pool and were lent again, for ten seconds in which no worker beat."""
    # Where the pool pauses before it looks on, it pauses for longer than anybody waits for it.
    monkeypatch.setattr("psycopg_pool.base.AttemptWithBackoff.INITIAL_DELAY", 1_000.0, raising=False)

    async def main(address: str) -> None:
        async with queue_at(address) as queue, queue.app.open_async():
            pool = queue.app.connector.pool  # type: ignore[attr-defined]  # procrastinate's own
            async with AsyncExitStack() as stack:
                for _ in range(POOL_MAX):
                    await stack.enter_async_context(pool.connection())
            with raw(address) as connection:
                ended = connection.execute(
                    "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity "
                    "WHERE application_name = 'shiftbook queue' AND datname = current_database()"
                ).fetchone()
            assert ended == (POOL_MAX,)
            await queue.app.job_manager.prune_stalled_workers(60)

    with fresh_database() as address:
        asyncio.run(main(address))


def test_two_programs_that_make_the_queue_at_once_make_one() -> None:
    async def main(address: str) -> None:
        stores = [await open_store(address) for _ in range(4)]
        made = await asyncio.gather(*(open_queue(store, create=True) for store in stores))
        assert None not in made
        with raw(address) as connection:
            assert connection.execute("SELECT number FROM layout").fetchall() == [(1,), (2,), (3,)]
        for store in stores:
            await store.close()

    with fresh_database() as address:
        asyncio.run(main(address))


def test_an_older_queue_is_brought_up_to_date_by_several_at_once_while_a_worker_works_on() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), "one")
            with raw(address) as connection:  # back to what the release before has made
                connection.execute("DROP TABLE upkeep")
                connection.execute("ALTER TABLE queued_runs DROP COLUMN share, DROP COLUMN since")
                connection.execute("DELETE FROM layout WHERE number > 1")
            stores = [await open_store(address) for _ in range(3)]
            assert None not in await asyncio.gather(*(open_queue(store) for store in stores))
            with raw(address) as connection:
                assert connection.execute("SELECT number FROM layout").fetchall() == [(1,), (2,), (3,)]
            at_work = Worker(queue, load=lambda reference: shop())
            await at_work.wake("one")
            assert at_work.counts.rested == 1
            for store in stores:
                await store.close()

    with fresh_database() as address:
        asyncio.run(main(address))


def test_another_programs_procrastinate_in_the_same_database_is_left_alone() -> None:
    async def main(address: str) -> None:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(SchemaManager.get_schema().encode())
            connection.execute(
                "INSERT INTO procrastinate_jobs (queue_name, task_name) VALUES ('mail', 'their.task')"
            )
        async with queue_at(address) as queue:
            await entered(queue, shop(), "one")
            assert fetched(address) == "one"
            assert fetched(address) is None
        with psycopg.connect(address, autocommit=True) as connection:
            theirs = connection.execute("SELECT task_name, status::text FROM public.procrastinate_jobs")
            assert theirs.fetchall() == [("their.task", "todo")]

    with fresh_database() as address:
        asyncio.run(main(address))


def test_a_queue_of_a_newer_shiftbook_is_refused_with_direction() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            with raw(address) as connection:
                connection.execute("INSERT INTO layout (number) VALUES (99)")
            with pytest.raises(Exception, match="newer Shiftbook: update this one"):
                await open_queue(queue.store)

    with fresh_database() as address:
        asyncio.run(main(address))


def test_a_run_that_no_worker_could_find_or_do_is_refused_where_it_is_entered() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            with pytest.raises(AgentMistake, match="no worker could find it"):
                await entered(queue, shop(reference=""), "one")
            for odd in (1_000_000, -(2**40)):  # The queue's upkeep goes before all runs.
                with pytest.raises(BadInput, match="out of bounds"):
                    await entered(queue, shop(), "one", priority=odd)
            assert await queue.store.catalogue.runs() == []

    with fresh_database() as address:
        asyncio.run(main(address))


def test_only_a_journal_on_postgres_has_a_queue() -> None:
    async def main() -> None:
        store = await open_store(":memory:")
        assert await open_queue(store) is None
        with pytest.raises(BadInput, match="only there can runs wait in a queue"):
            await open_queue(store, create=True)
        await store.close()

    asyncio.run(main())


def test_a_queue_is_named_by_the_agent_and_its_channel_fits() -> None:
    assert queue_of(f"{REFERENCE}?cap=8000&policy=window") == REFERENCE
    odd = ["x" * 41 + ":y", "späti.py:laden", UPKEEP, ""]
    names = [queue_of(each) for each in odd]
    assert len({*names, REFERENCE}) == 5
    for name in names:
        assert name.isascii()
        assert len(name) <= QUEUE_NAME_MAX

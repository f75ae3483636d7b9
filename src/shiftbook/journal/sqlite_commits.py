"""Two ways to commit: on the event loop's thread, or through one thread that commits for many runs at once.

A job is a plain function of a `Database`. `InLoop` runs it at once and blocks the loop for the disk: right
for a single run. `WriterThread` collects the jobs that wait, runs them in one transaction and wakes each
caller after the COMMIT: right for many runs. A job that is refused writes nothing and does not touch the
others of its group: if it had written already, the group is undone and each job is run alone.

A caller that is cancelled while its job waits gets its `CancelledError` only when the job is settled, so
that whoever reads the database after it finds the commit whole or not at all, and never later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeVar

from shiftbook.errors import StoreUnusable
from shiftbook.journal.sqlite_database import Database
from shiftbook.journal.sqlite_errors import DRIVER_ERRORS, closed

T = TypeVar("T")

GROUP_JOBS_MAX = 256
"""Jobs that are committed together at the most, so that no caller waits for an endless group."""


class Commits(Protocol):
    """Runs jobs that write, each whole or not at all, durable when it returns."""

    async def write(self, job: Callable[[Database], T]) -> T:
        """Run the job; its refusals and our words for the driver's errors are raised here."""
        ...

    async def close(self) -> None:
        """Finish the jobs that were handed in, then let go of the connection."""
        ...


class InLoop:
    """Commits on the event loop's thread. A cancellation can only come before or after a job."""

    def __init__(self, database: Database, committed: Callable[[], None]) -> None:
        self._database = database
        self._committed = committed
        self._closed = False

    async def write(self, job: Callable[[Database], T]) -> T:
        if self._closed:
            raise closed(self._database.address.name)
        self._database.check_place()
        try:
            result = job(self._database)
        except DRIVER_ERRORS as error:
            self._database.forget()
            raise self._database.translated(error) from None
        self._committed()
        return result

    async def close(self) -> None:
        self._closed = True
        self._database.connection.close(True)


class _Waiting:
    """A job, who waits for it, and what came of it."""

    __slots__ = ("error", "future", "job", "loop", "result", "settled")

    def __init__(self, job: Callable[[Database], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.job = job
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.settled = False
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self, database: Database) -> None:
        self.result, self.error = None, None
        try:
            self.result = self.job(database)
        except DRIVER_ERRORS as error:
            self.error = database.translated(error)
            raise
        except BaseException as error:
            self.error = error
            raise

    def tell(self) -> None:
        self.settled = True
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class WriterThread:
    """Commits on a thread of its own, as many jobs in one transaction as wait."""

    def __init__(self, database: Database, committed: Callable[[], None]) -> None:
        self._database = database
        self._committed = committed
        self._closed = False
        self._jobs: SimpleQueue[_Waiting | None] = SimpleQueue()
        # A daemon: a program that ends without `close` is a killed program, and those lose nothing.
        self._thread = Thread(target=self._work, name="shiftbook-writer", daemon=True)
        self._thread.start()

    async def write(self, job: Callable[[Database], T]) -> T:
        if self._closed:
            raise closed(self._database.address.name)
        waiting = _Waiting(job, asyncio.get_running_loop())
        self._jobs.put(waiting)
        result: T = await _settled(waiting)
        return result

    async def close(self) -> None:
        if self._closed:
            return
        last = _Waiting(lambda database: None, asyncio.get_running_loop())
        self._closed = True
        self._jobs.put(last)
        self._jobs.put(None)
        await _settled(last)
        self._thread.join()

    def _work(self) -> None:
        going = True
        while going:
            group: list[_Waiting] = []
            item = self._jobs.get()
            while item is not None:
                group.append(item)
                if len(group) == GROUP_JOBS_MAX:
                    break
                try:
                    item = self._jobs.get_nowait()
                except Empty:
                    break
            else:
                going = False
            if group:
                self._commit(group)
                self._tell(group)
        self._database.connection.close(True)

    def _commit(self, group: Sequence[_Waiting]) -> None:
        try:
            self._database.check_place()
        except StoreUnusable as error:
            for waiting in group:
                waiting.error = error
            return
        if len(group) > 1 and self._commit_together(group):
            return
        for waiting in group:
            with suppress(BaseException):
                waiting.run(self._database)

    def _commit_together(self, group: Sequence[_Waiting]) -> bool:
        """Whether the group is settled; if not, nothing of it was written."""
        database = self._database
        connection = database.connection
        try:
            connection.execute("BEGIN IMMEDIATE")
        except DRIVER_ERRORS as error:
            _all_failed(group, database, error)
            return True
        database.joined = True
        committed = False
        try:
            for waiting in group:
                before = connection.total_changes()
                try:
                    waiting.run(database)
                except DRIVER_ERRORS:
                    return False
                except BaseException:  # noqa: BLE001 - it is kept, and raised where the job came from
                    if connection.total_changes() != before:
                        return False
            try:
                connection.execute("COMMIT")
                committed = True
            except DRIVER_ERRORS as error:
                # It cannot be known what of it is on the disk: run again, a commit would meet itself.
                _all_failed(group, database, error)
            return True
        finally:
            database.joined = False
            if not committed:
                database.undo()

    def _tell(self, group: Sequence[_Waiting]) -> None:
        loops: dict[int, list[_Waiting]] = {}
        for waiting in group:
            loops.setdefault(id(waiting.loop), []).append(waiting)
        for part in loops.values():
            # A loop that was closed has nobody left who waits.
            with suppress(RuntimeError):
                part[0].loop.call_soon_threadsafe(self._deliver, part)

    def _deliver(self, group: Sequence[_Waiting]) -> None:
        for waiting in group:
            waiting.tell()
        self._committed()


def _all_failed(group: Sequence[_Waiting], database: Database, error: Exception) -> None:
    database.forget()
    for waiting in group:
        waiting.error = database.translated(error)


async def _settled(waiting: _Waiting) -> Any:
    try:
        return await waiting.future
    except asyncio.CancelledError:
        while not waiting.settled:
            waiting.future = waiting.loop.create_future()
            with suppress(asyncio.CancelledError, Exception):
                await waiting.future
        raise

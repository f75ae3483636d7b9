"""The loop: take the lease, fold, ask `step` what is next, do it, around again.

`start` and `resume` give a `Run`: the holder's handle. A resume is the same path as a start; there is no
recovery mode. The handle keeps its lease until it is closed, so that one process can take a run through many
messages; a killed process simply leaves the lease to its successor.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from types import TracebackType

from shiftbook._version import VERSION
from shiftbook.clock import Clock, SystemClock, this_process
from shiftbook.ending import end
from shiftbook.entries import (
    Entry,
    ModelInterrupted,
    PersonSaid,
    ReportFailed,
    RunOpened,
    UserContent,
)
from shiftbook.errors import BadInput, UnknownRun
from shiftbook.journal.admission import check_tags
from shiftbook.journal.promises import Lease, Snapshot, Store
from shiftbook.messages import Text
from shiftbook.projections.view import RunView
from shiftbook.prompt.grow import first_prompt
from shiftbook.run import actions, model, report
from shiftbook.run.agent import Agent
from shiftbook.run.answer import repair_text
from shiftbook.run.book import Book, read_entries
from shiftbook.run.desk import Desk, NoWatcher, Watcher
from shiftbook.run.fence import Fence
from shiftbook.run.indexing import REST_BATCHES
from shiftbook.run.keep import keep
from shiftbook.run.keeper import LeaseKeeper
from shiftbook.run.mail import content_of, move_mail, post, post_rule
from shiftbook.run.noting import set_rules
from shiftbook.run.resting import rest
from shiftbook.run.restore import restore, snapshot_of
from shiftbook.run.sending import TASK_NAME
from shiftbook.run.setting import (
    Setting,
    declare_changes,
    fall_back,
    let_go,
    look_again,
    open_toolboxes,
    take_model,
)
from shiftbook.run.step import (
    Ask,
    AskAgain,
    AskReport,
    Dispatch,
    DropAsk,
    DropReport,
    EndPause,
    FallBack,
    Keep,
    MoveMail,
    Nothing,
    Reconcile,
    Repair,
    Rest,
    Settle,
    Stop,
    step,
)
from shiftbook.run.summary import Summary, last_reply, sum_up

LEASE_MS = 30_000
"""How long a lease holds without renewal: how long a dead machine keeps a run from others."""


async def start(
    store: Store,
    agent: Agent,
    message: str | UserContent | None = None,
    *,
    run: str | None = None,
    tags: Sequence[str] = (),
    clock: Clock | None = None,
    watcher: Watcher | None = None,
    lease_ms: int = LEASE_MS,
) -> Run:
    """Open a new run of `agent` and take its lease; the message is its first.

    Raises `CapTooSmall`, `AgentMistake`, `RunExists`, and `BadInput` for a run id or tags that can be none,
    before anything is written.
    """
    tags = check_tags(tags)
    clock = clock or SystemClock()
    name = clock.new_run_id() if run is None else run
    await open_toolboxes(agent)
    lease: Lease | None = None
    try:
        setting = Setting(store, agent, clock, watcher or NoWatcher())
        declaration = setting.declaration
        lease = await store.leases.take(name, this_process(), lease_ms, new=True)
        head = await store.entries.head(name)
        book = Book(store, setting.clock, lease, head.position, head.head, agent.redact)
        desk = setting.desk(book, RunView(), first_prompt(declaration.entry.declaration, setting.gauge))
        desk.note(RunOpened(name, declaration.entry.agent, VERSION, tags))
        desk.note(declaration.entry, blobs={declaration.entry.declaration: declaration.blob})
        set_rules(desk)
        handle = Run(desk, lease_ms)
        if message is not None:
            await handle.say(message)
        await book.commit()
    except BaseException:
        await let_go(store, agent, lease)
        raise
    handle.keep_lease()
    return handle


async def resume(
    store: Store,
    run: str,
    agent: Agent,
    message: str | UserContent | None = None,
    *,
    clock: Clock | None = None,
    watcher: Watcher | None = None,
    lease_ms: int = LEASE_MS,
    claim: AbstractAsyncContextManager[None] | None = None,
) -> Run:
    """Take up a run where its journal ends, in whatever state its last holder left it.

    The lease is taken within `claim`, and nothing else is done there: the agent's toolboxes are open by then.

    Raises `UnknownRun`, `Held`, `CapTooSmall` before anything is written. An agent that differs from the
    declared one is declared anew with the next entry; open calls of tools that changed are not given to it.
    """
    await open_toolboxes(agent)
    lease: Lease | None = None
    try:
        setting = Setting(store, agent, clock or SystemClock(), watcher or NoWatcher())
        async with claim or nullcontext():
            lease = await store.leases.take(run, this_process(), lease_ms)
        head = await store.entries.head(run)
        if head.position == 0:
            raise UnknownRun(run)
        restored = await restore(store, run)
        setting.go_on(restored.view)
        book = Book(store, setting.clock, lease, head.position, head.head, agent.redact)
        desk = setting.desk(book, restored.view, restored.prompt(setting.gauge))
        desk.knowledge, desk.asked_ms = restored.knowledge, restored.asked_ms
        desk.fresh.extend(restored.prompts.fresh)
        desk.reply = await last_reply(desk) if agent.shape is not None else None
        desk.mail = bool(await store.inbox.waiting(run, 1))
        handle = Run(desk, lease_ms)
        if message is not None:
            await handle.say(message)
    except BaseException:
        await let_go(store, agent, lease)
        raise
    handle.keep_lease()
    return handle


class Run:
    """A run in this process's hands. Use it as an async context manager, or call `close`."""

    def __init__(self, desk: Desk, lease_ms: int) -> None:
        self._desk = desk
        self._lease_ms = lease_ms
        self._keeper: LeaseKeeper | None = None
        self._fence = Fence(desk)
        self._going = False
        self._declared = False
        self._snapshot_at = desk.view.position
        self._told = desk.book.position
        self._closed = False
        self._work: asyncio.Task[Summary] | None = None  # what `entries` has at work
        self._queue: asyncio.Queue[Entry | None] | None = None
        self._watch = desk.book.on_entry
        desk.book.on_entry = self._pass_on

    @property
    def id(self) -> str:
        """The run's id."""
        return self._desk.book.run

    async def say(self, message: str | UserContent) -> None:
        """Give the run a message. Where nothing is open it is written with the run's next commit.

        While the run is at work, has a call or a request open, or has messages waiting, it goes through the
        inbox: a message between a call and its answer would part them, and who wrote first is heard first.
        """
        view = self._desk.view
        if self._going or self._desk.mail or view.calls or view.ask is not None:
            await post(self._desk.book.store, self.id, message, clock=self._desk.clock)
            self._desk.mail = True
            return
        self._desk.note(PersonSaid(content_of(message)))

    async def rule(self, key: str, text: str, *, withdrawn: bool = False) -> None:
        """Set a person's standing rule, or withdraw it, through the inbox; raises what `post_rule` raises."""
        desk = self._desk
        await post_rule(desk.book.store, self.id, key, text, withdrawn=withdrawn, clock=desk.clock)
        desk.mail = True

    def stop(self, why: str = "stopped by a person") -> None:
        """Rest at the next safe boundary: running actions are finished, a model reply is cut short."""
        self._wish("stop", why)

    def cancel(self, why: str = "cancelled by a person") -> None:
        """Answer everything that is open without doing it, and rest as cancelled."""
        for cancellation in self._desk.cancellations:
            cancellation.set()
        self._wish("cancel", why)

    def hand_over(self) -> None:
        """End `finish` at the next safe boundary and write nothing of it: whoever resumes the run goes on."""
        self._desk.leave()

    def _wish(self, wish: str, why: str) -> None:
        desk = self._desk
        desk.wish, desk.why = ("cancel" if wish == "cancel" else "stop"), why
        for task in tuple(desk.in_flight):
            if wish == "cancel" or task.get_name() == TASK_NAME:
                task.cancel()

    async def finish(self) -> Summary:
        """Go on until the run rests."""
        desk = self._desk
        await self._leave(self._work)
        if self._going:
            raise BadInput(f"Run {self.id} is at work in this handle already: wait for that to end.")
        self._going = True
        desk.announced = False
        if desk.view.state == "failed" and desk.agent.model is not desk.models[0]:
            take_model(desk, desk.models[0])
            self._declared = False
        try:
            if desk.view.state != "running" and not desk.mail:
                desk.mail = bool(await desk.book.store.inbox.waiting(self.id, 1))
            with self._fence.around():
                while not desk.leaving and not await self._turn():
                    self._fence.check()
                await desk.book.commit()
        except BaseException:
            self._going = False
            raise
        self._going = False
        desk.wish, desk.why = "go", ""
        return await self.summary()

    async def entries(self) -> AsyncIterator[Entry]:
        """Go on until the run rests, and hand out each entry once it is committed.

        It begins with what this handle has written since the last call, the run's opening included. A caller
        who leaves the iteration early cuts the run off in the middle, as a crash would.
        """
        for entry in await read_entries(self._desk.book.store, self.id, self._told):
            self._told = entry.position
            yield entry
        await self._leave(self._work)
        queue: asyncio.Queue[Entry | None] = asyncio.Queue()
        self._queue = queue
        work = self._work = asyncio.ensure_future(self.finish())
        work.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (committed := await queue.get()) is not None:
                self._told = committed.position
                yield committed
            work.result()
        finally:
            await self._leave(work)

    def _pass_on(self, entry: Entry) -> None:
        if self._queue is not None:
            self._queue.put_nowait(entry)
        if self._watch is not None:
            self._watch(entry)

    async def _leave(self, work: asyncio.Task[Summary] | None) -> None:
        """End work that nobody iterates over: a generator that was left is closed late, or never."""
        if work is None or work is asyncio.current_task():
            return
        if self._work is work:
            self._work = self._queue = None
        await end(work)  # Whoever iterated was told what came of it; here nobody asks any more.

    async def summary(self) -> Summary:
        """How the run stands."""
        return await sum_up(self._desk)

    def keep_lease(self) -> None:
        """Begin to renew the lease from a thread of its own (a database in memory has no second reader)."""
        store = self._desk.book.store
        if store.name == ":memory:" or self._keeper is not None:
            return
        self._keeper = LeaseKeeper(
            store.reopen,
            self._desk.book.lease,
            self._lease_ms,
            self._desk.book.lost,
            self._fence.fall,
        )
        self._keeper.start()

    async def close(self) -> None:
        """End what is at work and give the lease back. What was staged and not committed did not happen."""
        self._closed = True
        try:
            await self._leave(self._work)
            if self._keeper is not None:
                self._keeper.end()
                self._keeper = None
            await self._desk.index.close()
        finally:
            await let_go(self._desk.book.store, self._desk.agent, self._desk.book.lease)

    async def __aenter__(self) -> Run:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _turn(self) -> bool:
        """One act of the loop; True when the run rests."""
        desk = self._desk
        if self._closed:
            raise BadInput(f"This handle of run {self.id} was closed: take the run up again with `resume`.")
        act = step(desk.view, desk.situation(), desk.agent.limits)
        if isinstance(act, Ask | Dispatch) and desk.agent.toolboxes:
            looked = await look_again(desk)
            if looked.too_big is not None:
                return await rest(desk, Stop("cap", looked.too_big, desk.agent.cap))
            if looked.changed:
                self._declared = False
                return False
        if not isinstance(act, Nothing) and not self._declared:
            self._declared = True
            if declare_changes(desk):
                return False  # With another agent another thing may be next.
        match act:
            case Nothing():
                await desk.book.commit()
                return True
            case MoveMail():
                await move_mail(desk)
            case Ask():
                full = await model.ask(desk, act, self._due_snapshot())
                if full is not None:
                    return await rest(desk, Stop("cap", full.tokens, desk.agent.cap))
                await desk.index.keep_up(desk.book.position)
            case AskAgain():
                await desk.book.commit()
                await model.ask_again(desk, act)
            case AskReport():
                await report.ask_report(desk, act)
            case Dispatch():
                await actions.dispatch(desk, act)
            case Reconcile():
                await actions.reconcile(desk, act)
            case Settle():
                actions.settle(desk, act)
            case Keep():
                await keep(desk, act)
            case Repair():
                desk.note(PersonSaid((Text(repair_text(act.why)),), "author"))
            case FallBack():
                fall_back(desk)
                self._declared = True
                declare_changes(desk)
            case EndPause():
                model.end_pause(desk, act)
            case DropAsk():
                desk.note(ModelInterrupted(act.turn, (), act.reason))
            case DropReport():
                desk.note(ReportFailed(act.attempt, act.reason))
            case Stop() | Rest():
                await desk.index.keep_up(desk.book.position, REST_BATCHES)
                return await rest(desk, act)
        return False

    def _due_snapshot(self) -> Snapshot | None:
        desk = self._desk
        if desk.view.position - self._snapshot_at < desk.agent.limits.snapshot_every:
            return None
        self._snapshot_at = desk.view.position
        return snapshot_of(desk.view, desk.knowledge, desk.prompt, desk.fresh)

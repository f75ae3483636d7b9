"""A recorded session driven through the live engine: the main job on real input.

The recording answers by turn number whatever the prompt is; each recorded result is the answer of its tool;
each person's text enters the inbox when the reply that it followed is delivered, under an item id that is the
same in every process. So a rerun that was killed is taken up like any other run, from the reference
"rerun:PATH#NUMBER" in its journal, and ends with the same entries.

It refuses to go on with a recording that reads otherwise than when the rerun began.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shiftbook import canonical
from shiftbook.clock import Clock, SystemClock
from shiftbook.entries import AgentDeclared, Entry, ModelAnswered, PersonSaid
from shiftbook.errors import BadInput
from shiftbook.journal.promises import Store
from shiftbook.messages import Emit, Json, ReplyEvent, Request, Text
from shiftbook.messages import Reply as ModelReply
from shiftbook.providers.recorded import Recorded, RecordedClock, recorded_deliveries, recorded_tools
from shiftbook.run.agent import CAP_DEFAULT, Agent
from shiftbook.run.desk import NoWatcher, Watcher
from shiftbook.run.loop import LEASE_MS, Run, resume, start
from shiftbook.run.mail import inbox_item
from shiftbook.run.summary import Summary
from shiftbook.sessions import Session, open_session
from shiftbook.views import standing_of

POLICY_DEFAULT = "window"
"""The policy that goes through to the end of any recording; `transcript` stops at its cap."""

PREFIX = "rerun:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the prompts of a rerun are made; `cap` includes the `fixed` tokens of filler."""

    policy: str = POLICY_DEFAULT
    cap: int = CAP_DEFAULT
    mark: int | None = None
    fixed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """What came of a rerun, and what of the recording it covers.

    `requests_in_file` counts the answered requests recorded for the session, skipped sidechains included;
    `requests_driven` those that this run has asked again. `named` says what the format dropped or set aside.
    """

    summary: Summary
    settings: Settings
    requests_in_file: int
    requests_driven: int
    named: tuple[tuple[str, int], ...]


class RecordedRun:
    """The recording as a model that also posts: what people said next is in the inbox before it answers.

    Nothing is awaited between the first event and the end of a reply, so that a stop never cuts one in two:
    the turn after a reply that was cut would be answered with the next reply, and one would be lost.
    """

    def __init__(self, store: Store, session: Session, clock: RecordedClock) -> None:
        self._store, self._clock = store, clock
        self._recorded = Recorded(session, clock=clock)
        self._deliveries = recorded_deliveries(session)
        self.name = self._recorded.name
        self.turns = len(session.replies)

    async def reply(self, request: Request, emit: Emit) -> ModelReply:
        """The recorded reply, once what followed it is in the inbox."""
        events: list[ReplyEvent] = []
        reply = await self._recorded.reply(request, events.append)
        await self.deliver(request.run, request.turn)
        await asyncio.sleep(0)  # A stop that came meanwhile takes effect here, before the first event.
        for event in events:
            emit(event)
        return reply

    async def deliver(self, run: str, turn: int) -> None:
        """Put in the inbox what followed the reply of `turn` (0: what was said first), once."""
        for due in self._deliveries[turn]:
            said = PersonSaid((Text(due.text),), due.author)
            await self._store.inbox.put(run, inbox_item(due.item, said, self._clock.now_ms()))


def recorded_agent(store: Store, session: Session, settings: Settings, clock: RecordedClock) -> Agent:
    """The agent that a recording is; its parameters name the recording by digest."""
    return Agent(
        name="rerun",
        model=RecordedRun(store, session, clock),
        instructions=session.instructions or "",
        tools=recorded_tools(session, clock),
        policy=settings.policy,
        cap=settings.cap,
        mark=settings.mark,
        fixed=settings.fixed,
        parameters={"recording": recording_digest(session)},
        reference=f"{PREFIX}{Path(session.source).absolute()}#{session.number}",
    )


def recording_digest(session: Session) -> str:
    """Sixteen hex digits over everything that a rerun takes from the recording."""
    said = repr((session.instructions, session.steps)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(said).hexdigest()[:16]


def is_rerun(reference: str) -> bool:
    """Whether an agent's reference names a recording."""
    return reference.startswith(PREFIX)


def recording_of(reference: str) -> Session:
    """The recording that a reference names. Raises `SessionUnreadable`."""
    path, _, number = reference.removeprefix(PREFIX).rpartition("#")
    if not path or not number.isdecimal():
        raise BadInput(f"{reference!r} names no recording: it should read rerun:PATH#NUMBER.")
    return open_session(path, int(number))


async def begin(
    store: Store,
    session: Session,
    settings: Settings = Settings(),
    *,
    run: str | None = None,
    tags: Sequence[str] = (),
    clock: Clock | None = None,
    watcher: Watcher | None = None,
    lease_ms: int = LEASE_MS,
) -> Run:
    """Open a run that is a rerun of `session`; raises as `shiftbook.start` does."""
    told = RecordedClock(session, clock or SystemClock())
    agent = recorded_agent(store, session, settings, told)
    handle = await start(store, agent, run=run, tags=tags, clock=told, watcher=watcher, lease_ms=lease_ms)
    return await _with_first_words(handle, agent)


async def take_up(
    store: Store,
    run: str,
    settings: Settings | None = None,
    *,
    session: Session | None = None,
    clock: Clock | None = None,
    watcher: Watcher | None = None,
    lease_ms: int = LEASE_MS,
) -> Run:
    """Take up a rerun where its journal ends, with the settings that it began with unless others are given.

    `session` spares reading the recording again. Raises `BadInput` when the run is no rerun or its recording
    has changed, and as `shiftbook.resume` does.
    """
    declared, known = await declared_settings(store, run)
    if not is_rerun(declared.agent):
        raise BadInput(
            f"Run {run} is no rerun but of the agent {declared.agent}: use `shiftbook resume {run}`."
        )
    session = session or recording_of(declared.agent)
    if known.digest != recording_digest(session):
        raise BadInput(
            f"The recording {session.source} reads otherwise than when run {run} began: put the old file "
            "back, or rerun the new one as a new run."
        )
    told = RecordedClock(session, clock or SystemClock())
    _wind_on(told, session, known)
    agent = recorded_agent(store, session, settings or known.settings, told)
    agent = replace(agent, reference=declared.agent)
    handle = await resume(store, run, agent, clock=told, watcher=watcher, lease_ms=lease_ms)
    return await _with_first_words(handle, agent)


async def rerun(
    store: Store,
    session: Session,
    settings: Settings = Settings(),
    *,
    run: str | None = None,
    resume_run: str | None = None,
    stop_after_turn: int | None = None,
    watcher: Watcher | None = None,
    clock: Clock | None = None,
) -> Rerun:
    """Drive a recording to its end, or to the safe boundary after `stop_after_turn`.

    `resume_run` goes on with a rerun that was cut off. It has finished when the calls of the last recorded
    reply are answered and every later text is delivered.
    """
    watch = StopAfter(watcher or NoWatcher(), stop_after_turn)
    if resume_run is None:
        handle = await begin(store, session, settings, run=run, watcher=watch, clock=clock)
    else:
        handle = await take_up(store, resume_run, session=session, watcher=watch, clock=clock)
        settings = (await declared_settings(store, resume_run))[1].settings
    watch.handle = handle
    async with handle:
        summary = await handle.finish()
    return told_of(session, settings, summary)


def told_of(session: Session, settings: Settings, summary: Summary) -> Rerun:
    """What came of it, beside what the recording holds."""
    return Rerun(
        summary=summary,
        settings=settings,
        requests_in_file=session.requests_in_file,
        requests_driven=summary.turns,
        named=session.named,
    )


class StopAfter:
    """A watcher that stops the run at the safe boundary after a turn, and passes on what it sees."""

    def __init__(self, watcher: Watcher, turn: int | None) -> None:
        self._watcher, self._turn = watcher, turn
        self.handle: Run | None = None

    def entry(self, entry: Entry) -> None:
        """Stop when the turn's reply is in the journal."""
        self._watcher.entry(entry)
        at_turn = isinstance(entry.what, ModelAnswered) and entry.what.turn == self._turn
        if at_turn and self.handle is not None:
            self.handle.stop(f"stopped after turn {self._turn}")

    def delta(self, turn: int, attempt: int, event: ReplyEvent) -> None:
        """Pass it on."""
        self._watcher.delta(turn, attempt, event)

    def progress(self, call: str, message: str) -> None:
        """Pass it on."""
        self._watcher.progress(call, message)


@dataclass(frozen=True, slots=True)
class Declared:
    """What a rerun's journal says of it: settings, the recording's digest, replies, calls not answered."""

    settings: Settings
    digest: str
    answers: int
    open_calls: frozenset[str]


async def declared_settings(store: Store, run: str) -> tuple[AgentDeclared, Declared]:
    """The last declaration of a run and what a rerun's says. Raises `UnknownRun`."""
    view = await standing_of(store, run)
    declared = AgentDeclared(view.agent, view.declaration, view.model, view.policy, view.cap)
    written: Json = canonical.decode((await store.blobs.get(run, view.declaration)).decode("utf-8"))
    settings = Settings(policy=view.policy, cap=view.cap, mark=written["mark"], fixed=written["fixed"])
    digest = str(written["parameters"].get("recording", ""))
    return declared, Declared(settings, digest, view.answers, frozenset(view.calls))


def _wind_on(clock: RecordedClock, session: Session, known: Declared) -> None:
    """Set the clock to what was delivered before this process: the last reply, and its answers."""
    turn = known.answers
    if turn:
        clock.replied(turn)
        for number in range(1, len(session.replies[turn - 1].calls) + 1):
            if f"{turn}.{number}" not in known.open_calls:
                clock.answered(turn, number)


async def _with_first_words(handle: Run, agent: Agent) -> Run:
    """Deliver what was said before the first reply; a run killed before it could be has it delivered now."""
    assert isinstance(agent.model, RecordedRun)
    try:
        await agent.model.deliver(handle.id, 0)
    except BaseException:
        await handle.close()
        raise
    return handle

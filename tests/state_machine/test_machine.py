"""A run under everything that can happen to it, in any order, held against a list and a dictionary.

Processes start, work up to some await and die there; others take the lease when it is over, and the first
ones wake up; messages come; the person stops and cancels; the agent is changed; what is derived is dropped.
After every step the journal has grown at its end only and everything that follows from it is the same by
every way.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from shiftbook.codec import Row
from shiftbook.entries import ActionFinished, AgentDeclared, Entry, ModelAnswered, PersonSaid
from shiftbook.errors import Fenced, Held
from shiftbook.journal.promises import Store
from shiftbook.messages import Call
from shiftbook.providers.scripted import call, calls, cut, fails, say
from shiftbook.run.agent import Agent
from shiftbook.run.limits import Limits
from shiftbook.run.loop import Run
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.crash import Crash, Dies, Seams
from shiftbook.tools.contract import Context, contract_digest
from shiftbook.tools.function import tool
from tests.crash import invariants, virtual
from tests.crash.scenarios import LEASE_MS, Scenario, take_up
from tests.crash.sweep import Ground, Process
from tests.crash.tools import look, mail, pay, send, write
from tests.crash.virtual import at_once
from tests.crash.world import RUN, WORLD

STEPS = [
    say("Nothing to do."),
    call("look", {"place": "A"}),
    call("mail", {"to": "Ann"}),
    call("pay", {"amount": 5}),
    call("send", {"to": "Bob"}),
    calls(call("look", {"place": "A"}), call("mail", {"to": "Ann"}), call("pay", {"amount": 5})),
    calls(call("send", {"to": "Bob"}), call("juggle", {}), call("look", {"plaice": 1}), call("pay", raw="{")),
    fails(then=call("pay", {"amount": 6})),
    fails(
        times=2, retry_after_ms=20_000, then=calls(call("mail", {"to": "Cid"}), call("send", {"to": "Cid"}))
    ),
    cut(after="I was about to say", times=None),
    cut(after="", then=call("look", {"place": "B"})),
]


@tool(repeat="safe", name="look")
async def look_well(place: str, context: Context) -> str:
    """Look at a place, closely."""
    WORLD.get().begin(context)
    WORLD.get().act(context)
    return f"{place}: 12 crates, one of them open"


@tool(repeat="ask", name="pay")
async def pay_once(amount: int, context: Context) -> str:
    """Pay."""
    WORLD.get().begin(context)
    WORLD.get().act(context)
    return f"paid {amount}"


VERSIONS: tuple[tuple[Any, ...], ...] = (
    (look, pay, mail, send),
    (look_well, pay, mail, send),
    (look, pay_once, mail),
    (mail, send),
)
CHECKS = (
    invariants.gapless,
    invariants.key_of_call,
    invariants.attempts_count_up,
    invariants.finished_once,
    invariants.verifies,
    invariants.one_standing,
)


@dataclass
class Live:
    """A process that holds the run, or believes so."""

    process: Process
    run: Run
    store: Store
    version: int


class RunMachine(RuleBasedStateMachine):
    """The rules. The oracle is `rows` (the journal so far) and `messages` (text to how it was given)."""

    kind: type[Ground] = Ground

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Row] = []
        self.messages: dict[str, str] = {}
        self.live: Live | None = None
        self.zombies: list[Live] = []
        self.version = 0
        self.until_ms = 0.0
        self.words = 0
        self.ground: Ground = Ground.__new__(Ground)

    # --- rules --------------------------------------------------------------------------------------

    @initialize(
        script=st.lists(st.sampled_from(STEPS), min_size=1, max_size=6),
        policy=st.sampled_from(["transcript", "window", "journal"]),
        parallel=st.integers(1, 3),
    )
    def start(self, script: list[Any], policy: str, parallel: int) -> None:
        scenario = Scenario(
            "machine",
            dict(enumerate(script, start=1)),
            policy=policy,
            cap=20_000,
            tools=tuple({each.name: each for version in VERSIONS[::-1] for each in version}.values()),
            limits=Limits(parallel=parallel, snapshot_every=3),
        )
        self.ground = self.kind(scenario)
        WORLD.set(self.ground.world)
        self.live = self.taken()

    @precondition(lambda self: self.live is None)
    @rule(waits=st.booleans())
    def resume(self, waits: bool) -> None:
        """Only a lease that is over, or was given back, can be taken."""
        self.live = self.takes(waits)

    @precondition(lambda self: self.live is not None)
    @rule(waits=st.booleans())
    def steal(self, waits: bool) -> None:
        """A second process takes the run; whoever had it goes on believing that it has it."""
        live = self.takes(waits)
        if live is not None:
            assert self.live is not None
            self.zombies.append(self.live)
            self.live = live
            self.forget_what_was_only_said()

    @precondition(lambda self: self.live is not None)
    @rule(
        at=st.one_of(st.none(), st.integers(1, 12), st.integers(1, 60)),
        wish=st.sampled_from(["go", "go", "go", "stop", "cancel"]),
    )
    def work(self, at: int | None, wish: str) -> None:
        """Go on until the run rests, or die at the `at`-th await."""
        assert self.live is not None
        live = self.live
        if wish == "stop":
            live.run.stop()
        elif wish == "cancel":
            live.run.cancel()
        if not self.goes(live, at):
            self.live = None
            return
        self.messages = {text: "heard" if how == "said" else how for text, how in self.messages.items()}

    @precondition(lambda self: self.zombies)
    @rule()
    def wake(self) -> None:
        """Whoever lost the lease is refused, or has nothing to write."""
        zombie = self.zombies.pop()
        before = self.read_rows()
        begun = len(self.ground.world.begun)
        try:
            self.goes(zombie, None)
        except Fenced:
            pass
        finally:
            at_once(zombie.store.close())
        assert self.read_rows() == before
        assert len(self.ground.world.begun) == begun

    @precondition(lambda self: self.live is not None)
    @rule()
    def close(self) -> None:
        """Give the lease back."""
        assert self.live is not None
        at_once(self.live.run.close())
        at_once(self.live.store.close())
        self.live, self.until_ms = None, 0.0
        self.forget_what_was_only_said()

    @precondition(lambda self: self.live is not None)
    @rule()
    def speak(self) -> None:
        """The holder is told something."""
        assert self.live is not None
        text = self.word()
        waiting = len(self.waiting())
        at_once(self.live.run.say(text))
        self.messages[text] = "posted" if len(self.waiting()) > waiting else "said"

    @rule()
    def post(self) -> None:
        """Somebody writes from outside."""
        text = self.word()
        write(self.ground.world, text, text)
        self.messages[text] = "posted"

    @rule(ms=st.sampled_from([1, 1_000, LEASE_MS + 1]))
    def pass_time(self, ms: int) -> None:
        self.ground.time.reach(self.ground.time.ms + ms)

    @rule(version=st.integers(0, len(VERSIONS) - 1))
    def change_the_agent(self, version: int) -> None:
        """The next process comes with other code."""
        self.version = version

    @rule()
    def drop_what_is_derived(self) -> None:
        at_once(self.peek.cache.drop(RUN))
        at_once(self.peek.catalogue.rebuild())

    # --- what has to hold after every step ----------------------------------------------------------

    @invariant()
    def the_journal_grows_at_its_end(self) -> None:
        rows = self.read_rows()
        assert rows[: len(self.rows)] == self.rows
        epoch = at_once(self.peek.leases.look(RUN)).epoch
        assert all(row.epoch == epoch for row in rows[len(self.rows) :])
        self.rows = rows

    @invariant()
    def everything_that_follows_is_the_same_by_every_way(self) -> None:
        entries = self.ground.journal()
        for check in CHECKS:
            assert list(check(self.ground, entries)) == []
        assert self.ground.world.violations == []

    @invariant()
    def each_call_has_at_most_one_outcome(self) -> None:
        journal = self.ground.world.journal()
        answers = Counter(e.what.call for e in journal if isinstance(e.what, ActionFinished))
        assert all(count == 1 for count in answers.values())

    @invariant()
    def what_a_person_decides_is_never_repeated(self) -> None:
        begun = Counter(each.call for each in self.ground.world.begun if each.tool == mail.name)
        assert all(count == 1 for count in begun.values())

    @invariant()
    def no_message_is_lost_or_doubled(self) -> None:
        heard = [_text(e) for e in self.ground.world.journal() if isinstance(e.what, PersonSaid)]
        waiting = [item.payload for item in self.waiting()]
        counts = Counter(heard)
        for text, how in self.messages.items():
            waits = sum(f'"{text}"' in payload for payload in waiting)
            if how == "said":
                assert counts[text] + waits <= 1
            else:
                assert counts[text] + waits == 1, (text, how)

    @invariant()
    def a_call_is_given_only_to_code_that_promised_it(self) -> None:
        promised: dict[str, str] = {}
        contracts: Any = {}
        for entry in self.ground.world.journal():
            if isinstance(entry.what, AgentDeclared):
                contracts = entry.what.contracts
            elif isinstance(entry.what, ModelAnswered):
                for part in entry.what.parts:
                    if isinstance(part, Call):
                        promised[part.id] = contracts.get(part.tool, "")
        for once, version in GIVEN.get(id(self.ground.world), []):
            code = {each.name: each for each in VERSIONS[version]}[once[1]]
            assert promised[once[0]] == contract_digest(code), once

    def teardown(self) -> None:
        for each in [*self.zombies, *([self.live] if self.live else [])]:
            at_once(each.store.close())
        if hasattr(self.ground, "world"):
            GIVEN.pop(id(self.ground.world), None)
            self.ground.close()

    # --- how it is done -----------------------------------------------------------------------------

    @property
    def peek(self) -> Store:
        assert self.ground.world.peek is not None
        return self.ground.world.peek

    def forget_what_was_only_said(self) -> None:
        """What a holder was told goes with it, unless it has committed since."""
        self.messages = {text: how for text, how in self.messages.items() if how != "said"}

    def word(self) -> str:
        """A text that was not used before."""
        self.words += 1
        return f"word {self.words}"

    def read_rows(self) -> list[Row]:
        return at_once(self.peek.entries.read(RUN, 0, 10_000))

    def waiting(self) -> Any:
        return at_once(self.peek.inbox.waiting(RUN))

    def takes(self, waits: bool) -> Live | None:
        """The run in the hands of another process, None when it is held."""
        if waits:
            self.ground.time.reach(self.until_ms)
        try:
            return self.taken()
        except Held:
            assert self.ground.time.ms < self.until_ms
            return None

    def taken(self) -> Live:
        """Another process takes the run, with the agent as it is now and a clock that may be off."""
        ground, version = self.ground, self.version
        process = Process(None, Seams())
        inner = ground.open()
        skew = 60_000 * (ground.processes % 3 - 1)
        clock = process.seams.clock(SimulatedClock(ground.processes, time=ground.time, skew_ms=skew))
        note = GIVEN.setdefault(id(ground.world), [])

        def change(agent: Agent) -> Agent:
            return replace(agent, tools=tuple(_Noted(each, note, version) for each in VERSIONS[version]))

        try:
            run, _ = at_once(
                take_up(
                    ground.scenario,
                    ground.world,
                    ground.wrapped(inner, process),
                    clock,
                    process.seams,
                    change,
                )
            )
        except BaseException:
            at_once(inner.close())
            raise
        self.until_ms = ground.time.ms + LEASE_MS
        return Live(process, run, inner, version)

    def goes(self, live: Live, at: int | None) -> bool:
        """Let a process work; False when it died."""
        seams = live.process.seams
        seams.arm(*([] if at is None else [Dies(at)]))
        self.ground.world.told = set()

        def idle() -> None:
            if seams.died is None:
                self.ground.world.idle()

        async def main() -> Any:
            return await live.run.finish()

        try:
            summary = virtual.run(main(), idle)
        except Crash:
            at_once(live.store.close())
            self.forget_what_was_only_said()
            return False
        finally:
            seams.arm()
        assert summary.state in ("finished", "paused", "cancelled", "failed", "waiting")
        return True


GIVEN: dict[int, list[tuple[tuple[str, str], int]]] = {}
"""Which call was given to which version of the code, by world."""


class _Noted:
    """A tool that notes what it was given."""

    def __init__(self, inner: Any, note: list[Any], version: int) -> None:
        self._inner, self._note, self._version = inner, note, version

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def run(self, arguments: Any, context: Context) -> Any:
        self._note.append(((context.call, context.tool), self._version))
        return await self._inner.run(arguments, context)


def _text(entry: Entry) -> str:
    return "".join(getattr(part, "text", "") for part in getattr(entry.what, "content", ()))


TestRunMachine = RunMachine.TestCase
TestRunMachine.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)

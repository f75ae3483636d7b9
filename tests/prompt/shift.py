"""A loop reduced to its prompts: entries happen, a policy decides, the recipe is journaled, it grows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from shiftbook.entries import (
    MODEL_VISIBLE,
    AgentDeclared,
    Entry,
    EpochOpened,
    ModelAsked,
    PersonSaid,
    Recalled,
    RunOpened,
    Warned,
    What,
)
from shiftbook.messages import Block, Request, Text, ToolSchema
from shiftbook.policies import Policy, Window, decide
from shiftbook.projections.knowledge import Knowledge, learn_all, needed
from shiftbook.projections.recall_units import words_of
from shiftbook.prompt.brief import BRIEF_KINDS
from shiftbook.prompt.epoch import (
    Choice,
    Decided,
    EpochPrompt,
    Extend,
    Full,
    Rebuild,
    RecallRoom,
    WantRecall,
    WantReport,
)
from shiftbook.prompt.grow import adopt, first_prompt, grow, new_epoch
from shiftbook.prompt.measure import Gauge
from shiftbook.prompt.recall import Memory, Record, recalled
from shiftbook.prompt.recall_pack import KEEP_CHARS, Found
from shiftbook.prompt.render import chars, render_entry
from shiftbook.prompt.report import by_rule
from shiftbook.tokens import Tokens
from tests.strategies import TOOLS, Turn, happenings


class QuarterMeter:
    """Four bytes a token, rounded up: an exact meter for tests that needs no tables."""

    name = "quarter"

    def count(self, text: str) -> Tokens:
        return Tokens(-(-len(text.encode("utf-8", "backslashreplace")) // 4))


@dataclass(frozen=True)
class Asked:
    """One request as it would be sent."""

    blocks: tuple[Block, ...]
    tokens: int
    epoch: int
    meter: str
    choice: Extend | Rebuild
    tools: tuple[ToolSchema, ...]
    batch: tuple[int, ...]
    """The visible entries that were new to it."""
    shown: frozenset[int]
    warned: str


@dataclass
class Shift:
    """One run's prompts. `full` says that the policy stopped at the cap."""

    policy: Policy = field(default_factory=Window)
    cap: int = 4_000
    mark: int = 1_600
    tools: Sequence[ToolSchema] = TOOLS
    instructions: str = "Do the work."
    declaration: str = "d" * 64
    meter: QuarterMeter = field(default_factory=QuarterMeter)
    journal: list[Entry] = field(default_factory=list)
    fresh: list[Entry] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    full: Full | None = None
    turn: int = 0
    changed: str | None = None
    gap_ms: int | None = None
    knowledge: Knowledge = field(default_factory=Knowledge)
    recall: RecallRoom = RecallRoom()
    spread: float | None = None

    def __post_init__(self) -> None:
        self.gauge = Gauge(self.instructions, self.tools, meter=self.meter)
        self.prompt: EpochPrompt = first_prompt(self.declaration, self.gauge)
        self.opened = 0
        self.happen(RunOpened("run", "agent.py:shop", "0"))
        self.declare(self.declaration)
        self.changed = None

    def happen(self, *whats: What) -> list[Entry]:
        """Journal entries."""
        made = [Entry(len(self.journal) + 1 + n, 1_000, 1, what) for n, what in enumerate(whats)]
        self.journal += made
        learn_all(made, self.knowledge)
        self.fresh += [entry for entry in made if type(entry.what) in MODEL_VISIBLE]
        return made

    def declare(self, declaration: str, tools: Sequence[ToolSchema] | None = None) -> None:
        """The agent is another from here on."""
        self.declaration, self.changed = declaration, "the agent changed"
        self.happen(AgentDeclared("agent.py:shop", declaration, "m", self.policy.name, self.cap))
        if tools is not None:
            meter = self.gauge.meter_in_use
            self.tools = tools
            self.gauge = Gauge(self.instructions, tools, meter=self.meter)
            self.gauge.use(meter)

    def ask(self) -> Asked | None:
        """Decide, journal, grow; None when the policy says that nothing more fits."""
        choice = self._decided()
        if isinstance(choice, Full):
            self.full = choice
            return None
        self.turn += 1
        batch = tuple(entry.position for entry in self.fresh)
        fresh = [*self.fresh, *self._brought().values()]
        self.happen(*(Warned(what, detail) for what, detail in choice.warnings))
        if isinstance(choice, Rebuild):
            self.opened += 1
            self.happen(EpochOpened(self.opened, choice.reason, choice.head, choice.numbers))
            known = [*needed(self.knowledge, BRIEF_KINDS.values()), *fresh]
            growth = new_epoch(self.prompt, choice, self.opened, self.declaration, known, self.gauge)
        else:
            if not self.opened:
                self.opened = 1
                self.happen(EpochOpened(1, "start"))
            growth = grow(self.prompt, choice.picks, fresh, self.gauge, choice.made)
            # What a policy hands over as made has to be what its picks say, to the byte.
            assert growth == grow(self.prompt, choice.picks, fresh, self.gauge)
        meter = self.gauge.meter_in_use
        self.happen(ModelAsked(self.turn, choice.picks, growth.digest, growth.tokens, meter))
        adopt(self.prompt, growth)
        self.fresh.clear()
        self.changed = None
        asked = Asked(
            blocks=tuple(self.prompt.blocks),
            tokens=self.prompt.tokens,
            epoch=self.prompt.epoch,
            meter=meter,
            choice=choice,
            tools=tuple(self.tools),
            batch=batch,
            shown=frozenset(self.prompt.shown),
            warned="\n".join(detail for _, detail in choice.warnings),
        )
        self.asked.append(asked)
        return asked

    def _decided(self) -> Decided:
        """What the policy chooses once it has what it wants; it may want one report and one recall."""
        wanted: list[type[Choice]] = []
        while isinstance(choice := self._chosen(), WantReport | WantRecall):
            assert type(choice) not in wanted, "what was wanted is not used"
            wanted.append(type(choice))
            if isinstance(choice, WantReport):
                tallies = {key for key, _ in self.knowledge.tallies}
                self.happen(*by_rule(choice, self.gauge.measure, tallies))
            else:
                self.happen(recalled(choice, self.found(choice)))
        return choice

    def found(self, want: WantRecall) -> tuple[Found, ...]:
        """What recall finds among all entries but the fresh ones."""
        fresh = {entry.position for entry in self.fresh}
        memory = Memory()
        for words in words_of(self.journal):
            if words.position not in fresh:
                entry = self.journal[words.position - 1]
                cut = self._size(entry, KEEP_CHARS) if chars(entry) > KEEP_CHARS else None
                size = self._size(entry, None)
                memory.add(Record(words.position, words.voice, words.text, size, cut))
        return memory.recall(want.query, want.room, beside=want.beside, shown=want.shown)

    def _size(self, entry: Entry, keep: int | None) -> int:
        return sum(map(self.gauge.measure, render_entry(entry, "recalled", keep)))

    def _brought(self) -> dict[int, Entry]:
        named = [entry.what.found for entry in self.fresh if isinstance(entry.what, Recalled)]
        return {at: self.journal[at - 1] for found in named for at in found}

    def _chosen(self) -> Choice:
        return decide(
            self.policy,
            self.prompt,
            self.fresh,
            self.gauge,
            cap=self.cap,
            mark=self.mark,
            reason=self.changed if self.opened else None,
            knowledge=self.knowledge,
            gap_ms=self.gap_ms,
            recall=self.recall,
            spread=self.spread,
            brought=self._brought(),
        )

    def request(self, asked: Asked) -> Request:
        """The request, as a validator wants it."""
        return Request("run", self.turn, 1, "m", self.instructions, asked.tools, asked.blocks)

    def live(self, turns: Iterable[Turn], first: str = "Begin.") -> Shift:
        """Say something, then ask and let each turn happen, until the end or until the prompt is full."""
        self.happen(PersonSaid((Text(first),)))
        for turn in turns:
            if self.ask() is None:
                return self
            self.happen(*happenings(turn, self.turn))
        self.ask()
        return self

"""What stands in the prompt when a question is asked at the end of a chat, under a policy and a cap.

A policy is a pure function of entries, so the chat is driven through it and through the prompt layer without
a database: the engine adds durability, not another prompt. Each message of a person is a turn, as live. The
question comes last, as a person's words, in the place of the next turn; nothing is committed by it, so every
question meets the same prompt. `recall-only` is no policy: the ranking of recall packed into the whole cap,
without a brief and without recent turns, so that the ranking can be judged by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shiftbook.entries import Entry, ModelAnswered, PersonSaid, Recalled, What
from shiftbook.messages import Block, Text
from shiftbook.policies import decide, policy_named
from shiftbook.policies.promise import Policy
from shiftbook.projections.recall_units import Voice
from shiftbook.prompt.cut import cut_text
from shiftbook.prompt.epoch import (
    Decided,
    EpochPrompt,
    Extend,
    Full,
    Growth,
    Rebuild,
    WantRecall,
    WantReport,
)
from shiftbook.prompt.grow import adopt, first_prompt, grow, new_epoch
from shiftbook.prompt.measure import BLOCK_TOKENS, PART_TOKENS, Gauge
from shiftbook.prompt.recall import Memory, Record, recalled
from shiftbook.prompt.recall_pack import KEEP_CHARS
from shiftbook.prompt.recall_question import CONVERSING
from shiftbook.prompt.render import chars, render_entry
from shiftbook.prompt.report import by_rule
from shiftbook.prompt.told import entry_text
from shiftbook.studies.chats import Chat, Message
from shiftbook.studies.holding import Outcome, held
from shiftbook.tokens import Meter, Tokens
from shiftbook.vectors.promise import Vectors

RECALL_ONLY = "recall-only"
MESSAGE_TOKENS = 3
"""Around each message, in the published measurements that this study repeats: characters/4 and 3."""

MARK = (2, 5)
"""The low-water mark as a part of the cap: 40%, as runs have it by default."""

WRITTEN_FROM = 1_000_000
"""Reports and recalls are numbered from here: the positions below are the places of messages."""

MESSAGE_MS = 60_000
"""Between two messages; no policy of a study without prices or a clock looks at it."""


class CharsMeter:
    """A quarter of the characters and 3 a message: the measure of the figures that are compared with.

    What the prompt layer adds around a block is taken off here, so that the sum is exactly that.
    """

    __slots__ = ()
    name = "chars/4+3"

    def count(self, text: str) -> Tokens:
        return Tokens(len(text) // 4 + MESSAGE_TOKENS - BLOCK_TOKENS - PART_TOKENS)


def outcomes(
    chat: Chat, policy: str, cap: int, meter: Meter, vectors: Vectors | None = None
) -> Iterator[Outcome]:
    """All questions of a chat put to one policy under one cap; with `vectors` recall ranks by them too."""
    gauge = Gauge(meter=meter, bound=meter)
    if policy == RECALL_ONLY:
        yield from _recalled(chat, cap, gauge, vectors)
    else:
        yield from _under_policy(chat, policy, cap, gauge, vectors)


def _recalled(chat: Chat, cap: int, gauge: Gauge, vectors: Vectors | None) -> Iterator[Outcome]:
    whole = {each.place: _block(each, each.text) for each in chat.messages}
    cut = {
        each.place: _block(each, cut_text(each.text, KEEP_CHARS, each.place))
        for each in chat.messages
        if len(each.text) > KEEP_CHARS
    }
    records = (
        Record(
            each.place,
            each.voice,
            each.text,
            gauge.measure(whole[each.place]),
            gauge.measure(cut[each.place]) if each.place in cut else None,
        )
        for each in chat.messages
    )
    memory = Memory(records, vectors)
    for asked in chat.asked:
        found = memory.recall(asked.text, cap)
        blocks = [(whole if each.keep is None else cut)[each.position] for each in found]
        tokens = sum(gauge.measure(block) for block in blocks)
        yield Outcome(chat, asked, RECALL_ONLY, cap, *held(blocks, chat, asked), tokens)


@dataclass(slots=True)
class _Run:
    """A chat on its way through a policy. `at_cap` says that the policy stopped: no later turn was made."""

    policy: Policy
    prompt: EpochPrompt
    gauge: Gauge
    cap: int
    at_cap: bool = False
    written: int = 0
    memory: Memory = field(default_factory=Memory)
    entries: dict[int, Entry] = field(default_factory=dict)
    """What the chat has said so far, by place."""

    def take(self, entry: Entry, voice: Voice) -> None:
        """The next message of the chat."""
        cut = None
        if chars(entry) > KEEP_CHARS:
            cut = self._size(entry, KEEP_CHARS)
        self.entries[entry.position] = entry
        record = Record(entry.position, voice, entry_text(entry), self._size(entry, None), cut)
        self.memory.add(record)

    def _size(self, entry: Entry, keep: int | None) -> int:
        return sum(self.gauge.measure(block) for block in render_entry(entry, "recalled", keep))

    def choose(self, fresh: list[Entry]) -> Decided:
        """What the policy chooses; the report and the recall that it wants are added to `fresh`."""
        mark = self.cap * MARK[0] // MARK[1]
        while True:
            choice = decide(
                self.policy,
                self.prompt,
                fresh,
                self.gauge,
                cap=self.cap,
                mark=mark,
                recall=CONVERSING,
                brought=self.entries,
            )
            match choice:
                case WantReport():
                    (what, *_) = by_rule(choice, self.gauge.measure)
                    self._write(fresh, what)
                case WantRecall():
                    found = self.memory.recall(
                        choice.query, choice.room, beside=choice.beside, shown=choice.shown
                    )
                    self._write(fresh, recalled(choice, found))
                case _:
                    return choice

    def _write(self, fresh: list[Entry], what: What) -> None:
        self.written += 1
        fresh.append(Entry(WRITTEN_FROM + self.written, fresh[-1].at_ms, 1, what))

    def blocks_with(self, fresh: list[Entry]) -> tuple[list[Block], int] | None:
        """The prompt that these entries would make, and its tokens; None at the cap."""
        choice = self.choose(fresh)
        if isinstance(choice, Full):
            return None
        growth = self._growth(choice, fresh)
        old = [] if growth.fresh_epoch is not None else self.prompt.blocks
        return [*old, *growth.blocks], growth.tokens

    def turn(self, fresh: list[Entry]) -> None:
        choice = self.choose(fresh)
        if isinstance(choice, Full):
            self.at_cap = True
        else:
            adopt(self.prompt, self._growth(choice, fresh))

    def _growth(self, choice: Extend | Rebuild, fresh: list[Entry]) -> Growth:
        named = [entry.what.found for entry in fresh if isinstance(entry.what, Recalled)]
        known = [*fresh, *(self.entries[at] for found in named for at in found)]
        if isinstance(choice, Rebuild):
            number = self.prompt.epoch + 1
            return new_epoch(self.prompt, choice, number, self.prompt.declaration, known, self.gauge)
        return grow(self.prompt, choice.picks, known, self.gauge)


def _under_policy(
    chat: Chat, name: str, cap: int, gauge: Gauge, vectors: Vectors | None
) -> Iterator[Outcome]:
    run = _Run(policy_named(name), first_prompt("", gauge), gauge, cap, memory=Memory((), vectors))
    fresh: list[Entry] = []
    for message in chat.messages:
        entry = _entry(message)
        fresh.append(entry)
        if message.voice == "person" and not run.at_cap:
            run.turn(fresh)
            if not run.at_cap:
                fresh = []
        run.take(entry, message.voice)
    for asked in chat.asked:
        last = Message(len(chat.messages) + 1, "person", asked.text)
        made = None if run.at_cap else run.blocks_with([*fresh, _entry(last)])
        # At its cap a transcript stops: what its last prompt held is what it can be asked about.
        blocks, tokens = made or (run.prompt.blocks, run.prompt.tokens)
        yield Outcome(chat, asked, name, cap, *held(blocks, chat, asked), tokens)


def _entry(message: Message) -> Entry:
    text = (Text(message.text),)
    what: What = PersonSaid(text) if message.voice == "person" else ModelAnswered(message.place, text, "end")
    return Entry(message.place, message.place * MESSAGE_MS, 1, what)


def _block(message: Message, text: str) -> Block:
    return Block("user", (Text(text),), "recalled", (message.place,))

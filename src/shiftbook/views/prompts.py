"""The prompt of one turn, made again from the journal and held against the digest that stands there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from shiftbook.codec import Row
from shiftbook.entries import AgentDeclared, ModelAsked
from shiftbook.errors import BadInput, Damaged
from shiftbook.journal.promises import PAGE_ROWS, Store
from shiftbook.messages import Json, Message, Part, Result, to_messages
from shiftbook.payload import part_to_plain
from shiftbook.prompt.epoch import EpochPrompt
from shiftbook.prompt.measure import Gauge
from shiftbook.verify.prompts import Prompts
from shiftbook.views.declared import Declared, declared
from shiftbook.views.rows import entries_of, opened


class BlockRow(TypedDict):
    """One block of a prompt: what it is, its tokens by the prompt's meter, the entries it was made from."""

    kind: str
    tokens: int
    entries: list[int]


class PromptView(TypedDict):
    """The prompt of a turn. `tokens` is what the journal says, by `meter`; `fixed` what stands before the
    blocks.

    `messages` are plain: `{"side": ..., "parts": [...]}`, parts as an entry keeps them, and
    `{"result": CALL, "content": [...]}` for an answer to a call.
    """

    turn: int
    policy: str
    cap: int
    tokens: int
    meter: str
    digest: str
    epoch: int
    fixed: int
    instructions: str
    tools: list[str]
    blocks: list[BlockRow]
    messages: list[dict[str, Json]]


@dataclass(frozen=True, slots=True)
class MadeAgain:
    """The prompt of a turn, made again and held against its digest.

    `asked_at` and `opened_at` are the positions of the request and of its epoch's opening.
    """

    asked: ModelAsked
    asked_at: int
    opened_at: int
    agent: AgentDeclared
    declared: Declared
    gauge: Gauge
    prompt: EpochPrompt


async def made_again(store: Store, run: str, turn: int | None) -> MadeAgain:
    """The prompt of turn `turn` as it was sent; of the newest turn for None.

    Raises `UnknownRun`, `BadInput` for a turn that was not asked, `Damaged` when what comes of the entries is
    not what was sent. Costs a look at the rows before the turn and the rendering of its epoch.
    """
    place = await _find(store, run, turn)
    asked_at, agent = place.asked, place.agent
    prompts = Prompts(store, run, after=place.epoch - 1, declaration=agent.declaration)
    asked: ModelAsked | None = None
    async for entry in entries_of(store, run, place.epoch - 1, asked_at):
        faults = await prompts.take(entry)
        if isinstance(entry.what, AgentDeclared):
            agent = entry.what
        if isinstance(entry.what, ModelAsked):
            asked = entry.what
        if faults and entry.position == asked_at:
            raise Damaged(
                f"Run {run}, entry {asked_at}: {faults[0].what}. `shiftbook verify {run}` tells more."
            )
    prompt = prompts.prompt
    if asked is None or prompt is None or asked.turn != place.turn:
        raise Damaged(f"Run {run} does not count its turns up; `shiftbook verify {run}` tells more.")
    agent_declared = await declared(store, run, prompt.declaration)
    gauge = agent_declared.gauge(asked.meter)
    return MadeAgain(asked, asked_at, place.epoch, agent, agent_declared, gauge, prompt)


async def prompt_view(store: Store, run: str, turn: int | None = None) -> PromptView:
    """The prompt of turn `turn`, of the newest for None, as it was sent; raises what `made_again` raises."""
    made = await made_again(store, run, turn)
    asked, agent, prompt, gauge = made.asked, made.agent, made.prompt, made.gauge
    return PromptView(
        turn=asked.turn,
        policy=agent.policy,
        cap=agent.cap,
        tokens=asked.tokens,
        meter=asked.meter,
        digest=asked.digest,
        epoch=prompt.epoch,
        fixed=gauge.fixed,
        instructions=made.declared.instructions,
        tools=[tool.name for tool in made.declared.tools],
        blocks=[
            {"kind": block.kind, "tokens": gauge.measure(block), "entries": list(block.entries)}
            for block in prompt.blocks
        ],
        messages=[_message(message) for message in to_messages(prompt.blocks)],
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a turn was asked, where its epoch was opened, and the agent as declared before that."""

    turn: int
    asked: int
    epoch: int
    agent: AgentDeclared


async def _find(store: Store, run: str, turn: int | None) -> _Place:
    turns, asked, after, epoch = 0, 0, 0, 1
    agent_row: Row | None = None
    before_epoch: Row | None = None
    opening: tuple[int, Row | None] = (epoch, before_epoch)
    while rows := await store.entries.read(run, after, PAGE_ROWS):
        for row in rows:
            if row.kind == "AgentDeclared":
                agent_row = row
            elif row.kind == "EpochOpened":
                epoch, before_epoch = row.position, agent_row
            elif row.kind == "ModelAsked":
                turns, asked = turns + 1, row.position
                opening = epoch, before_epoch
                if turns == turn:
                    return await _place(store, run, turns, asked, *opening)
        after = rows[-1].position
    if turn is None and turns:
        return await _place(store, run, turns, asked, *opening)
    told = "no turn was asked yet" if not turns else f"turns 1 to {turns} were asked"
    raise BadInput(f"Run {run} has no {'prompt' if turn is None else f'turn {turn}'}: {told}.")


async def _place(
    store: Store, run: str, turn: int, asked: int, epoch: int, before_epoch: Row | None
) -> _Place:
    agent = AgentDeclared("", "", "", "", 0)
    if before_epoch is not None:
        what = (await opened(store, run, before_epoch)).what
        agent = what if isinstance(what, AgentDeclared) else agent
    return _Place(turn, asked, epoch, agent)


def _message(message: Message) -> dict[str, Json]:
    return {"side": message.side, "parts": [_part(part) for part in message.parts]}


def _part(part: Part) -> Json:
    if isinstance(part, Result):
        plain: dict[str, Json] = {
            "result": part.call,
            "content": [part_to_plain(each) for each in part.content],
        }
        return plain | {"error": True} if part.is_error else plain
    return part_to_plain(part)

"""Asking the model: choose, announce, ask, record.

A turn has one `ModelAsked`, written before the request is sent. Attempts at it that fail are `ModelFailed`
entries; a reply that is cut half-way is `ModelInterrupted` with the part that came, which was paid for and
is shown to the model; a whole reply is `ModelAnswered` and is never asked for again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shiftbook.economics.closed_forms import spread
from shiftbook.economics.price_book import known_prices
from shiftbook.entries import (
    EpochOpened,
    ModelAnswered,
    ModelAsked,
    ModelFailed,
    ModelInterrupted,
    ReportAsked,
    Warned,
    What,
)
from shiftbook.errors import AgentMistake, ProviderFault, StoreError
from shiftbook.journal.promises import Snapshot
from shiftbook.messages import (
    AssistantPart,
    CallDelta,
    First,
    Reply,
    ReplyEvent,
    Request,
    Text,
    TextDelta,
)
from shiftbook.policies.decide import decide
from shiftbook.projections.knowledge import needed
from shiftbook.prompt.brief import BRIEF_KINDS
from shiftbook.prompt.epoch import (
    Choice,
    Decided,
    Full,
    Growth,
    Rebuild,
    WantRecall,
    WantReport,
)
from shiftbook.prompt.grow import adopt, grow, new_epoch
from shiftbook.run.agent import BY_MODEL
from shiftbook.run.bring import bring_back, fetch_brought
from shiftbook.run.desk import Desk
from shiftbook.run.report import write_report
from shiftbook.run.sending import ERROR_CHARS_MAX, Part, attempt, failure, media_of, recorded, send
from shiftbook.run.step import Ask, AskAgain, EndPause

WISHES_MAX = 4
"""Reports and recalls that are made for one decision."""


async def ask(desk: Desk, act: Ask, snapshot: Snapshot | None = None) -> Full | None:
    """Journal the request of a new turn, unless mail came in or the cap is reached.

    The request itself is sent by `ask_again` right after: an announced request is no different from one
    that a dead process has announced. Returns `Full` when the policy cannot add anything.
    """
    try:
        choice = await _decided(desk)
    except StoreError:
        raise  # The database's, and it may have been a commit: another would hide what became of that one.
    except Exception:
        # What is staged has happened, the last action's answer among it: a prompt that cannot be made must
        # not take it along.
        await desk.book.commit()
        raise
    if isinstance(choice, Full):
        return choice
    if isinstance(choice, ReportAsked):
        # A snapshot is followed by a request of the run's own prompt; one that stands alone is none.
        await _announce(desk, [choice], snapshot if choice.extends else None)
        return None
    whats: list[What] = [Warned(what, detail) for what, detail in choice.warnings]
    growth: Growth
    fresh = [*desk.fresh, *desk.brought.values()]
    if isinstance(choice, Rebuild):
        number = desk.view.prompt_epoch + 1
        whats.append(EpochOpened(number, choice.reason, choice.head, choice.numbers))
        known = [*needed(desk.knowledge, BRIEF_KINDS.values()), *fresh]
        growth = new_epoch(desk.prompt, choice, number, desk.view.declaration, known, desk.gauge)
    else:
        if desk.view.prompt_epoch == 0:
            whats.append(EpochOpened(1, "start"))
        growth = grow(desk.prompt, choice.picks, fresh, desk.gauge, choice.made)
    whats.append(
        ModelAsked(
            turn=act.turn,
            blocks=choice.picks,
            digest=growth.digest,
            tokens=growth.tokens,
            meter=desk.gauge.meter_in_use,
        )
    )
    if await _announce(desk, whats, snapshot):
        adopt(desk.prompt, growth)
        desk.fresh.clear()
        desk.brought.clear()
    return None


async def _announce(desk: Desk, whats: Sequence[What], snapshot: Snapshot | None) -> bool:
    """Commit a request before it is sent, unless mail came in: then it has not been announced."""
    entries = await desk.book.commit_unless_mail(whats, snapshot=snapshot)
    if entries is None:
        desk.mail = True
        return False
    for entry in entries:
        desk.take(entry)
    desk.announced = True
    return True


async def _decided(desk: Desk) -> Decided | ReportAsked:
    """What the policy chooses, once it has the report and the older entries that it wants; or what has to be
    asked for the report.

    `AgentMistake` if it wants more and more.
    """
    await fetch_brought(desk)
    for _ in range(WISHES_MAX + 1):
        choice = _choose(desk)
        match choice:
            case WantReport():
                asked = await write_report(desk, choice)
                if asked is not None:
                    return asked
            case WantRecall():
                await bring_back(desk, choice)
            case _:
                return choice
    raise AgentMistake(
        f"The policy {desk.policy.name!r} wants one thing after another: it has to use what it is given."
    )


def _choose(desk: Desk) -> Choice:
    return decide(
        desk.policy,
        desk.prompt,
        desk.fresh,
        desk.gauge,
        cap=desk.agent.cap,
        mark=desk.agent.low_water,
        reason=_must_end(desk),
        knowledge=desk.knowledge,
        recall=desk.agent.recall_room,
        brought=desk.brought,
        gap_ms=desk.gap_ms,
        asks_reports=desk.agent.report == BY_MODEL,
        spread=_spread(desk),
    )


def _must_end(desk: Desk) -> str | None:
    """Why the epoch has to end now, None where it has not."""
    if desk.view.prompt_epoch == 0:
        return None
    if desk.prompt.declaration != desk.view.declaration:
        return "the agent changed"
    if desk.prompt.is_paused and not any(isinstance(e.what, ModelAnswered) for e in desk.fresh):
        # Its vendor's blocks end with work that has no result, and nothing but the vendor may stand there.
        return "a paused reply was not gone on with"
    return None


def _spread(desk: Desk) -> float | None:
    """What the policy needs of the prices of the model in use; None where the agent does not ask to save."""
    if not desk.agent.saving:
        return None
    name = desk.agent.model.name
    if name not in desk.spreads:
        prices = known_prices(name, None, desk.clock.now_ms())
        desk.spreads[name] = None if prices is None else spread(prices, desk.agent.cap)
    return desk.spreads[name]


async def ask_again(desk: Desk, act: AskAgain) -> None:
    """Send the journaled request of the open turn once, and record what came of it."""
    part: Part[ModelAnswered] = Part()

    def emit(event: ReplyEvent) -> None:
        if isinstance(event, TextDelta):
            part.text += event.text
        elif isinstance(event, CallDelta):
            part.calls += 1
        desk.watcher.delta(act.turn, act.attempt, event)

    async def receive() -> None:
        model = desk.agent.model
        reply = await send(desk, model, desk.prompt.tokens, act, request, emit)
        part.whole = _entry_of(desk, act, reply)

    async def request() -> Request:
        return request_of(desk, act, await media_of(desk))

    fault = await attempt(desk, receive(), part)
    if fault is not None:
        await _failed(desk, act, part, fault)
    elif part.whole is not None:  # A stop that came with the last piece cuts nothing off.
        _answered(desk, part.whole)
    elif part.text:
        _interrupted(desk, act, part, desk.why or "stopped by a person")
        await desk.book.commit()


def request_of(desk: Desk, act: AskAgain, blobs: Mapping[str, bytes]) -> Request:
    """The request of the open turn, as the journal has it; `blobs` holds the bytes of its media."""
    return Request(
        run=desk.book.run,
        turn=act.turn,
        attempt=act.attempt,
        model=desk.agent.model.name,
        instructions=desk.agent.told,
        tools=desk.schemas,
        blocks=First(desk.prompt.blocks),
        parameters=desk.agent.parameters,
        marks=(desk.prompt.first_end, desk.prompt.last_end),
        blob=blobs.__getitem__,
    )


def _entry_of(desk: Desk, act: AskAgain, reply: Reply) -> ModelAnswered:
    """The reply as the entry that it becomes. Raises `ProviderFault` for one that no entry can hold."""

    def made(parts: tuple[AssistantPart, ...]) -> ModelAnswered:
        model = reply.model if reply.model != desk.agent.model.name else None
        return ModelAnswered(act.turn, parts, reply.stop, reply.usage, model, act.attempt)

    return recorded(reply, f"{act.turn}", made)


def _answered(desk: Desk, what: ModelAnswered) -> None:
    """Stage the reply; it is committed with the announcement of what it asks for, or with the rest."""
    desk.note(what)
    if what.stop == "length":
        desk.note(Warned("reply cut", f"The reply of turn {what.turn} was cut at the output limit."))
    if what.stop == "refusal":
        desk.note(Warned("refusal", f"The model refused in turn {what.turn}."))


async def _failed(desk: Desk, act: AskAgain, part: Part[ModelAnswered], fault: ProviderFault) -> None:
    if part.text:
        _interrupted(desk, act, part, str(fault)[:ERROR_CHARS_MAX] or type(fault).__name__)
    else:
        ask = desk.view.ask
        error, retry_at = failure(desk, fault, 0 if ask is None else ask.tried)
        desk.note(ModelFailed(act.turn, act.attempt, error, retry_at, fault.status))
    await desk.book.commit()


def end_pause(desk: Desk, act: EndPause) -> None:
    """Close the request that was to go on with a reply that paused; the next one stands in a new epoch."""
    position = desk.prompt.picks[-1].last
    told = (
        f"Entry {position}, a reply that paused, was not gone on with by its vendor: the model begins anew."
    )
    desk.note(Warned("pause given up", told))
    desk.note(ModelInterrupted(act.turn, (), "the reply that paused could not be gone on with"))


def _interrupted(desk: Desk, act: AskAgain, part: Part[ModelAnswered], reason: str) -> None:
    desk.note(ModelInterrupted(act.turn, (Text(part.text),), reason, act.attempt))

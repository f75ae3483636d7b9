"""A recorded session as the other side of a live run: its replies, its tools' answers, its people, its clock.

The provider answers by turn number whatever the prompt is, a tool by the number of the call, so a run that
was cut off and resumed meets the same recording. What the recording does not hold is named as missing or
told as unknown, and is never made up: recorded token counts are of another prompt and are not passed on,
the text of a notice is not shown, and no notice becomes a person's words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from shiftbook import canonical
from shiftbook.clock import Clock
from shiftbook.entries import Author
from shiftbook.errors import NotCanonical, ProviderFault
from shiftbook.messages import (
    AssistantPart,
    Call,
    CallDelta,
    Emit,
    Json,
    Missing,
    Request,
    StopReason,
    Text,
    TextDelta,
    ToolSchema,
)
from shiftbook.messages import Reply as ModelReply
from shiftbook.sessions.normal import (
    Answer,
    CallPart,
    MissingPart,
    Notice,
    PersonText,
    Reply,
    Session,
    TextPart,
)
from shiftbook.tools.contract import CannotTell, Context, OutcomeUnknown, Output, Reconciled, Repeat, Tool

_STOPS: Mapping[str, StopReason] = {
    "end_turn": "end",
    "stop": "end",
    "stop_sequence": "end",
    "max_tokens": "length",
    "length": "length",
    "refusal": "refusal",
    "content_filter": "refusal",
    "pause_turn": "pause",
}


class RecordedClock:
    """The recording's stamps as the run's clock: moved on by what is delivered, and never back.

    Until something is delivered it stands at the recording's first stamp; where a stamp is missing the last
    one holds; a recording without stamps has the time of `base`. Waiting, chance and ids are those of `base`.
    """

    def __init__(self, session: Session, base: Clock) -> None:
        self._base = base
        self._replies, self._answers, first = _monotone(session)
        self._at_ms = first

    def now_ms(self) -> int:
        return self._base.now_ms() if self._at_ms is None else self._at_ms

    def steady_ms(self) -> float:
        return self._base.steady_ms()

    async def sleep_ms(self, duration_ms: float) -> None:
        await self._base.sleep_ms(duration_ms)

    def token(self, size: int) -> bytes:
        return self._base.token(size)

    def new_run_id(self) -> str:
        return self._base.new_run_id()

    def replied(self, turn: int) -> None:
        """The reply of `turn` was delivered."""
        self._move(self._replies[turn - 1])

    def answered(self, turn: int, number: int) -> None:
        """The answer to call `number` of `turn` was given."""
        self._move(self._answers[turn - 1][number - 1])

    def _move(self, at_ms: int | None) -> None:
        if at_ms is not None and self._at_ms is not None:
            self._at_ms = max(self._at_ms, at_ms)


class Recorded:
    """A model that says again what was recorded: turn 1 is the first recorded reply, `turns` is the last."""

    def __init__(
        self, session: Session, name: str = "recorded", *, clock: RecordedClock | None = None
    ) -> None:
        self._replies = session.replies
        self._clock = clock
        self.name = name
        self.turns = len(self._replies)

    async def reply(self, request: Request, emit: Emit) -> ModelReply:
        """The recorded reply of the request's turn; its usage is missing. Past the end: not to be retried."""
        if request.purpose == "report":
            raise ProviderFault("A recording writes no reports.", retryable=False)
        if not 1 <= request.turn <= len(self._replies):
            raise ProviderFault(
                f"The recording holds {len(self._replies)} replies and turn {request.turn} was asked for: "
                "there is nothing more to rerun.",
                retryable=False,
            )
        recorded = self._replies[request.turn - 1]
        parts = tuple(_part(part) for part in recorded.parts)
        if self._clock is not None:
            self._clock.replied(request.turn)
        for part in parts:
            if isinstance(part, Text):
                emit(TextDelta(part.text))
            elif isinstance(part, Call):
                emit(CallDelta(part.tool))
        await asyncio.sleep(0)
        return ModelReply(parts, _stop(recorded), model=recorded.model)


class RecordedTool:
    """A tool that gives the recorded answers, by the number of the call ("3.1": turn 3, first call).

    It takes any object of arguments and may be repeated safely. `OutcomeUnknown` where no answer was
    recorded.
    """

    repeat: Repeat = "safe"
    timeout_ms: int | None = None
    attempts = 1
    ends_when_cancelled = True

    def __init__(self, name: str, session: Session, clock: RecordedClock | None = None) -> None:
        self._replies = session.replies
        self._clock = clock
        self.name = name
        self.schema = ToolSchema(name, "Answers from a recording.", {"type": "object"})

    async def run(self, arguments: Mapping[str, Json], context: Context) -> Output:
        turn, number, answer = self._find(context.call)
        if answer is None:
            raise OutcomeUnknown(f"The recording holds no answer to call {context.call} of {self.name}.")
        if self._clock is not None:
            self._clock.answered(turn, number)
        content = tuple(
            Text(part.text) if isinstance(part, TextPart) else Missing(part.what) for part in answer.content
        )
        return Output(content or (Text(""),), is_error=bool(answer.is_error))

    async def ask(self, arguments: Mapping[str, Json], context: Context) -> Reconciled:
        return CannotTell()

    def _find(self, call: str) -> tuple[int, int, Answer | None]:
        first, _, second = call.partition(".")
        if not (first.isdecimal() and second.isdecimal()):
            return 0, 0, None
        turn, number = int(first), int(second)
        if not 1 <= turn <= len(self._replies):
            return turn, number, None
        reply = self._replies[turn - 1]
        if not 1 <= number <= len(reply.answers) or reply.calls[number - 1].tool != self.name:
            return turn, number, None
        return turn, number, reply.answers[number - 1]


def recorded_tools(session: Session, clock: RecordedClock | None = None) -> list[Tool]:
    """One tool for each name that the recording calls, in the order of first sight."""
    names = dict.fromkeys(call.tool for reply in session.replies for call in reply.calls)
    return [RecordedTool(name, session, clock) for name in names]


@dataclass(frozen=True, slots=True)
class Delivery:
    """Something for the inbox: its item id, the same in every rerun, its text, and whose it is."""

    item: str
    text: str
    author: Author


def recorded_deliveries(session: Session) -> list[list[Delivery]]:
    """For each turn, from 0 (before the first), what goes into the inbox when its reply has been delivered.

    People's texts come after the reply that they followed, also those written among its results. Where the
    next reply would follow with nothing said in between, a line by the recording itself says what stood
    there, so that the run goes on and nothing is put into a person's mouth.
    """
    gaps: list[tuple[list[str], list[str]]] = [([], [])]
    for step in session.steps:
        match step:
            case Reply():
                gaps.append(([], []))
            case PersonText() if step.text.strip():
                gaps[-1][0].append(step.text)
            case PersonText():
                gaps[-1][1].append("an empty message")
            case Notice():
                gaps[-1][1].append(step.what)
    deliveries: list[list[Delivery]] = []
    said = 0
    replies = session.replies
    for turn, (texts, notices) in enumerate(gaps):
        found = []
        for text in texts:
            said += 1
            found.append(Delivery(f"said-{said}", text, "person"))
        goes_on = turn < len(replies) and (turn == 0 or not replies[turn - 1].calls)
        if goes_on and not found:
            found.append(Delivery(f"goes-on-{turn}", _goes_on(turn, notices), "recording"))
        deliveries.append(found)
    return deliveries


def recorded_people(session: Session, turn: int) -> list[tuple[str, str, Author]]:
    """(item id, text, author) of what is due once the reply of `turn` was delivered; 0: before the first."""
    return [(due.item, due.text, due.author) for due in recorded_deliveries(session)[turn]]


def _goes_on(turn: int, notices: list[str]) -> str:
    verb = "continues" if turn else "begins"
    if not notices:
        return f"[The recording {verb} here with nothing said before the next reply.]"
    named = ", ".join(dict.fromkeys(notices))
    return f"[The recording {verb} here after: {named}. Its text is not shown.]"


def _part(part: TextPart | CallPart | MissingPart) -> AssistantPart:
    match part:
        case TextPart(text):
            return Text(text)
        case MissingPart(what):
            return Missing(what)
        case CallPart(id, tool, arguments, raw):
            return Call(id, tool, arguments, None if _says_the_same(arguments, raw) else raw)


def _says_the_same(arguments: Mapping[str, object] | None, raw: str | None) -> bool:
    try:
        return arguments is not None and canonical.encode(dict(arguments)) == raw
    except NotCanonical:
        return False


def _stop(reply: Reply) -> StopReason:
    if reply.calls:
        return "calls"
    return "end" if reply.stop is None else _STOPS.get(reply.stop, "other")


def _monotone(session: Session) -> tuple[list[int | None], list[list[int | None]], int | None]:
    """The stamps of replies and of their answers, missing ones filled from before, none before another."""
    replies: list[int | None] = []
    answers: list[list[int | None]] = []
    reached: list[int | None] = [None]
    for step in session.steps:
        reached.append(_later(reached[-1], step.at_ms))
        if isinstance(step, Reply):
            replies.append(reached[-1])
            answers.append([])
            for answer in step.answers:
                reached.append(_later(reached[-1], None if answer is None else answer.at_ms))
                answers[-1].append(reached[-1])
    return replies, answers, next((at_ms for at_ms in reached if at_ms is not None), None)


def _later(at_ms: int | None, other_ms: int | None) -> int | None:
    return at_ms if other_ms is None else other_ms if at_ms is None else max(at_ms, other_ms)

"""A recorded session as the other side: by number, named where something is missing, never made up."""

from __future__ import annotations

import asyncio
import threading

import pytest

from shiftbook.clock import SystemClock
from shiftbook.errors import ProviderFault
from shiftbook.messages import Call, CallDelta, Missing, ReplyEvent, Text, TextDelta, Usage
from shiftbook.providers.recorded import (
    Recorded,
    RecordedClock,
    RecordedTool,
    recorded_deliveries,
    recorded_people,
    recorded_tools,
)
from shiftbook.sessions.normal import (
    Answer,
    CallPart,
    MissingPart,
    Notice,
    PersonText,
    RecordedUsage,
    Reply,
    Session,
    Step,
    TextPart,
)
from shiftbook.tools.contract import Context, OutcomeUnknown, Output, contract_digest
from tests.providers.requests import ask


def a_session(*steps: Step) -> Session:
    return Session("test", "test.jsonl", 1, None, None, steps, (), 0, 0)


def a_reply(
    *parts: TextPart | CallPart | MissingPart,
    answers: tuple[Answer | None, ...] = (),
    at_ms: int | None = None,
    stop: str | None = None,
) -> Reply:
    usage = RecordedUsage(uncached=5, cache_read=0, cache_write=0, output=7)
    return Reply(at_ms, "model-1", parts, answers, usage, stop, None, 1)


def an_answer(*texts: str, at_ms: int | None = None, is_error: bool | None = None) -> Answer:
    return Answer(at_ms, tuple(map(TextPart, texts)), is_error, 1)


SESSION = a_session(
    PersonText(1_000, "Count the bolts.", 1),
    a_reply(
        MissingPart("reasoning"),
        TextPart("I look."),
        CallPart("a", "count", {"place": "A", "deep": 1}, '{"place": "A", "deep": 1}'),
        CallPart("a", "look", None, '{"place": '),
        CallPart("b", "count", {"x": 1}, '{"x":1}'),
        answers=(an_answer("3", at_ms=2_000), None, an_answer("no", at_ms=1_500, is_error=True)),
        at_ms=1_900,
        stop="tool_use",
    ),
    PersonText(2_500, "Also the nuts.", 2),
    a_reply(TextPart("There are 3."), at_ms=None, stop="end_turn"),
    Notice(9_000, "compaction summary", 3),
    Notice(9_000, "compaction summary", 3),
    Notice(9_000, "command output", 4),
    a_reply(
        CallPart("a", "count", {}),
        answers=(Answer(4_000, (MissingPart("image"),), False, 5),),
        at_ms=3_000,
        stop=None,
    ),
    a_reply(TextPart("Cut."), at_ms=3_500, stop="max_tokens"),
    a_reply(at_ms=5_000, stop="end_turn"),
    PersonText(6_000, "Thanks.", 6),
    PersonText(6_000, "Bye.", 7),
)


def a_context(call: str) -> Context:
    return Context("run", call, "tool", "key", 1, lambda: 0, print, threading.Event())


def answer(made: RecordedTool, call: str) -> Output:
    return asyncio.run(made.run({"any": "thing"}, a_context(call)))


def test_replies_come_by_turn_number_whatever_the_prompt():
    events: list[ReplyEvent] = []
    reply = ask(Recorded(SESSION), 1, emit=events.append)
    assert reply.parts == (
        Missing("reasoning"),
        Text("I look."),
        Call("a", "count", {"place": "A", "deep": 1}, '{"place": "A", "deep": 1}'),
        Call("a", "look", None, '{"place": '),
        Call("b", "count", {"x": 1}),
    )
    assert events == [TextDelta("I look."), CallDelta("count"), CallDelta("look"), CallDelta("count")]
    assert reply.model == "model-1"
    assert ask(Recorded(SESSION), 1, 4) == reply
    assert Recorded(SESSION).turns == 5
    assert [ask(Recorded(SESSION), turn).stop for turn in (1, 2, 3, 4, 5)] == [
        "calls",
        "end",
        "calls",
        "length",
        "end",
    ]


def test_recorded_counts_are_not_passed_off_as_ours():
    assert ask(Recorded(SESSION), 1).usage == Usage()


@pytest.mark.parametrize("turn", [0, 6])
def test_past_its_end_the_recording_says_so(turn):
    with pytest.raises(ProviderFault, match="holds 5 replies") as caught:
        ask(Recorded(SESSION), turn)
    assert not caught.value.retryable


def test_tools_answer_by_the_number_of_the_call():
    count, look = recorded_tools(SESSION)
    assert [count.name, look.name] == ["count", "look"]
    assert count.repeat == "safe"
    assert count.schema.parameters == {"type": "object"}
    assert contract_digest(count) != contract_digest(look)
    assert isinstance(count, RecordedTool)
    assert isinstance(look, RecordedTool)
    assert answer(count, "1.1") == Output((Text("3"),))
    assert answer(count, "1.3") == Output((Text("no"),), is_error=True)
    assert answer(count, "3.1") == Output((Missing("image"),))
    for made, call in [
        (look, "1.2"),  # no answer was recorded
        (look, "1.1"),  # another tool's call
        (count, "1.4"),
        (count, "1.0"),
        (count, "9.1"),
        (count, "0.1"),
        (count, "-1.1"),
        (count, "other"),
        (count, "1.1.1"),
    ]:
        with pytest.raises(OutcomeUnknown, match="holds no answer"):
            answer(made, call)


def test_an_empty_answer_is_an_empty_text():
    session = a_session(a_reply(CallPart("a", "quiet", {}), answers=(Answer(None, (), None, 1),)))
    (quiet,) = recorded_tools(session)
    assert isinstance(quiet, RecordedTool)
    assert answer(quiet, "1.1") == Output((Text(""),))


def test_people_speak_where_they_spoke_and_notices_never_pass_for_them():
    goes_on = (
        "[The recording continues here after: compaction summary, command output. Its text is not shown.]"
    )
    assert [recorded_people(SESSION, turn) for turn in range(6)] == [
        [("said-1", "Count the bolts.", "person")],
        [("said-2", "Also the nuts.", "person")],
        [
            ("goes-on-2", goes_on, "recording"),
        ],
        [],
        [
            (
                "goes-on-4",
                "[The recording continues here with nothing said before the next reply.]",
                "recording",
            )
        ],
        [("said-3", "Thanks.", "person"), ("said-4", "Bye.", "person")],
    ]


def test_a_recording_without_a_first_word_begins_all_the_same():
    session = a_session(Notice(None, "hook output", 1), PersonText(None, "  \n", 2), a_reply(TextPart("Hi.")))
    ((begins,), after) = recorded_deliveries(session)
    assert begins.author == "recording"
    assert (
        begins.text
        == "[The recording begins here after: hook output, an empty message. Its text is not shown.]"
    )
    assert after == []
    assert recorded_deliveries(a_session()) == [[]]


class StillClock(SystemClock):
    """A base clock that stands."""

    def now_ms(self) -> int:
        return 77


def test_the_clock_follows_what_is_delivered_and_never_goes_back():
    clock = RecordedClock(SESSION, StillClock())
    provider = Recorded(SESSION, clock=clock)
    count, _ = recorded_tools(SESSION, clock)
    assert isinstance(count, RecordedTool)
    seen = [clock.now_ms()]
    ask(provider, 1)
    seen.append(clock.now_ms())
    answer(count, "1.3")  # stamped before the answer above it in the file
    seen.append(clock.now_ms())
    answer(count, "1.1")
    seen.append(clock.now_ms())
    ask(provider, 2)  # without a stamp: the person's words before it are the last known time
    seen.append(clock.now_ms())
    ask(provider, 3)  # stamped before the notices above it
    seen.append(clock.now_ms())
    ask(provider, 1)
    seen.append(clock.now_ms())
    assert seen == [1_000, 1_900, 2_000, 2_000, 2_500, 9_000, 9_000]


def test_a_resumed_clock_shows_the_same_stamps():
    """What is shown depends on what is delivered, not on what this process has seen before."""
    whole, resumed = RecordedClock(SESSION, StillClock()), RecordedClock(SESSION, StillClock())
    for turn in (1, 2, 3):
        ask(Recorded(SESSION, clock=whole), turn)
    ask(Recorded(SESSION, clock=resumed), 3)
    assert whole.now_ms() == resumed.now_ms() == 9_000


def test_without_stamps_the_base_clock_shows_the_time():
    session = a_session(PersonText(None, "Hi.", 1), a_reply(TextPart("Hi.")))
    clock = RecordedClock(session, StillClock())
    ask(Recorded(session, clock=clock), 1)
    assert clock.now_ms() == 77
    assert len(clock.token(3)) == 3
    assert len(clock.new_run_id()) == 10

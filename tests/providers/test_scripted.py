"""A scripted model: the same at any time and in any process, and wrong in every way that is asked for."""

from __future__ import annotations

import asyncio

import pytest

from shiftbook.errors import ProviderFault
from shiftbook.messages import (
    Block,
    Call,
    CallDelta,
    Reply,
    ReplyEvent,
    Request,
    Result,
    Text,
    TextDelta,
    Usage,
)
from shiftbook.providers.scripted import PIECES_MAX, Scripted, call, calls, cut, fails, hangs, say
from tests.providers.requests import a_request, ask


def test_turns_are_found_by_number_not_by_memory():
    script = [call("count", {"b": 1, "a": [2]}, text="Let me see."), say("Done.")]
    for _ in range(2):  # a fresh provider each time, asked for the later turn first
        later, first = ask(Scripted(script), 2), ask(Scripted(script), 1)
        assert later.parts == (Text("Done."),)
        assert later.stop == "end"
        assert first.parts == (Text("Let me see."), Call("scripted-1-1", "count", {"b": 1, "a": [2]}))
        assert first.stop == "calls"
        assert list(first.parts[1].arguments or ()) == ["b", "a"]


def test_calls_of_one_reply_have_ids_of_their_own():
    reply = ask(Scripted([calls(call("a"), call("b", raw='{"x": NaN}'), text="Both.")], "mine"), 1)
    assert reply.parts == (
        Text("Both."),
        Call("mine-1-1", "a", {}),
        Call("mine-1-2", "b", None, '{"x": NaN}'),
    )
    assert reply.model == "mine"


def test_a_script_may_be_a_function_of_the_request():
    def script(request: Request) -> Reply:
        return say(f"turn {request.turn}, attempt {request.attempt}")

    assert ask(Scripted(script), 7, 2).parts == (Text("turn 7, attempt 2"),)


@pytest.mark.parametrize("turn", [0, 2, 9])
def test_a_script_that_has_run_out_is_a_fault_that_no_retry_mends(turn):
    with pytest.raises(ProviderFault, match=rf"has 1 steps and turn {turn} was asked for") as caught:
        ask(Scripted([say("only")]), turn)
    assert not caught.value.retryable


def test_faults_come_by_attempt_and_then_end():
    step = fails(times=2, status=529, retry_after_ms=7, then=cut(after="Half", then=say("Whole.")))
    provider = Scripted([step])
    for attempt in (1, 2):
        with pytest.raises(ProviderFault) as caught:
            ask(provider, 1, attempt)
        fault = caught.value
        assert (fault.status, fault.retryable, fault.retry_after_ms) == (529, True, 7)
    events: list[ReplyEvent] = []
    with pytest.raises(ProviderFault, match="in the middle") as caught:
        ask(provider, 1, 3, emit=events.append)
    assert events == [TextDelta("Half")]
    assert caught.value.retryable
    assert ask(provider, 1, 4).parts == (Text("Whole."),)


def test_a_fault_may_last_or_lead_nowhere():
    for attempt in (1, 50):
        with pytest.raises(ProviderFault) as caught:
            ask(Scripted([fails(times=None, status=401, retryable=False)]), 1, attempt)
        assert (caught.value.status, caught.value.retryable) == (401, False)
    with pytest.raises(ProviderFault, match="give the fault a `then`") as caught:
        ask(Scripted([fails()]), 1, 2)
    assert not caught.value.retryable


def test_a_hanging_reply_ends_with_its_cancellation_alone():
    events: list[ReplyEvent] = []

    async def scenario() -> Reply:
        provider = Scripted([hangs(part="A word", then=say("Now."))])
        task = asyncio.create_task(provider.reply(a_request(1), events.append))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await provider.reply(a_request(1, 2), events.append)

    assert asyncio.run(scenario()).parts == (Text("Now."),)
    assert events == [TextDelta("A word"), TextDelta("Now.")]


def test_what_streams_adds_up_to_the_reply_in_few_pieces():
    text = "word " * 50_000
    events: list[ReplyEvent] = []
    ask(Scripted([calls(call("a", {"x": "y" * 100}), call("b"), text=text)]), 1, emit=events.append)
    words = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(words) == text
    assert len(words) == PIECES_MAX
    written = [event for event in events if isinstance(event, CallDelta)]
    assert written[0] == CallDelta("a", "")
    assert "".join(each.arguments_text for each in written if each.tool == "a") == f'{{"x":"{"y" * 100}"}}'
    assert "".join(each.arguments_text for each in written if each.tool == "b") == "{}"


def test_usage_is_given_or_made_up_from_the_request_alone():
    given = Usage(uncached=1, cache_read=2, output=3)
    assert ask(Scripted([say("x", usage=given)]), 1).usage == given
    script = Scripted([say("x" * 40)] * 3)
    usage = ask(script, 1).usage
    assert usage == ask(script, 2, 5).usage
    assert usage.output == 11
    assert usage.cache_read is None, "what is not known is not zero"
    result = Block("user", (Result("1.1", (Text("r" * 400),)),))
    longer = Request("run", 1, 1, "model", "Be brief.", (), (*a_request(1).blocks, result))
    told = asyncio.run(script.reply(longer, lambda _: None)).usage
    assert told.uncached == (usage.uncached or 0) + 100


def test_check_sees_every_request_and_its_objection_is_raised():
    seen = []

    def check(request: Request) -> None:
        seen.append((request.turn, request.attempt))
        if request.turn == 2:
            raise AssertionError("a call without an answer")

    provider = Scripted([fails(then=say("one")), say("two")], check=check)
    with pytest.raises(ProviderFault):
        ask(provider, 1)
    ask(provider, 1, 2)
    with pytest.raises(AssertionError, match="without an answer"):
        ask(provider, 2)
    assert seen == [(1, 1), (1, 2), (2, 1)]

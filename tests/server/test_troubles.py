"""What goes wrong on cue reaches the vendors' clients as their own exceptions, counted as it happened."""

from __future__ import annotations

import threading
from email.utils import parsedate_to_datetime

import anthropic
import httpx2
import openai
import pytest

from shiftbook.providers.scripted import call, say
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.server import (
    Breaks,
    Cuts,
    Drops,
    Fails,
    Garbles,
    Gate,
    Hangs,
    Holds,
    Mistypes,
    ProviderServer,
    Resets,
    Turn,
    think,
)
from tests.server.bodies import CLAUDE, GPT, image, user
from tests.server.bodies import anthropic as anthropic_body
from tests.server.clients import CONTEXT, claude, gpt

WORDS = "All is well at the pumps, and the night was quiet."
HELLO = [{"role": "user", "content": "Hello."}]


def ask(wire: str, server: ProviderServer, *, streamed: bool = False, **more):
    """One request on a wire, read to its end: everything that came."""
    if wire == "anthropic":
        with claude(server, **more) as client:
            came = client.messages.create(model=CLAUDE, max_tokens=99, messages=HELLO, stream=streamed)
            return list(came) if streamed else came
    with gpt(server, **more) as client:
        if wire == "chat":
            came = client.chat.completions.create(model=GPT, messages=HELLO, stream=streamed)
        else:
            came = client.responses.create(model=GPT, input="Hello.", stream=streamed)
        return list(came) if streamed else came


STATUSES = [
    (400, anthropic.BadRequestError, openai.BadRequestError, "invalid_request_error"),
    (401, anthropic.AuthenticationError, openai.AuthenticationError, "authentication_error"),
    (403, anthropic.PermissionDeniedError, openai.PermissionDeniedError, "permission_error"),
    (404, anthropic.NotFoundError, openai.NotFoundError, "not_found_error"),
    (429, anthropic.RateLimitError, openai.RateLimitError, "rate_limit_error"),
    (500, anthropic.InternalServerError, openai.InternalServerError, "api_error"),
    (503, anthropic.ServiceUnavailableError, openai.InternalServerError, "api_error"),
    (529, anthropic.OverloadedError, openai.InternalServerError, "overloaded_error"),
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("status", "of_claude", "of_gpt", "kind"), STATUSES)
def test_a_status_becomes_the_clients_own_exception(status, of_claude, of_gpt, kind, streamed) -> None:
    with ProviderServer([Fails(status, "Not today.")] * 3) as server:
        with pytest.raises(of_claude, match="Not today") as caught:
            ask("anthropic", server, streamed=streamed)
        assert caught.value.type == kind
        assert caught.value.request_id == "req_000001"
        for wire in ("chat", "responses"):
            with pytest.raises(of_gpt, match="Not today") as other:
                ask(wire, server, streamed=streamed)
            assert other.value.status_code == status
    assert [(each.status, each.reply, each.count) for each in server.exchanges] == [(status, None, None)] * 3


def test_one_failure_with_the_clients_defaults_is_three_requests() -> None:
    """B18: a client's own retries multiply; the server counts them, and each says which it is."""
    script = [Fails(500, retry_after_s=0.001)] * 2 + [say("At last.")]
    with ProviderServer(script) as server:
        assert ask("anthropic", server, max_retries=2).content[0].text == "At last."
    assert [each.retry_count for each in server.exchanges] == [0, 1, 2]


def test_retry_after_comes_as_seconds_or_as_a_date_of_the_servers_clock() -> None:
    clock = SimulatedClock()
    script = [Fails(429, retry_after_s=7), Fails(429, retry_after_s=90, as_date=True), Fails(429)]
    with ProviderServer(script, clock=clock) as server:
        given = []
        for _ in script:
            with pytest.raises(anthropic.RateLimitError) as caught:
                ask("anthropic", server)
            given.append(caught.value.response.headers.get("retry-after"))
    assert given[0] == "7"
    assert given[1] is not None
    assert parsedate_to_datetime(given[1]).timestamp() == clock.now_ms() / 1000 + 90
    assert given[2] is None


def test_keys_and_models_are_checked() -> None:
    with ProviderServer([], keys={"right"}, models={"claude-other"}) as server:
        with pytest.raises(anthropic.AuthenticationError):
            ask("anthropic", server)
        with pytest.raises(openai.AuthenticationError) as caught:
            ask("chat", server)
        assert caught.value.code == "invalid_api_key"
        with pytest.raises(anthropic.NotFoundError, match=f"model: {CLAUDE}"):
            ask("anthropic", server, api_key="right")
        with pytest.raises(openai.NotFoundError) as missing:
            ask("responses", server, api_key="right")
        assert missing.value.code == "model_not_found"
    assert [each.rule for each in server.exchanges] == ["key", "key", "model", "model"]


def test_a_connection_that_hangs_is_not_closed_by_the_server() -> None:
    with ProviderServer([Hangs(say(WORDS))]) as server, pytest.raises(anthropic.APITimeoutError):
        ask("anthropic", server, timeout=httpx2.Timeout(60, read=0.2))


def test_a_plain_answer_waits_for_a_gate_in_its_middle_too() -> None:
    gate = Gate()
    with ProviderServer([Holds(say(WORDS), gate, "text")]) as server:
        reader = threading.Thread(target=ask, args=("chat", server))
        reader.start()
        assert gate.arrived.wait(60)
        assert server.exchanges[0].status is None
        gate.open()
        reader.join()
    assert server.exchanges[0].ended == "whole"


@pytest.mark.parametrize("wire", ["anthropic", "chat", "responses"])
def test_a_hanging_reply_was_made_and_never_arrives(wire: str) -> None:
    """The time-out is the client's own; nobody waits longer than that."""
    gate = Gate()
    with ProviderServer([Holds(Hangs(say(WORDS)), gate)]) as server:
        error = anthropic.APITimeoutError if wire == "anthropic" else openai.APITimeoutError
        with pytest.raises(error):
            ask(wire, server, timeout=httpx2.Timeout(60, read=0.01))
        assert gate.arrived.wait(60)
        gate.open()
    (exchange,) = server.exchanges
    assert exchange.reply == say(WORDS)
    assert exchange.count is not None
    assert exchange.count.prompt > 0
    assert exchange.status is None
    assert exchange.ended in ("left", "cut")


GONE = [(Resets(), False), (Drops(say(WORDS)), True), (Cuts(say(WORDS), "text"), True)]


@pytest.mark.parametrize(("turn", "made"), GONE)
@pytest.mark.parametrize("wire", ["anthropic", "chat", "responses"])
def test_a_lost_connection_tells_whether_a_reply_was_made(wire: str, turn: Turn, made: bool) -> None:
    error = anthropic.APIConnectionError if wire == "anthropic" else openai.APIConnectionError
    with ProviderServer([turn]) as server, pytest.raises((error, httpx2.RemoteProtocolError)):
        ask(wire, server)
    (exchange,) = server.exchanges
    assert (exchange.reply is not None) is made
    assert exchange.ended == "cut"


def test_a_refused_connection_is_no_request_and_the_server_comes_back() -> None:
    with ProviderServer([say(WORDS), say("Back.")]) as server, claude(server) as client:
        asked = {"model": CLAUDE, "max_tokens": 99, "messages": HELLO}
        client.messages.create(**asked)
        with server.refusing(), pytest.raises(anthropic.APIConnectionError):
            client.messages.create(**asked)
        assert client.messages.create(**asked).content[0].text == "Back."
    assert len(server.exchanges) == 2


def test_a_stream_is_cut_in_the_middle_of_a_calls_arguments() -> None:
    reply = call("lookup", {"id": "a long enough number, 1234567"}, text=WORDS)
    with ProviderServer([Cuts(reply, "call")] * 3) as server:
        came: list[str] = []
        with claude(server) as client:
            stream = client.messages.create(model=CLAUDE, max_tokens=99, messages=HELLO, stream=True)
            with pytest.raises(httpx2.RemoteProtocolError):
                came.extend(getattr(getattr(event, "delta", None), "partial_json", "") for event in stream)
        assert '{"id":"a long enough number, 1234567"}'.startswith("".join(came))
        assert 0 < len("".join(came)) < 38
        for wire in ("chat", "responses"):
            with pytest.raises(openai.APIConnectionError):
                ask(wire, server, streamed=True)
    assert [exchange.ended for exchange in server.exchanges] == ["cut"] * 3
    assert all(exchange.output is not None for exchange in server.exchanges)


@pytest.mark.parametrize("where", ["start", "reasoning", "text", "call", "end"])
@pytest.mark.parametrize("wire", ["anthropic", "responses"])
def test_every_place_of_a_stream_can_be_cut(wire: str, where) -> None:
    reply = think("Well, let me see.", call("lookup", {"id": 7}, text=WORDS))
    with ProviderServer([Cuts(reply, where)]) as server:
        error = httpx2.RemoteProtocolError if wire == "anthropic" else openai.APIConnectionError
        with pytest.raises(error):
            ask(wire, server, streamed=True)
    assert server.exchanges[0].ended == "cut"


def test_an_error_event_ends_a_stream_as_the_vendors_do_it() -> None:
    with ProviderServer([Breaks(say(WORDS), "text", message="Too many.")] * 4) as server:
        with pytest.raises(anthropic.APIStatusError, match="Too many") as caught:
            ask("anthropic", server, streamed=True)
        assert caught.value.type == "overloaded_error"
        with pytest.raises(openai.APIError, match="Too many"):
            ask("chat", server, streamed=True)
        last = ask("responses", server, streamed=True)[-1]
        assert (last.type, last.message) == ("error", "Too many.")
        with pytest.raises(anthropic.OverloadedError):
            ask("anthropic", server)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("wire", ["anthropic", "chat", "responses"])
def test_what_is_no_json_is_told_apart_from_a_lost_connection(wire: str, streamed: bool) -> None:
    with (
        ProviderServer([Garbles(say(WORDS), "text")]) as server,
        pytest.raises(ValueError, match=r"(?i)json|delim|expect|unterm"),
    ):
        ask(wire, server, streamed=streamed)
    assert server.exchanges[0].reply is not None


@pytest.mark.parametrize("wire", ["anthropic", "chat", "responses"])
def test_a_page_of_another_type_is_no_reply(wire: str) -> None:
    with ProviderServer([Mistypes(say(WORDS))]) as server:
        assert isinstance(ask(wire, server), str)


def test_the_first_byte_waits_for_the_gate_and_so_does_a_place_in_the_stream() -> None:
    first, middle = Gate(), Gate()
    came: list[str] = []
    with ProviderServer([Holds(Holds(say(WORDS), middle, "text"), first)]) as server:

        def read() -> None:
            with (
                claude(server) as client,
                client.messages.stream(model=CLAUDE, max_tokens=99, messages=HELLO) as stream,
            ):
                came.extend(stream.text_stream)

        reader = threading.Thread(target=read)
        reader.start()
        assert first.arrived.wait(60)
        assert server.exchanges[0].status is None
        first.open()
        assert middle.arrived.wait(60)
        assert len("".join(came)) < len(WORDS)
        middle.open()
        reader.join()
    assert "".join(came) == WORDS


def test_a_body_is_judged_before_the_script_is_asked() -> None:
    with ProviderServer([say("First.")]) as server, claude(server) as client:
        for body, refused_by in [
            (b"{", "json"),
            (b"[]", "json"),
            (b'{"a": NaN}', "json"),
            (b'{"a": "\\ud800"}', "json"),
            (b"{" + b" " * 32 * 1024 * 1024 + b"}", "size"),
        ]:
            answer = httpx2.post(
                f"{server.anthropic_url}/v1/messages",
                content=body,
                headers={"x-api-key": "any", "anthropic-version": "2023-06-01"},
                verify=CONTEXT,
            )
            assert answer.status_code in (400, 413)
            assert answer.json()["type"] == "error"
            assert server.exchanges[-1].rule == refused_by
        too_large = anthropic_body(user(image("%")))
        with pytest.raises(anthropic.BadRequestError, match="base64"):
            client.messages.create(**too_large)
        reply = client.messages.create(model=CLAUDE, max_tokens=9, messages=HELLO)
        assert reply.content[0].text == "First."
    assert server.exchanges[-1].raw.startswith(b"{")
    assert server.exchanges[-1].said["messages"] == HELLO


def test_an_idempotency_key_is_noted() -> None:
    with ProviderServer([say("Yes.")]) as server, gpt(server) as client:
        client.responses.create(model=GPT, input="Hello.", extra_headers={"Idempotency-Key": "run-7"})
    assert server.exchanges[0].idempotency_key == "run-7"

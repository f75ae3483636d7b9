"""The server listens on a free port of this machine alone, stops cleanly, and tells of a bad script."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import httpx2
import pytest

from shiftbook.errors import BadInput
from shiftbook.messages import Reply
from shiftbook.providers.scripted import say
from shiftbook.testing.server import Cuts, Exchange, Gate, Hangs, Holds, ProviderServer
from tests.server.bodies import GPT, anthropic, chat
from tests.server.clients import CONTEXT

HEADERS = {"authorization": "Bearer any"}


def ask(server: ProviderServer, body=None) -> httpx2.Response:
    return httpx2.post(
        f"{server.openai_url}/chat/completions", json=body or chat(), headers=HEADERS, verify=CONTEXT
    )


def connects(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def port_of(server: ProviderServer) -> int:
    return int(server.anthropic_url.rpartition(":")[2])


def test_several_run_at_once_each_with_its_own_script() -> None:
    with ProviderServer([say("One.")]) as one, ProviderServer([say("Two.")]) as two:
        words = [ask(each).json()["choices"][0]["message"]["content"] for each in (one, two)]
    assert words == ["One.", "Two."]


def test_it_listens_on_the_loopback_alone_and_frees_the_port() -> None:
    with ProviderServer([]) as server:
        assert connects("127.0.0.1", port_of(server))
        others = {str(each[4][0]) for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
        assert not any(connects(host, port_of(server)) for host in others if not host.startswith("127."))
        assert not connects("127.0.0.2", port_of(server))
    assert not connects("127.0.0.1", port_of(server))


def test_stopping_ends_what_still_waits_and_leaves_no_thread() -> None:
    before = threading.active_count()
    gate = Gate()
    server = ProviderServer([Holds(say("Late."), gate), Hangs(say("Never."))])
    server.start()
    lost: list[Exception] = []

    def ask_in_vain() -> None:
        try:
            ask(server)
        except httpx2.HTTPError as error:
            lost.append(error)

    waiting = threading.Thread(target=ask_in_vain)
    waiting.start()
    assert gate.arrived.wait(60)
    server.stop()
    waiting.join()
    assert len(lost) == 1
    assert server.exchanges[0].ended == "cut"
    assert threading.active_count() == before
    server.stop()
    gate.open()


def test_it_starts_once_and_can_be_started_again_when_stopped() -> None:
    with ProviderServer([say("One."), say("Two.")]) as server:
        with pytest.raises(BadInput, match="already"):
            server.start()
        ask(server)
    with server:
        assert ask(server).json()["choices"][0]["message"]["content"] == "Two."


def test_a_script_may_be_a_function_of_the_exchange() -> None:
    def echo(exchange: Exchange) -> Reply:
        return say(f"{exchange.number}: {exchange.said['messages'][-1]['content']}")

    with ProviderServer(echo) as server:
        ask(server)
        assert ask(server).json()["choices"][0]["message"]["content"] == "2: Hello."


def played(script, body=None, then=None) -> ProviderServer:
    """Run a server for one request, whatever becomes of it."""
    with ProviderServer(script) as server:
        with suppress(httpx2.HTTPError):
            ask(server, body)
        if then is not None:
            raise then
    return server


def test_a_script_that_has_run_out_or_fails_is_told_at_the_end() -> None:
    asked: list[Exchange] = []

    def broken(exchange: Exchange) -> Reply:
        asked.append(exchange)
        raise KeyError("no such key")

    with pytest.raises(BadInput, match="0 turns"):
        played([])
    with pytest.raises(KeyError, match="no such key"):
        played(broken)
    assert (asked[0].status, asked[0].rule) == (400, "script")
    with pytest.raises(BadInput, match="no reasoning"):
        played([Cuts(say("Words."), "reasoning")], chat(stream=True))


def test_the_fault_of_a_test_is_not_hidden_by_that_of_its_script() -> None:
    with pytest.raises(ZeroDivisionError):
        played([], then=ZeroDivisionError())


def test_a_place_that_is_not_served_is_not_found() -> None:
    with ProviderServer([]) as server:
        assert httpx2.get(f"{server.openai_url}/models", verify=CONTEXT).status_code == 404
        assert httpx2.post(f"{server.anthropic_url}/v1/complete", json={}, verify=CONTEXT).status_code == 404
    assert [each.rule for each in server.exchanges] == ["path", "path"]


def test_a_body_may_come_in_chunks() -> None:
    with ProviderServer([say("Yes.")]) as server:
        body = [b'{"model": "', GPT.encode(), b'", "messages": [{"role": "user", "content": "Hello."}]}']
        answer = httpx2.post(
            f"{server.openai_url}/chat/completions", content=iter(body), headers=HEADERS, verify=CONTEXT
        )
        assert answer.status_code == 200
    assert server.exchanges[0].raw == b"".join(body)


def test_what_is_no_http_gets_no_answer_and_does_no_harm() -> None:
    with ProviderServer([say("Yes.")]) as server:
        with socket.create_connection(("127.0.0.1", port_of(server))) as raw:
            raw.sendall(b"\x00\xff nonsense\r\n\r\n")
            assert raw.recv(10) == b""
        assert ask(server).status_code == 200


def test_the_same_script_gives_the_same_bytes() -> None:
    def run() -> list[object]:
        with ProviderServer([say("Yes.")] * 2) as server:
            body = anthropic()
            headers = {"x-api-key": "any", "anthropic-version": "1"}
            url = f"{server.anthropic_url}/v1/messages"
            return [httpx2.post(url, json=body, headers=headers, verify=CONTEXT).content for _ in range(2)]

    first, second = run(), run()
    assert first == second
    assert first[0] != first[1]

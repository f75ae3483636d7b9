"""One failed call is one HTTP request for vendors whose SDKs we do not install; a stream without an end.

Each runs where its SDK is installed (`pip install "pydantic-ai-slim[google,groq,mistral,cohere]"`), against a
server that answers every request with an error and counts.
"""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from shiftbook.errors import AgentMistake, ProviderFault
from shiftbook.messages import Text
from shiftbook.providers.bridge import Bridge
from tests.providers.wires import ask, request, user

VENDORS = {
    "cohere:command-a": "cohere",
    "google:gemini-3-pro": "google.genai",
    "groq:llama-4": "groq",
    "mistral:mistral-large-latest": "mistralai",
    "zai:glm-5": "openai",
}
WITHOUT_ADDRESS = {"cohere:command-a": "CO_BASE_URL", "groq:llama-4": "GROQ_BASE_URL"}
"""Vendors whose address pydantic-ai takes from the environment alone."""


BODY = b'{"error": {"message": "not now", "code": 500}, "message": "not now"}'


class Counted:
    """A server that answers everything with one status, and how often it was asked."""

    def __init__(self, status: int, body: bytes = BODY, kind: str = "application/json") -> None:
        counted = self
        self.requests: list[str] = []

        class Answer(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                counted.requests.append(self.path)
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_told: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def serving(found: Counted) -> Iterator[Counted]:
    thread = threading.Thread(target=found.server.serve_forever, args=(0.01,))
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


@pytest.fixture(params=[500, 429, 503])
def counted(request: pytest.FixtureRequest) -> Iterator[Counted]:
    with serving(Counted(request.param)) as found:
        yield found


def is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("reference", VENDORS)
def test_one_failed_call_is_one_http_request(reference, counted, monkeypatch):
    if not is_there(VENDORS[reference]):
        pytest.skip(f"the SDK {VENDORS[reference]} is not installed here")
    variable = WITHOUT_ADDRESS.get(reference)
    if variable is not None:
        monkeypatch.setenv(variable, counted.url)
    address = {} if variable is not None else {"base_url": counted.url}
    bridge = Bridge(reference, api_key="sk-test-key-1234", **address)
    with pytest.raises(ProviderFault) as caught:
        ask(bridge, request([user("Go.")]))
    assert len(counted.requests) == 1
    assert caught.value.retryable
    assert caught.value.status is not None


def test_bedrock_is_taken_with_its_clients_retries_off_and_refused_otherwise(counted):
    if not is_there("boto3"):
        pytest.skip("the SDK boto3 is not installed here")
    import boto3
    from botocore.config import Config
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    def model(**config: object) -> BedrockConverseModel:
        client = boto3.client(
            "bedrock-runtime",
            region_name="eu-central-1",
            endpoint_url=counted.url,
            aws_access_key_id="x",
            aws_secret_access_key="y",
            config=Config(**config),
        )
        return BedrockConverseModel("amazon.nova-pro-v1:0", provider=BedrockProvider(bedrock_client=client))

    with pytest.raises(AgentMistake, match="repeats failed requests"):
        Bridge(model()).check()
    with pytest.raises(ProviderFault) as caught:
        ask(Bridge(model(retries={"total_max_attempts": 1})), request([user("Go.")]))
    assert len(counted.requests) == 1
    assert caught.value.retryable


@pytest.mark.parametrize("ends", [True, False])
def test_a_chat_stream_without_a_finish_reason_is_cut_short(ends):
    """The connection ends in order, so only the missing word tells that more was to come."""
    choice = {"index": 0, "delta": {"content": "Half"}, "finish_reason": "stop" if ends else None}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    stream = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
    with serving(Counted(200, stream, "text/event-stream")) as server:
        bridge = Bridge("openai-chat:m", base_url=server.url)
        if ends:
            assert ask(bridge, request([user("Go.")])).parts == (Text("Half"),)
            return
        with pytest.raises(ProviderFault, match="ended before the reply did") as caught:
            ask(bridge, request([user("Go.")]))
    assert caught.value.retryable

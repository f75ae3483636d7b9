"""What goes wrong at a vendor, as one fault in one sentence; keys and references."""

from __future__ import annotations

import pytest

from shiftbook.errors import AgentMistake, AgentUnusable
from shiftbook.providers.capabilities import TABLE, UNKNOWN, capabilities
from shiftbook.providers.faults import fault_of, reported, retry_after_ms, struck
from shiftbook.providers.keys import checked_address
from shiftbook.providers.reference import provider_named


class Answered(Exception):
    def __init__(self, status, body=None, headers=None):
        super().__init__(f"Error code: {status}")
        self.status_code, self.body = status, body
        self.response = type("Response", (), {"headers": headers or {}})()


@pytest.mark.parametrize(
    ("status", "body", "headers", "retryable"),
    [
        (400, {"error": {"type": "invalid_request_error", "message": "bad"}}, {}, False),
        (401, None, {}, False),
        (402, None, {}, False),
        (403, None, {}, False),
        (404, None, {}, False),
        (408, None, {}, True),
        (409, None, {}, True),
        (413, None, {}, False),
        (422, None, {}, False),
        (429, {"error": {"type": "rate_limit_error", "message": "slow"}}, {}, True),
        (429, {"code": "insufficient_quota", "message": "no money"}, {}, False),
        (429, {"error": {"type": "insufficient_quota"}}, {}, False),
        (500, "<html>", {}, True),
        (501, None, {}, False),
        (502, None, {}, True),
        (529, None, {}, True),
        (400, None, {"x-should-retry": "true"}, True),
        (503, None, {"x-should-retry": "false"}, False),
    ],
)
def test_statuses(status, body, headers, retryable):
    fault = fault_of(Answered(status, body, headers), "m")
    assert (fault.status, fault.retryable) == (status, retryable)
    assert str(fault).startswith(f"m answered {status}: ")


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7_000),
        ({"retry-after": "0.25"}, 250),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1_500),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, 50_000),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0),
        (
            {
                "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT",
                "date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
            30_000,
        ),
    ],
)
def test_a_wait_is_read_in_seconds_milliseconds_or_as_a_date(headers, wait):
    assert retry_after_ms(headers, now_ms=10_000) == wait


@pytest.mark.parametrize(
    ("body", "status", "retryable"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, 529, True),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "x"}}, 400, False),
        ({"code": "server_error", "message": "x"}, 500, True),
        ({"code": "rate_limit_exceeded", "message": "x"}, 429, True),
        ({"code": "insufficient_quota", "message": "x"}, 429, False),
        ({"code": "invalid_prompt", "message": "x"}, None, False),
        ({"code": "something_new", "message": "x"}, None, True),
        ("not even JSON", None, True),
        ({}, None, True),
    ],
)
def test_faults_in_the_middle_of_a_stream_stand_for_a_status(body, status, retryable):
    fault = reported(body, "m")
    assert (fault.status, fault.retryable) == (status, retryable)


def test_no_key_gets_into_a_message():
    body = {
        "error": {"message": "Incorrect API key provided: sk-proj-ab***wxyz. (Bearer my-own-token)\nSee x"}
    }
    told = str(fault_of(Answered(401, body), "m", secrets=["my-own-token", ""]))
    assert "sk-proj" not in told
    assert "my-own-token" not in told
    assert "\n" not in told
    assert len(struck("x" * 5_000, [])) < 700


def test_an_sdks_own_trouble_is_told_by_kind():
    class APIConnectionError(Exception):
        pass

    class APITimeoutError(APIConnectionError):
        pass

    assert fault_of(APIConnectionError("Connection error."), "m").retryable
    assert "did not answer in time" in str(fault_of(APITimeoutError("x"), "m"))
    assert fault_of(ConnectionResetError("x"), "m").retryable
    assert "could not be read" in str(fault_of(KeyError("choices"), "m"))
    broken = fault_of(RuntimeError("a bug"), "m")
    assert not broken.retryable
    assert "RuntimeError: a bug" in str(broken)


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("anthropic:claude-sonnet-5-5", "anthropic:claude-sonnet-5-5"),
        ("openai:gpt-6-sol", "openai:gpt-6-sol"),
        ("openai-chat:org/model:free", "openai-chat:org/model:free"),
        ("bridge:google:gemini-3-pro", "bridge:google:gemini-3-pro"),
    ],
)
def test_a_reference_names_its_provider(reference, name):
    assert provider_named(reference).name == name


@pytest.mark.parametrize("reference", ["", "claude", "anthropic:", ":x", "gemini:x", "Anthropic:x"])
def test_a_reference_that_names_none_is_refused_in_one_sentence(reference):
    with pytest.raises(AgentMistake, match="names no model: write one of anthropic:MODEL"):
        provider_named(reference)


def test_an_address_with_a_password_is_refused():
    with pytest.raises(AgentUnusable, match="holds a password"):
        checked_address("https://me:secret@example.com/v1")
    assert checked_address("http://localhost:8000/v1") == "http://localhost:8000/v1"


@pytest.mark.parametrize(
    ("model", "cache", "reasoning"),
    [
        ("claude-sonnet-5-5", "markers", "signed"),
        ("us.anthropic.claude-opus-4-8-v1:0", "markers", "signed"),
        ("anthropic/claude-3-7-sonnet-latest", "markers", "signed"),
        ("claude-3-5-haiku-20241022", "markers", "none"),
        ("gpt-6-sol", "breakpoints", "encrypted"),
        ("gpt-5.6", "breakpoints", "encrypted"),
        ("gpt-5.10-mini", "breakpoints", "encrypted"),
        ("gpt-5.4", "key", "encrypted"),
        ("gpt-5.2", "key", "encrypted"),
        ("gpt-5", "key", "encrypted"),
        ("gpt-5-mini", "key", "encrypted"),
        ("gpt-5-chat-latest", "key", "none"),
        ("o4-mini", "key", "encrypted"),
        ("gpt-4o-mini", "key", "none"),
        ("deepseek-reasoner", "none", "none"),
        ("deepseek/deepseek-v4", "none", "field"),
        ("llama-4-claude-like", "none", "none"),
        ("", "none", "none"),
    ],
)
def test_rows_are_found_by_name(model, cache, reasoning):
    row = capabilities(model)
    assert (row.cache, row.reasoning) == (cache, reasoning)


def test_the_unknown_row_claims_nothing_and_every_row_can_be_reached():
    assert not UNKNOWN.images
    assert UNKNOWN.cache == UNKNOWN.reasoning == "none"
    assert all(row.reasoning_field for row in TABLE if row.reasoning == "field")
    names = (
        "claude-3-5-haiku",
        "claude-x",
        "gpt-6",
        "gpt-5.4",
        "gpt-4o",
        "gpt-5",
        "deepseek-r1",
        "deepseek-v4",
        "kimi-k3",
        "glm-5",
        "mistral-large",
        "gemini-4",
    )
    reached = {capabilities(name).pattern for name in names}
    assert reached == {row.pattern for row in TABLE}

"""What servers answer: every kind of content in its place, and whatever else comes is recorded too."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbook.mcp.content import NO_CONTENT, read_answer
from shiftbook.messages import Media, Missing, Text

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_e10_media_become_blobs_and_no_base64_is_left() -> None:
    output = read_answer(
        {
            "content": [
                {"type": "image", "data": b64(PNG), "mimeType": "image/png"},
                {"type": "audio", "data": b64(b"RIFFsound"), "mimeType": "audio/wav"},
                {
                    "type": "resource",
                    "resource": {"uri": "file:///a", "blob": b64(b"\x00"), "mimeType": "x/y"},
                },
            ]
        }
    )
    assert output.content == (
        Media(hashlib.sha256(PNG).hexdigest(), "image/png", len(PNG)),
        Media(hashlib.sha256(b"RIFFsound").hexdigest(), "audio/wav", 9),
        Media(hashlib.sha256(b"\x00").hexdigest(), "x/y", 1, "file:///a"),
    )
    assert sorted(output.blobs.values()) == sorted([PNG, b"RIFFsound", b"\x00"])


def test_texts_and_resources_are_words_and_a_link_is_told_and_not_followed() -> None:
    output = read_answer(
        {
            "content": [
                {"type": "text", "text": "one"},
                {"type": "resource", "resource": {"uri": "file:///a", "text": "two"}},
                {"type": "resource_link", "uri": "file:///b", "name": "b", "size": 3},
            ]
        }
    )
    assert output.content == (
        Text("one"),
        Text("[Resource file:///a:]\ntwo"),
        Text('[A link to a resource, not read here: {"uri":"file:///b","name":"b","size":3}]'),
    )
    assert not output.is_error


def test_structured_content_is_not_told_twice_and_not_lost() -> None:
    structured = {"zebra": 1, "alpha": True}
    same = {"type": "text", "text": json.dumps({"alpha": True, "zebra": 1}, indent=2)}
    assert len(read_answer({"content": [same], "structuredContent": structured}).content) == 1
    # In JSON true is not 1.
    other = {"type": "text", "text": '{"alpha":1,"zebra":1}'}
    shown = read_answer({"content": [other], "structuredContent": structured}).content
    assert shown[1] == Text('{"zebra":1,"alpha":true}')


def test_an_error_is_an_error_and_nothing_is_told_as_nothing() -> None:
    assert read_answer({"content": [], "isError": True}).is_error
    assert read_answer({"content": []}).content == (Missing(NO_CONTENT),)


def test_what_is_not_base64_is_kept_as_it_came() -> None:
    output = read_answer({"content": [{"type": "image", "data": "not base64!", "mimeType": "image/png"}]})
    missing, media = output.content
    assert isinstance(missing, Missing)
    assert isinstance(media, Media)
    assert output.blobs[media.blob] == b"not base64!"


def test_a_server_that_asks_back_gets_a_failed_call() -> None:
    output = read_answer({"resultType": "input_required", "inputRequests": {}})
    assert output.is_error
    assert "asked for input" in output.content[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "answer",
    [None, 3, "words", [1, {"a": float("nan")}], {"content": "words"}, {"content": [{"type": "hologram"}]}],
)
def test_f5_what_mcp_does_not_describe_is_recorded_as_it_came(answer: Any) -> None:
    (part,) = read_answer(answer).content
    assert isinstance(part, Text)
    assert any(word in part.text for word in ("null", "3", "words", "nan", "hologram"))


@given(JSON | st.fixed_dictionaries({"content": st.lists(JSON | st.fixed_dictionaries({"type": JSON}))}))
def test_no_answer_whatever_makes_it_raise_or_come_out_empty(answer: Any) -> None:
    assert read_answer(answer).content

"""Whatever a tool returns is recorded: the odd, the hostile and the huge too."""

from __future__ import annotations

import dataclasses
import decimal
import enum
import hashlib
import json
import pathlib
import types
import uuid
from collections import OrderedDict, deque, namedtuple
from datetime import UTC, datetime, timedelta
from typing import Any

import pydantic
import pytest

from shiftbook import canonical, codec
from shiftbook.entries import ActionFinished
from shiftbook.messages import Media, Missing, Text
from shiftbook.tools.contract import Output
from shiftbook.tools.results import PAYLOAD_BYTES_MAX, File, Image, to_output
from tests.tools.recorded_values import read_back, text_of

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


class Level(enum.Enum):
    HIGH = "high"


class Loud(enum.StrEnum):
    YES = "yes"


class OwnText(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "not what it holds"


class OwnNumber(int):
    def __repr__(self) -> str:
        return "not a number"


@dataclasses.dataclass
class Shelf:
    place: str
    stock: dict[str, int]


class Order(pydantic.BaseModel):
    number: str
    paid: decimal.Decimal
    raw: bytes = b"\xff"


Point = namedtuple("Point", ["x", "y"])


class Array:
    """As numpy's: a buffer that gives a list."""

    def __init__(self, values: list[float], nbytes: int) -> None:
        self.values = values
        self.nbytes = nbytes

    def tolist(self) -> list[float]:
        return self.values

    def __repr__(self) -> str:
        return "array of many"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (2.5, "2.5"),
        ("", ""),
        ("words", "words"),
        (OwnText("what it holds"), "what it holds"),
        (b"plain bytes\n", "plain bytes\n"),
        (bytearray(b"\xc3\xa9"), "é"),
        (memoryview(b"ab"), "ab"),
        ({"zebra": 1, "alpha": [1, (2, 3)]}, '{"zebra":1,"alpha":[1,[2,3]]}'),
        ({1: "a", None: "b"}, '{"$map":[[1,"a"],[null,"b"]]}'),
        ({(1, 2): "pair"}, '{"type":"dict","items":[[[1,2],"pair"]]}'),
        ({OwnText("a"): 1, Loud.YES: 2}, '{"a":1,"yes":2}'),
        ({Level.HIGH: 1, "high": 2}, '{"type":"dict","items":[["high",1],["high",2]]}'),
        ({3, 1, 2}, "[1,2,3]"),
        (frozenset({"b", "a"}), '["a","b"]'),
        (deque([1, 2]), "[1,2]"),
        (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
        (types.MappingProxyType({"a": 1}), '{"a":1}'),
        (Point(1, 2), "[1,2]"),
        (OwnNumber(7), "7"),
        (2**60, '{"$int":"1152921504606846976"}'),
        (Level.HIGH, '"high"'),
        (Loud.YES, '"yes"'),
        (decimal.Decimal("1.50"), '{"$decimal":"1.50"}'),
        (datetime(2026, 1, 2, tzinfo=UTC), '{"$datetime":"2026-01-02T00:00:00+00:00"}'),
        (timedelta(days=1), '"1 day, 0:00:00"'),
        (pathlib.PurePosixPath("a/b"), '"a/b"'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Shelf("A", {"bolt": 3}), '{"place":"A","stock":{"bolt":3}}'),
        (
            Order(number="1", paid=decimal.Decimal("2.0")),
            '{"number":"1","paid":{"$decimal":"2.0"},"raw":{"$bytes":"/w=="}}',
        ),
        (Array([1.0, 2.0], 16), "[1.0,2.0]"),
        ([Array([1.0], 10**12)], '[{"type":"tests.tools.test_results.Array","repr":"array of many"}]'),
        (ValueError("no such order"), "ValueError: no such order"),
        ([ValueError("no")], '[{"type":"ValueError","message":"no"}]'),
        ([b"\xff"], '[{"$bytes":"/w=="}]'),
    ],
)
def test_every_kind_of_value_has_its_text(value, text):
    assert text_of(value) == text


def test_f5_nan_and_infinity_are_kept():
    text = text_of({"x": float("nan"), "y": float("inf")})
    assert text == '{"x":{"$float":"nan"},"y":{"$float":"inf"}}'


def test_f1_f3_nul_and_lone_surrogates_are_kept():
    for hostile in ("a\x00b", json.loads('"\\udc88"'), "\udc88\x00\u2028"):
        assert text_of(hostile) == hostile
        inside = text_of({hostile: [hostile]})
        assert canonical.decode(inside) == {hostile: [hostile]}


def test_e8_five_megabytes_are_kept_whole_as_a_blob():
    text = "0123456789" * 524_288
    output = to_output(text)
    assert output == Output((Text(text),))
    what = ActionFinished("1.1", "done", output.content)
    sealed = codec.seal([codec.draft(what)], after=0, head=b"", at_ms=[0], epoch=1, token=bytes)
    assert len(sealed.rows[0].payload) < 200
    assert codec.open_row(sealed.rows[0], sealed.blobs.__getitem__).what == what


def test_past_the_limit_the_beginning_is_kept_and_the_rest_is_named():
    output = to_output("é" * 60, payload_bytes_max=101)
    assert output.content == (
        Text("é" * 50),
        Missing("the rest of this text: 120 bytes in all, over the payload limit of 101 bytes"),
    )
    read_back(output)


@pytest.mark.parametrize(
    "value",
    [
        ["x" * 50, "y" * 90, "z"],
        [list(range(1_000))],
        {f"key {n}": n for n in range(1_000)},
        set(range(1_000)),
        {"deep": [{"deeper": ["x" * 500]}]},
        {"bytes": b"\xff" * 500},
        [10**500],
        {"x" * 500: 1},
    ],
)
def test_a_structure_past_the_limit_is_cut_in_place_and_says_so(value):
    output = to_output(value, payload_bytes_max=100)
    kept = [part.text for part in output.content if isinstance(part, Text)]
    assert sum(len(text.encode()) for text in kept) <= 100
    assert isinstance(output.content[-1], Missing)
    assert "over the payload limit of 100 bytes" in output.content[-1].what
    read_back(output)


def test_a_small_value_that_unfolds_to_a_huge_one_is_cut():
    bomb: object = "boom"
    for _ in range(40):
        bomb = [bomb] * 10
    output = to_output(bomb, payload_bytes_max=10_000)
    assert sum(len(part.text) for part in output.content if isinstance(part, Text)) <= 10_000
    assert isinstance(output.content[-1], Missing)


def test_media_alone_in_a_list_and_inside_a_value():
    alone = to_output(Image(PNG, name="shelf.png"))
    (part,) = alone.content
    assert isinstance(part, Media)
    assert (part.media_type, part.size, part.name) == ("image/png", len(PNG), "shelf.png")
    assert alone.blobs == {part.blob: PNG}

    listed = to_output(["Here:", Image(PNG), {"n": 1}, Missing("the other")])
    assert [type(each) for each in listed.content] == [Text, Media, Text, Missing]

    inside = to_output({"count": 1, "seen": File(b"%PDF-1.7", name="a.pdf")})
    text, media = inside.content
    assert text == Text(
        '{"count":1,"seen":{"type":"shiftbook.tools.results.File","given":"as part 1 after this text"}}'
    )
    assert isinstance(media, Media)
    assert media.media_type == "application/pdf"
    for output in (alone, listed, inside):
        read_back(output)


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"\x00\x01", "application/octet-stream"),
        (b"caf\xe9", "application/octet-stream"),
    ],
)
def test_bytes_that_are_no_text_are_media(content, media_type):
    (part,) = to_output(content).content
    assert isinstance(part, Media)
    assert part.media_type == media_type


def test_media_past_the_limit_is_named():
    output = to_output([Image(PNG, name="a.png"), "words"], payload_bytes_max=10)
    assert output.content == (
        Missing(f"a.png, {len(PNG)} bytes, over the payload limit of 10 bytes"),
        Text("words"),
    )
    assert output.blobs == {}


def test_a_file_is_read_by_its_path(tmp_path):
    (tmp_path / "note.txt").write_text("note")
    assert File.read(tmp_path / "note.txt", "text/plain") == File(b"note", "text/plain", "note.txt")


def test_an_output_is_passed_on_and_its_blobs_are_checked():
    blob = hashlib.sha256(PNG).hexdigest()
    given_ = Output(
        (Text("a"), Media(blob, "image/png", 28), Media("0" * 64, "image/gif", 1)), {blob: PNG}, True
    )
    output = to_output(given_)
    assert output.content == (
        Text("a"),
        Media(blob, "image/png", len(PNG)),
        Missing("image/gif, whose bytes the tool did not give"),
    )
    assert output.is_error
    forged = to_output(Output((Media("0" * 64, "image/png", 1),), {"0" * 64: PNG}))
    assert forged.blobs == {blob: PNG}


ILL_MADE: list[Any] = [
    (Output, 3),
    (Output, (3,)),
    (Output, (Media("", "", 3),), 4),
    (Text, 5),
    (Image, "no"),
]


@pytest.mark.parametrize("odd", [make(*fields) for make, *fields in ILL_MADE])
def test_an_ill_made_answer_is_recorded_too(odd):
    output = to_output(odd)
    assert output.content
    read_back(output)


def test_the_default_limit_holds():
    output = to_output("x" * (PAYLOAD_BYTES_MAX + 1))
    assert isinstance(output.content[0], Text)
    assert len(output.content[0].text) == PAYLOAD_BYTES_MAX
    assert isinstance(output.content[1], Missing)

"""Redaction at the door: no planted secret is written, whatever way it came; every entry stays readable."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbook import codec
from shiftbook.entries import (
    KINDS,
    ActionFinished,
    ActionStarted,
    AgentDeclared,
    EpochOpened,
    LimitReached,
    LineStruck,
    ModelAnswered,
    ModelAsked,
    ModelFailed,
    ModelInterrupted,
    PersonSaid,
    Pick,
    PlanChanged,
    PlanItem,
    Recalled,
    ReportAnswered,
    ReportAsked,
    ReportFailed,
    ReportLine,
    ReportWritten,
    RuleSet,
    RunEnded,
    RunOpened,
    RunRested,
    StatementMade,
    TallyChanged,
    Warned,
    What,
)
from shiftbook.errors import AgentMistake
from shiftbook.messages import Call, Media, Missing, Reasoning, Text, Usage
from shiftbook.redaction import COMMON, Pattern, Redaction, passes_luhn

SECRET = "SECRET-4711-x"
redaction = Redaction({"planted": r"SECRET-\d{4}-x"})


def sealed(what: What, redact: Redaction = redaction) -> tuple[str, What, Mapping[str, int]]:
    """Everything that is written for an entry, as one text, and the entry as it is read back."""
    made = codec.seal([codec.draft(what, redact)], after=0, head=b"", at_ms=[0], epoch=1, token=bytes)
    written = made.rows[0].payload + "".join(blob.decode() for blob in made.blobs.values())
    entry = codec.open_row(made.rows[0], made.blobs.__getitem__)
    return written, entry.what, entry.redacted


def call(raw: str | None = None, **arguments: Any) -> ModelAnswered:
    return ModelAnswered(1, (Call("1.1", "send", arguments or None, raw, {"id": "toolu_1"}),), "calls")


def call_of(what: What) -> Call:
    assert isinstance(what, ModelAnswered)
    (part,) = what.parts
    assert isinstance(part, Call)
    return part


def test_texts_keys_numbers_and_bytes_of_arguments():
    number = Redaction({"number": "4711"})
    what = call(
        to=f"a {SECRET} b", deep=[{f"k-{SECRET}": [SECRET, None, True, 1.5]}], raw_bytes=SECRET.encode()
    )
    _, back, counts = sealed(what)
    assert call_of(back).arguments == {
        "to": "a [redacted: planted] b",
        "deep": [{"k-[redacted: planted]": ["[redacted: planted]", None, True, 1.5]}],
        "raw_bytes": b"[redacted: planted]",
    }
    assert counts == {"planted": 4}
    _, back, counts = sealed(call(pin=4711, price=Decimal("47.11"), long=1_4711_0, many=10**700), number)
    assert call_of(back).arguments == {
        "pin": "[redacted: number]",
        "price": Decimal("47.11"),
        "long": "1[redacted: number]0",
        "many": 10**700,
    }
    assert counts == {"number": 2}


def test_keys_that_fall_together_keep_their_values():
    colliding: dict[str, Any] = {SECRET: 1, "SECRET-0000-x": 2, "[redacted: planted]": 3}
    what = call(**colliding)
    _, back, _ = sealed(what)
    assert call_of(back).arguments == {
        "[redacted: planted] (2)": 1,
        "[redacted: planted] (3)": 2,
        "[redacted: planted]": 3,
    }


@pytest.mark.parametrize(
    "raw",
    [
        '{"to": "SECRET-4711-x"}',
        '{"to": "\\u0053ECRET-47\\u0031\\u0031-x"}',
        '{"to": "SECRET-4711-x',
        '{"to": "\\u0053ECRET-4711-x',
        json.dumps({"body": json.dumps({"to": SECRET}).replace("S", "\\u0053")}),
        json.dumps(json.dumps(json.dumps({"to": "@"}))).replace("@", "\\\\\\\\u0053ECRET-4711-x"),
    ],
)
def test_secrets_behind_json_escapes_in_argument_text(raw):
    _, back, counts = sealed(call(raw))
    clean = call_of(back).raw or ""
    assert counts == {"planted": 1}
    assert "[redacted: planted]" in clean
    for _ in range(4):
        assert SECRET not in clean
        clean = clean.replace("\\\\", "\\").replace("\\u0053", "S").replace("\\u0031", "1")


def test_what_stands_around_a_secret_stays_to_the_letter():
    raw = '{"a":"\\u00e9\\n","b":"x\\u0053ECRET-4711-x\\ty","c":"\\ud83d\\ude00 C:\\\\new"}'
    _, back, _ = sealed(call(raw))
    assert call_of(back).raw == raw.replace("\\u0053ECRET-4711-x", "[redacted: planted]")


def test_a_secret_with_characters_that_json_escapes():
    redact = Redaction({"password": r'pa"ss\\w\n😀'})
    secret = 'pa"ss\\w\n😀'
    for text in (secret, json.dumps({"p": secret}), json.dumps({"p": secret}, ensure_ascii=False)):
        _, back, counts = sealed(ActionFinished("1.1", "done", (Text(text),)), redact)
        assert isinstance(back, ActionFinished)
        assert back.content[0] == Text(
            text.replace(json.dumps(secret)[1:-1], "[redacted: password]")
            .replace(json.dumps(secret, ensure_ascii=False)[1:-1], "[redacted: password]")
            .replace(secret, "[redacted: password]")
        )
        assert counts == {"password": 1}


def test_reasoning_is_sent_back_verbatim_or_not_at_all():
    parts = (Reasoning("Use it.", {"signature": SECRET}), Reasoning("Plain.", "s"), Text("Done."))
    _, back, counts = sealed(ModelAnswered(1, parts, "end", Usage(reasoning=3)))
    assert isinstance(back, ModelAnswered)
    assert back.parts == (
        Missing("reasoning, in which something was redacted"),
        Reasoning("Plain.", "s"),
        Text("Done."),
    )
    assert counts == {"planted": 1}


def test_a_payload_that_becomes_a_blob_is_clean_too():
    text = ("x" * 50 + SECRET) * 5_000
    written, back, counts = sealed(ActionFinished("1.1", "done", (Text(text),)))
    assert isinstance(back, ActionFinished)
    assert SECRET not in written
    assert counts == {"planted": 5_000}


def test_bytes_that_become_a_blob():
    content = b"\xff\x00" + SECRET.encode() + "é".encode() + b"\xfe"
    clean, counts = redaction.blob(content)
    assert clean == b"\xff\x00[redacted: planted]" + "é".encode() + b"\xfe"
    assert counts == {"planted": 1}


EXAMPLES: list[What] = [
    RunOpened("run", "agent.py:shop", "0.1.0", ("tag",)),
    AgentDeclared("agent.py:shop", "0" * 64, "model", "window", 1000, {"tool": "0" * 16}),
    PersonSaid((Text("a"), Media("0" * 64, "image/png", 5, "a"), Missing("a")), "person", "item-1"),
    RuleSet("a", "a", "author", item="item-1"),
    EpochOpened(1, "a", (Pick(1, 2, "cut", 3),), {"cap": 1}),
    ModelAsked(1, (Pick(1, 2, "cut", 3),), "0" * 64, 10, "bytes"),
    ModelFailed(1, 1, "a", 5, 500, "a"),
    ModelAnswered(1, (Text("a"), Call("1.1", "a", {"a": 1}, "a", {"a": "a"})), "calls", Usage(1, 2), "model"),
    ModelInterrupted(1, (Text("a"),), "a"),
    ActionStarted("1.1", "a", "key-1"),
    ActionFinished("1.1", "unknown", (Text("a"),), "a"),
    StatementMade("a", {"a": ["a"]}, "fact", "tool", (1,), "a", 3),
    PlanChanged((PlanItem("a", "a", "doing"),), "model", (1,)),
    TallyChanged("a", "add", 5, "observer", "a", (1,)),
    ReportWritten(1, 2, (ReportLine("a", (1,)),), "a", Usage(1)),
    ReportAsked((1, 2), "m", 900, "0" * 32, 10, "bytes", keep=40),
    ReportFailed(1, "a", 5, 500, "a"),
    ReportAnswered((Text("a"),), "end", Usage(1, 2), "model"),
    LineStruck(ReportLine("a", (1,)), "a"),
    Recalled("a", (1,), "a"),
    LimitReached("a", 5, 4),
    Warned("a", "a"),
    RunRested("limited", "a"),
    RunEnded("failed", "a"),
]
STAY = {
    "RunOpened": "run agent engine tags",
    "AgentDeclared": "agent declaration model policy cap contracts",
    "PersonSaid": "author item",
    "RuleSet": "author item",
    "EpochOpened": "epoch blocks numbers",
    "ModelAsked": "turn blocks digest tokens meter renderer",
    "ModelFailed": "turn attempt retry_at_ms status",
    "ModelAnswered": "turn stop usage model",
    "ReportAsked": "entries model chars digest tokens meter extends keep renderer",
    "ReportFailed": "attempt retry_at_ms status",
    "ReportAnswered": "stop usage model",
    "ActionStarted": "call key attempt",
    "ActionFinished": "call outcome",
    "StatementMade": "sort origin sources supersedes",
    "PlanChanged": "origin sources",
    "TallyChanged": "operation amount origin sources",
    "LimitReached": "value allowed",
    "RunRested": "state",
    "RunEnded": "state",
}


def test_there_is_an_example_of_every_kind():
    assert {type(what).__name__ for what in EXAMPLES} == set(KINDS)


@pytest.mark.parametrize("what", EXAMPLES, ids=lambda what: type(what).__name__)
def test_a_pattern_that_matches_everything_leaves_every_entry_readable(what):
    """What the journal relies on stays whatever the patterns say; all words of others are gone."""
    written, back, _ = sealed(what, Redaction({"all": r"[\s\S]+"}))
    assert type(back) is type(what)
    for name in STAY.get(type(what).__name__, "").split():
        assert getattr(back, name) == getattr(what, name), name
    assert '"a"' not in written


def test_the_input_is_left_as_it_is_and_nothing_found_changes_nothing():
    plain = {"content": [{"text": SECRET}], "args": {SECRET: [SECRET]}}
    before = copy.deepcopy(plain)
    clean, counts = redaction(plain)
    assert plain == before
    assert counts == {"planted": 3}
    assert SECRET not in json.dumps(clean)
    what = call(to="nothing to see \\u0053", number=5)
    assert sealed(what) == (sealed(what, Redaction({}))[0], what, {})


def test_only_the_group_named_secret_is_taken_out_and_overlaps_are_one():
    redact = Redaction({"password": r"password=(?P<secret>\w+)", "word": r"ord=hunter\d", "empty": r"q*"})
    assert redact({"text": "password=hunter2;"}) == (
        {"text": "passw[redacted: word];"},
        {"word": 1},
    )
    assert redact({"text": "password=other;"}) == (
        {"text": "password=[redacted: password];"},
        {"password": 1},
    )
    assert Redaction({"mark": "redacted", "a": "aaa"})({"text": "aaa"})[0] == {"text": "[redacted: a]"}


@pytest.mark.parametrize(
    ("name", "expression", "says"),
    [("a b", "x", "cannot be called 'a b'"), ("]", "x", "cannot be called"), ("open", "(", "not a regular")],
)
def test_patterns_that_cannot_work_are_refused(name, expression, says):
    with pytest.raises(AgentMistake, match=says):
        Redaction({name: expression})


KEY_BLOCK = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abcdef0123456789.x~y==;", "Authorization: Bearer [redacted: bearer-token];"),
        ("bearer of news", "bearer of news"),
        ("id AKIAIOSFODNN7EXAMPLE.", "id [redacted: aws-key-id]."),
        ("XAKIAIOSFODNN7EXAMPLE", "XAKIAIOSFODNN7EXAMPLE"),
        (f"aws_secret_access_key = {'aB3/' * 10}\n", "aws_secret_access_key = [redacted: aws-secret-key]\n"),
        (f"a {KEY_BLOCK} b", "a [redacted: private-key] b"),
        (KEY_BLOCK[:40], "[redacted: private-key]"),
        (json.dumps({"k": KEY_BLOCK}), '{"k": "[redacted: private-key]"}'),
        ("card 4111 1111 1111 1111, 12/29", "card [redacted: card-number], 12/29"),
        ("card 4111-1111-1111-1111", "card [redacted: card-number]"),
        ("card 4111111111111112", "card 4111111111111112"),
        ("3.4111111111111111", "3.4111111111111111"),
        ("1767225600000 ms", "1767225600000 ms"),
    ],
)
def test_common_patterns(text, clean):
    assert Redaction(COMMON)({"text": text})[0] == {"text": clean}


def test_common_patterns_are_added_to_one_s_own():
    redact = Redaction({**COMMON, "staff": Pattern(r"E-\d{4}", lambda found: found != "E-0000")})
    assert redact({"text": "E-0000 E-1234 AKIAIOSFODNN7EXAMPLE"}) == (
        {"text": "E-0000 [redacted: staff] [redacted: aws-key-id]"},
        {"staff": 1, "aws-key-id": 1},
    )


def test_luhn():
    assert passes_luhn("79927398713")
    assert not any(passes_luhn(f"7992739871{digit}") for digit in "012456789")


def escaped(draw: st.DrawFn, text: str) -> str:
    """The text as a JSON string's inside, some characters spelt as escapes that nobody would need."""
    spelt = draw(st.lists(st.booleans(), min_size=len(text), max_size=len(text)))
    return "".join(f"\\u{ord(char):04x}" if odd else char for char, odd in zip(text, spelt, strict=True))


words = st.text(st.characters(exclude_characters='"\\', exclude_categories=["C"]), max_size=6)


@st.composite
def planted(draw: st.DrawFn) -> What:
    """An entry with the secret somewhere that others can reach."""

    def around() -> str:
        return draw(words) + SECRET + draw(words)

    value: Any = around()
    for _ in range(draw(st.integers(0, 4))):
        value = draw(st.sampled_from([[value], {"k": value}, {around(): value}, (1, value)]))
    raw = (
        '{"k":"' + draw(words) + escaped(draw, SECRET) + draw(words) + draw(st.sampled_from(['"}', '"', ""]))
    )
    if draw(st.booleans()):
        raw = json.dumps(raw)
    kinds: list[What] = [
        call(raw),
        call(value=value),
        call(raw, value=value),
        ModelAnswered(1, (Call("1.1", SECRET, None, raw, {"v": value}), Reasoning(raw, value)), "calls"),
        ActionFinished("1.1", "failed", (Text(raw), Missing(around())), around()),
        ActionFinished("1.1", "done", (Text(around() + "x" * 70_000),)),
        PersonSaid((Text(around()), Media("0" * 64, "image/png", 1, around()))),
        StatementMade(around(), value, "fact", "tool", (), around()),
        PlanChanged((PlanItem(around(), around(), "open"),), "model"),
        ModelInterrupted(1, (Text(around()),), around()),
        ModelFailed(1, 1, around(), part=raw),
        Warned("a", around()),
        Recalled(around(), (), around()),
    ]
    return draw(st.sampled_from(kinds))


def unescaped(text: str) -> str:
    for code in {ord(char) for char in SECRET}:
        text = text.replace(f"\\u{code:04x}", chr(code))
    return text


@given(planted())
def test_a_planted_secret_is_never_written(what):
    written, back, counts = sealed(what)
    assert counts["planted"] >= 1
    assert type(back) is type(what)
    for _ in range(4):
        assert SECRET not in written
        written = unescaped(written).replace("\\\\", "\\")


@given(
    st.recursive(st.text() | st.integers() | st.none(), lambda v: st.lists(v) | st.dictionaries(st.text(), v))
)
def test_what_holds_no_secret_is_the_same(value):
    assert redaction({"args": {"v": value}, "value": value}) == ({"args": {"v": value}, "value": value}, {})

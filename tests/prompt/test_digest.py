"""Digests and the same bytes: in another process, another seed, zone and locale; and for ever."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from shiftbook import canonical
from shiftbook.entries import (
    ActionFinished,
    ModelAnswered,
    ModelAsked,
    ModelInterrupted,
    PersonSaid,
    Pick,
    What,
)
from shiftbook.messages import Block, Call, Media, Missing, Reasoning, Result, Text
from shiftbook.policies import Window
from shiftbook.prompt.digest import block_digest, block_text, chain, start
from shiftbook.prompt.grow import digested, rendered
from shiftbook.prompt.render import FORMS
from tests.prompt.shift import Shift
from tests.strategies import ODD_TEXTS, Answer, Turn, entries_of

ROOT = Path(__file__).resolve().parent.parent.parent
FIRST_RELEASE = "6ae4edfd1f340ca6474b08178b84a9de"
"""Everything that renderer 1 can say, digested. If it changes, journals of earlier releases do not verify."""
IMAGE = Media("ab" * 32, "image/png", 9)


def eventful() -> Shift:
    """A run with every form and every odd text in it, over several epochs."""
    turns = []
    for text in ODD_TEXTS * 2:
        arguments = {"zebra": 1, "alpha": [text, 0.1, float("nan")], "$set": {"b": b"\x00", text: None}}
        parts = (
            Reasoning("hm", {"sig": text}),
            Text(text),
            Call("", "order", arguments),
            Call("", "gone", None, text),
        )
        answers: tuple[Answer, ...] = (("done", (Text(text * 90), IMAGE)), ("unknown", ()))
        turns.append(Turn(parts, answers=answers, order=(1, 0), after=((Text(text),),)))
        turns.append(Turn((Text(text),), cut_off=True, reason=text))
    shift = Shift(Window(), cap=3_500, mark=1_800)
    return shift.live([*turns, Turn((Text("x" * 90_000),), "length")])


def told(shift: Shift) -> str:
    """Everything that a prompt is made of, as text."""
    digests = [entry.what.digest for entry in shift.journal if isinstance(entry.what, ModelAsked)]
    return json.dumps([digests, [block_text(block) for block in shift.prompt.blocks]])


def test_the_same_bytes_in_another_process_seed_zone_and_locale():
    code = "from tests.prompt.test_digest import eventful, told; print(told(eventful()))"
    here = told(eventful())
    for seed, zone, locale in (("1", "Asia/Kathmandu", "C"), ("4242", "America/St_Johns", "tr_TR.UTF-8")):
        strange = {"PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": locale, "LANG": locale, "PYTHONUTF8": "0"}
        ran = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=os.environ | strange, capture_output=True, check=True
        )
        assert ran.stdout.decode("ascii").strip() == here


def test_renderer_1_says_for_ever_what_it_said_first():
    whats: list[What] = []
    for text in ODD_TEXTS:
        call = Call(
            "1.1", "order", {"zebra": 1, "alpha": [text, float("nan")], text: "v" * 90}, text, {"id": 1}
        )
        whats += [
            PersonSaid((Text(text), Missing(text)), author) for author in ("person", "author", "recording")
        ]
        whats += [ModelAnswered(1, (Reasoning(text, [text]), Text(text * 40), call), "calls")]
        whats += [ModelAnswered(1, (Text(text),), stop) for stop in ("end", "length", "pause")]
        whats += [ModelInterrupted(1, (Text(text * 40),), text * 50)]
        whats += [ActionFinished("1.1", o, (Text(text * 40), IMAGE)) for o in ("done", "failed")]
        whats += [ActionFinished("1.1", o, ()) for o in ("done", "cancelled", "unknown")]
    known = {entry.position: entry for entry in entries_of(whats)}
    forms = (
        ("whole", None),
        ("kept", None),
        ("cut", 33),
        ("quoted", None),
        ("quoted", 33),
        ("dropped", None),
    )
    recipe = [Pick(1, len(whats), form, keep) for form, keep in forms]
    assert {form for form, _ in forms} <= FORMS
    assert digested(start("d" * 64, 1), rendered(tuple(recipe), known, 1)) == FIRST_RELEASE


def test_a_digest_is_what_the_module_says_it_is():
    def h(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    block = Block("user", (Text("hé"), Result("1.1", (Text("ok"),), is_error=True)), "kind", (1, 2))
    said = '["user",[{"text":"hé"},{"result":"1.1","content":[{"text":"ok"}],"error":true}]]'
    assert block_text(block) == said
    assert block_digest(block) == h(said)
    assert start("abc", 1) == h("shiftbook prompt\nabc\n1\n")
    assert chain("a", "b") == h("a\nb\n")


def test_a_digest_covers_side_text_order_and_error_but_not_how_it_came_about():
    one = Block("user", (Text("a"), Text("b")))
    same = Block("user", (Text("a"), Text("b")), "other", (9,))
    assert block_digest(one) == block_digest(same)
    others = [
        Block("assistant", one.parts),
        Block("user", (Text("b"), Text("a"))),
        Block("user", (Text("ab"),)),
        Block("user", (Text("a\nb"),)),
        Block("user", (Result("1.1", (Text("a"), Text("b"))),)),
        Block("user", (Result("1.1", (Text("a"), Text("b")), is_error=True),)),
        Block("assistant", (Call("1.1", "t", {"a": 1, "b": 2}),)),
        Block("assistant", (Call("1.1", "t", {"b": 2, "a": 1}),)),
    ]
    assert len({block_digest(block) for block in [one, *others]}) == len(others) + 1


def test_another_declaration_or_renderer_begins_another_chain():
    assert len({start("a", 1), start("b", 1), start("a", 2)}) == 3


@given(st.lists(st.text(st.characters()), max_size=4), st.booleans())
def test_a_block_put_together_is_the_canonical_text_of_the_whole(words: list[str], is_error: bool) -> None:
    content = tuple(Text(text) for text in words)
    result: dict[str, object] = {"result": "1.1", "content": [{"text": text} for text in words]}
    if is_error:
        result["error"] = True
    block = Block("user", (Result("1.1", content, is_error), *content))
    assert block_text(block) == canonical.encode(["user", [result, *({"text": text} for text in words)]])

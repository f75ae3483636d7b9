"""Promise P2's ground: a count never passes the bound, is the same each time, and takes any text."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbook.tokens import REMEMBERED_CHARS, BpeMeter, ByteMeter, Meter, Remembering, Tokens, bound, size

METERS: list[Meter] = [ByteMeter(), BpeMeter()]

hostile = st.one_of(
    st.text(),
    st.text(st.characters()),
    st.text(st.sampled_from("\ud83d\ude00\udc80 a\x00\n\t\u0301\u200d\ufeff\uffff\U0010ffff库"), max_size=40),
    st.lists(st.sampled_from(["<|endoftext|>", "<|im_start|>", "<|endofprompt|>", "'LL", " ", "\r\n"])).map(
        "".join
    ),
    st.builds(lambda unit, times: unit * times, st.text(st.characters(), max_size=3), st.integers(0, 5000)),
)


@given(hostile)
def test_a_count_lies_between_nothing_and_the_bound_and_stays(text: str) -> None:
    for meter in METERS:
        count = meter.count(text)
        assert count == meter.count(text)
        assert (count > 0) == bool(text)
        assert count <= bound(text)


@given(hostile, hostile)
def test_the_bound_of_the_parts_is_the_bound_of_the_whole(a: str, b: str) -> None:
    assert bound(a) + bound(b) == bound(a + b)


@pytest.mark.parametrize(
    ("text", "bytes_", "tokens"),
    [
        ("", 0, 0),
        ("hello world", 11, 2),
        (" " * 16, 16, 1),
        ("1234567", 7, 3),
        ("<|endoftext|>", 13, 7),
        ("\U0001f600", 4, 1),
        ("\ud83d\ude00", 12, BpeMeter().count("\\ud83d\\ude00")),
        ("a\udc80", 7, BpeMeter().count("a\\udc80")),
    ],
)
def test_known_texts(text: str, bytes_: int, tokens: int) -> None:
    """o200k's counts of short texts, as three independent packages give them (decision record 0001)."""
    assert size(text) == bytes_
    assert bound(text) == ByteMeter().count(text) == bytes_
    assert BpeMeter().count(text) == tokens


@pytest.mark.parametrize("unit", ["a", " ", "^", "\n", "库", "\udc80", "<|endoftext|>"])
def test_five_megabytes_in_one_piece_are_counted(unit: str) -> None:
    """A merge that is quadratic in the piece, or a pattern that recurses, would not come back."""
    text = unit * (5_000_000 // size(unit))
    assert 0 < BpeMeter().count(text) <= bound(text) <= 5_000_000


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_compiled_half_waits_for_the_first_count_and_comes_alone() -> None:
    """The package's own `__init__` would cost half a second on the way to the first model call."""
    loaded = "print(*sorted(name for name in sys.modules if name.startswith('bpe_openai')));"
    before = "import sys, shiftbook.tokens as t; m = t.BpeMeter(); t.bound('a'); t.ByteMeter().count('a');"
    assert run(before + loaded) == ""
    assert run(before + "m.count('a');" + loaded) == "bpe_openai._bindings"


@pytest.mark.parametrize("first", ["import bpe_openai", "import bpe_openai._bindings", ""])
def test_the_meter_and_the_package_stand_each_other_in_one_process(first: str) -> None:
    program = (
        f"{first}\nfrom shiftbook.tokens import BpeMeter\nours = BpeMeter().count('hello world')\n"
        "import bpe_openai\n"
        "print(ours, len(bpe_openai.get_encoding('o200k_base').encode_ordinary('hello world')))"
    )
    assert run(program) == "2 2"


def test_the_first_count_may_come_from_many_threads_at_once() -> None:
    program = (
        "import threading\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "from shiftbook.tokens import BpeMeter\n"
        "gate = threading.Barrier(8)\n"
        "def first(n):\n    gate.wait()\n    return BpeMeter().count('hello world')\n"
        "with ThreadPoolExecutor(8) as pool:\n    print(*pool.map(first, range(8)))"
    )
    assert run(program) == " ".join(["2"] * 8)


def test_threads_count_alike() -> None:
    texts = [f"order {n} packed \u5e93 {n * 7919}" for n in range(400)]
    alone = [BpeMeter().count(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(BpeMeter().count, texts)) == alone


class Counting:
    """A meter that keeps what it was asked."""

    name = "counting"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def count(self, text: str) -> Tokens:
        self.asked.append(text)
        return Tokens(len(text) + 1)


@given(st.lists(hostile, max_size=8))
def test_a_remembering_meter_counts_as_the_one_behind_it(texts: list[str]) -> None:
    behind = Counting()
    meter = Remembering(behind)
    assert [meter.count(text) for text in texts * 2] == [len(text) + 1 for text in texts * 2]
    assert meter.name == "counting"


def test_a_text_in_use_is_counted_once_and_one_that_is_not_is_forgotten() -> None:
    behind = Counting()
    meter = Remembering(behind)
    for number in range(20):
        meter.count("in use")
        meter.count(f"{number:02d}" + "x" * (REMEMBERED_CHARS // 4))
    assert behind.asked.count("in use") == 1
    held = sum(len(text) for text in {**meter._recent, **meter._earlier})
    assert held <= 2 * REMEMBERED_CHARS
    meter.count("00" + "x" * (REMEMBERED_CHARS // 4))
    assert behind.asked[-1].startswith("00")

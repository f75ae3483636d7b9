"""A folder of static vectors: sums of tokens in whole numbers, and one sentence for a bad folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbook.errors import BadInput
from shiftbook.vectors.static import GREATEST, METHOD, STEPS, TEXT_CHARS, Table, static_vectors
from tests.vectors.made import ROWS, folder_of, vectors

WIDTH = 8


def numbers(vector: bytes) -> list[int]:
    """A vector's numbers."""
    return [each - 256 if each > 127 else each for each in vector]


def test_a_text_is_the_direction_of_its_tokens_sum(tmp_path: Path) -> None:
    made = vectors(tmp_path / "v")
    assert numbers(made.of("boat")) == [127, 0, 0, 0, 64, -64, 0, 32]
    # Boat and vessel: 1.75, .25, 0, 0, 1, -.75, 0, .5, of which 1.75 becomes 127.
    assert numbers(made.of("Vessel and BOAT!")) == [127, 18, 0, 0, 73, -54, 0, 36]
    assert made.of("boat boat") == made.of("boat")


def test_what_is_not_known_says_nothing(tmp_path: Path) -> None:
    made = vectors(tmp_path / "v")
    nothing = bytes(WIDTH)
    assert [made.of(text) for text in ("", "zebra", "void", "\udc88\x00\ud800")] == [nothing] * 4
    assert made.of("zebra boat \udc88 \x00") == made.of("boat")
    # The tokenizer's own limit of three tokens is for models; ours is in characters.
    assert made.of("boat crates salt vessel") == made.of("vessel salt crates boat")
    assert made.of("boat " + " " * TEXT_CHARS + "salt") == made.of("boat")


sums = st.lists(st.lists(st.integers(-STEPS, STEPS), min_size=3, max_size=3), min_size=1, max_size=6)


@given(sums, st.randoms(use_true_random=False))
def test_the_sum_is_exact_in_any_order(rows: list[list[int]], chance: Any) -> None:
    table = Table(np.array(rows, np.int16))
    tokens = list(range(len(rows))) * 3
    total = [3 * sum(column) for column in zip(*rows, strict=True)]
    most = max(map(abs, total))
    exact = [_nearest(each * GREATEST, most) for each in total] if most else [0, 0, 0]
    chance.shuffle(tokens)
    assert numbers(table.direction(tokens)) == exact


def _nearest(above: int, below: int) -> int:
    """The nearest whole number, halves away from 0."""
    size = (2 * abs(above) + below) // (2 * below)
    return size if above > 0 else -size


def test_shared_rows_and_weights_as_model2vec_keeps_them(tmp_path: Path) -> None:
    words = ("[UNK]", "boat", "vessel", "salt")
    tensors = {
        "embeddings": np.array([[9, 9], [100, 0], [0, 50]], np.int8),
        "mapping": np.array([0, 1, 1, 2], np.int64),
        "weights": np.array([1.0, 0.5, 0.25, 1.0], np.float32),
    }
    made = static_vectors(folder_of(tmp_path / "v", tensors, words))
    assert numbers(made.of("boat")) == numbers(made.of("vessel")) == [127, 0]
    assert numbers(made.of("boat salt")) == [127, 127], "half of 100 and the whole of 50"
    assert numbers(made.of("vessel salt")) == [64, 127]


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_the_kind_of_number_in_the_table_makes_no_difference(tmp_path: Path, kind: str) -> None:
    table = np.array(list(ROWS.values()), kind)
    made = static_vectors(folder_of(tmp_path / "v", {"any.name": table}))
    assert made.of("boat salt") == vectors(tmp_path / "w").of("boat salt")


def test_the_name_is_that_of_the_files_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = vectors(tmp_path / "v").name
    assert vectors(tmp_path / "elsewhere").name == first
    assert first.startswith(f"static-{WIDTH}-")
    other = folder_of(tmp_path / "o", {"t": np.array(list(ROWS.values()), np.float16)})
    assert static_vectors(other).name != first
    words = tmp_path / "v" / "tokenizer.json"
    words.write_text(words.read_text() + "\n")
    assert static_vectors(tmp_path / "v").name != first
    monkeypatch.setattr("shiftbook.vectors.static.METHOD", METHOD + "x")
    assert vectors(tmp_path / "w").name != first


def test_a_tokenizer_by_another_name_is_taken_where_there_is_no_doubt(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "v")
    (folder / "tokenizer.json").rename(folder / "l2_tokenizer_config.json")
    assert static_vectors(folder).name == vectors(tmp_path / "w").name
    (folder / "tokenizer_more.json").write_text("{}")
    with pytest.raises(BadInput, match=r"no tokenizer\.json"):
        static_vectors(folder)


def _gone(folder: Path) -> Path:
    return folder / "nowhere"


def _two(folder: Path) -> Path:
    (folder / "other.safetensors").write_bytes(b"")
    return folder


def _no_words(folder: Path) -> Path:
    (folder / "tokenizer.json").unlink()
    return folder


def _odd_words(folder: Path) -> Path:
    (folder / "tokenizer.json").write_text("{}")
    return folder


def _odd_table(folder: Path) -> Path:
    (folder / "model.safetensors").write_bytes(b"\x00" * 40)
    return folder


def _a_folder_for_a_file(folder: Path) -> Path:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()
    return folder


def _with(**tensors: Any) -> Callable[[Path], Path]:
    return lambda folder: folder_of(folder, tensors)


def _brain(folder: Path) -> Path:
    """A table of a kind that numpy has no name for."""
    head = json.dumps({"t": {"dtype": "BF16", "shape": [6, 2], "data_offsets": [0, 24]}}).encode()
    (folder / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + bytes(24))
    return folder


ROW = np.ones((6, 2), np.float32)


@pytest.mark.parametrize(
    ("breaks", "told"),
    [
        (_gone, "There is no folder"),
        (_two, "holds 2 files"),
        (_no_words, "no tokenizer.json"),
        (_odd_words, "no tokenizer that can be read"),
        (_odd_table, "no safetensors file that can be read"),
        (_a_folder_for_a_file, "cannot be read: Is a directory"),
        (_brain, "as BF16"),
        (_with(), "holds nothing"),
        (_with(a=ROW, b=ROW), r"holds a \[6, 2\], b \[6, 2\]"),
        (_with(a=ROW[0]), r"holds a \[2\]"),
        (_with(a=ROW, bias=ROW[0]), "bias"),
        (_with(a=ROW[:5]), "has 5 rows and the tokenizer beside it 6 tokens"),
        (_with(a=ROW[:, :0]), "no columns"),
        (_with(a=ROW * 0), "none but 0"),
        (_with(a=ROW * np.inf), "not finite"),
        (_with(a=ROW * np.nan), "not finite"),
        (_with(a=ROW, mapping=np.arange(6)[:5]), "5 rows"),
        (_with(a=ROW, mapping=np.arange(1, 7)), "names rows"),
        (_with(a=ROW, mapping=np.ones(6, np.float32)), "names rows"),
        (_with(a=ROW, weights=np.ones(5, np.float32)), "5 weights"),
    ],
)
def test_h14_a_folder_that_does_not_fit_gets_one_sentence(
    tmp_path: Path, breaks: Callable[[Path], Path], told: str
) -> None:
    folder = breaks(folder_of(tmp_path / "v"))
    with pytest.raises(BadInput, match=told) as fault:
        static_vectors(folder)
    assert "\n" not in str(fault.value)
    assert str(fault.value).endswith(".")


def test_a_tokenizer_whose_numbers_have_gaps_has_to_fit_by_its_greatest(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "v", {"t": ROW[:3]}, ("[UNK]", "boat", "salt"))
    words = folder / "tokenizer.json"
    told = json.loads(words.read_text())
    told["model"]["vocab"]["salt"] = 9
    words.write_text(json.dumps(told))
    with pytest.raises(BadInput, match="3 rows and the tokenizer beside it 10 tokens"):
        static_vectors(folder)


@pytest.mark.parametrize("package", ["numpy", "safetensors", "tokenizers"])
def test_without_the_extra_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    folder = folder_of(tmp_path / "v")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BadInput, match=rf"\({package}\): run `pip install 'shiftbook\[embeddings\]'`"):
        static_vectors(folder)

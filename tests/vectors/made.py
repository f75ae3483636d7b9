"""Tiny static vectors, made here: a table of a few words, its tokenizer, and both as a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from shiftbook.vectors.static import StaticVectors, static_vectors

ROWS: Mapping[str, tuple[float, ...]] = {
    "[UNK]": (2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0),
    "boat": (1.0, 0.0, 0.0, 0.0, 0.5, -0.5, 0.0, 0.25),
    "vessel": (0.75, 0.25, 0.0, 0.0, 0.5, -0.25, 0.0, 0.25),
    "crates": (0.0, 0.0, 1.0, -0.5, 0.0, 0.0, 0.25, 0.0),
    "salt": (0.0, 0.25, 0.75, -0.5, 0.0, 0.0, 0.5, 0.0),
    "void": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
}
"""Words and their rows; alike are boat and vessel, and crates and salt."""


def folder_of(
    folder: Path, tensors: Mapping[str, Any] | None = None, words: Sequence[str] = tuple(ROWS)
) -> Path:
    """A folder with these tensors, by default the table of `ROWS`, and a tokenizer of words."""
    folder.mkdir(exist_ok=True)
    table = {"embeddings": np.array(list(ROWS.values()), np.float32)}
    save_file(dict(tensors if tensors is not None else table), folder / "model.safetensors")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer(words)), encoding="utf-8")
    return folder


def tokenizer(words: Sequence[str]) -> dict[str, Any]:
    """A tokenizer that knows these words in small letters, the first as what stands for all others."""
    return {
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0},
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": {word: place for place, word in enumerate(words)},
            "unk_token": words[0],
        },
    }


def vectors(folder: Path) -> StaticVectors:
    """The vectors of `ROWS`."""
    return static_vectors(folder_of(folder))


class Counted:
    """Vectors of any text, by its letters: whole numbers that no table is needed for."""

    def __init__(self, name: str = "letters") -> None:
        self.name = name
        self.made: list[str] = []

    def of(self, text: str) -> bytes:
        self.made.append(text)
        return bytes(min(text.count(letter), 127) for letter in "abdeijklnorst42h")

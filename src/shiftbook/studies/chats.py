"""Long chats with questions, and the messages that were labelled as the evidence for each answer.

One form for all sources. A message keeps its place in the chat, from 1, which is its name here; the labels
are places. Nothing of a source is kept in this repository: a study is given a path.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from shiftbook.errors import BadInput

FILE_BYTES_MAX = 256 * 1024 * 1024
"""The largest file of a data set that is read, unpacked."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a chat. `at` is its date as the source writes it."""

    place: int
    voice: Literal["person", "reply"]
    text: str
    at: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A labelled question: its type in the source's words, and the places of its evidence, in order."""

    type: str
    text: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation and its questions. `part` says whether the constants of recall were tuned on it.

    `skipped` are questions without usable labels, `mended` those whose labels an audit replaced.
    """

    source: Literal["beam", "locomo"]
    size: str
    name: str
    part: Literal["tuned", "untouched"]
    messages: tuple[Message, ...]
    asked: tuple[Asked, ...]
    skipped: int = 0
    mended: int = 0


def load_json(path: Path) -> Any:
    """A JSON file, gzip or not. `BadInput` when it is not one."""
    try:
        return json.loads(load_text(path))
    except ValueError:
        raise BadInput(f"{path} is not JSON; give a folder of LoCoMo, or of BEAM with its index.") from None


def load_text(path: Path) -> str:
    """A text file, gzip or not. `BadInput` when it cannot be read as one."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if packed else path.open("rb") as content:
            raw = content.read(FILE_BYTES_MAX + 1)
        if len(raw) > FILE_BYTES_MAX:
            raise BadInput(f"{path} is larger than {FILE_BYTES_MAX:,} bytes, which no such data set is.")
        return raw.decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read ({type(error).__name__}); name another file.") from None


def places(found: Iterable[int]) -> tuple[int, ...]:
    """Labels in order, each once."""
    return tuple(sorted(set(found)))

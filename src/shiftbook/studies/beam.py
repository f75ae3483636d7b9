"""Reads BEAM (arXiv 2510.27246): long chats in folders by size, and an index of questions with evidence.

`SIZE/CHAT/chat.json` is a list of batches of turns, `evidence_index.jsonl` one question a line, both gzip or
not. The mark that the generator left at the end of a person's message is no word of the chat and is taken
off. Questions without evidence (abstention has none by design) are counted and not asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from shiftbook.errors import BadInput
from shiftbook.studies.chats import Asked, Chat, Message, load_json, load_text, places

INDEX = "evidence_index.jsonl"
_MARK = re.compile(r"\s*->->[\s\d,.]*$")


def is_beam(folder: Path) -> bool:
    """Whether the folder holds the index of evidence."""
    return _file(folder, INDEX) is not None


def read_beam(folder: Path, sizes: frozenset[str] | None = None) -> Iterator[Chat]:
    """The chats of these sizes (all, unless named), the sizes in the order of the index."""
    index = _file(folder, INDEX)
    if index is None:
        raise BadInput(f"{folder} has no {INDEX}; give the folder of BEAM.")
    questions: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for number, line in enumerate(load_text(index).splitlines(), 1):
        try:
            row = json.loads(line)
            questions.setdefault((str(row["size"]), str(row["chat"])), []).append(row)
        except (ValueError, KeyError, TypeError):
            raise BadInput(f"{index}, line {number}, is no question with a size and a chat.") from None
    for (size, name), rows in questions.items():
        if sizes is None or size in sizes:
            path = _file(folder / size / name, "chat.json")
            if path is None:
                raise BadInput(f"{folder / size / name} has no chat.json, which {INDEX} names.")
            yield _chat(path, size, name, rows)


def part_of(size: str, name: str) -> Literal["tuned", "untouched"]:
    """The half on which the constants of recall were chosen: odd chats, and chats 3 and 6 of the size 1M."""
    if size == "1M":
        return "tuned" if name in ("3", "6") else "untouched"
    return "tuned" if name.isdigit() and int(name) % 2 else "untouched"


def _chat(path: Path, size: str, name: str, rows: list[dict[str, Any]]) -> Chat:
    try:
        messages, by_id = _messages(load_json(path))
        asked = [
            Asked(
                str(row["type"]),
                str(row["question"]),
                places(by_id[label] for label in row["evidence_ids"] if label in by_id),
            )
            for row in rows
        ]
    except (KeyError, TypeError, AttributeError):
        raise BadInput(f"{path} is not laid out as a chat of BEAM.") from None
    usable = tuple(each for each in asked if each.evidence)
    return Chat("beam", size, name, part_of(size, name), messages, usable, len(asked) - len(usable))


def _messages(batches: Any) -> tuple[tuple[Message, ...], dict[Any, int]]:
    messages: list[Message] = []
    by_id: dict[Any, int] = {}
    at = ""
    for batch in batches:
        at = batch.get("time_anchor") or at
        for turn in batch["turns"]:
            for each in turn:
                at = each.get("time_anchor") or at
                is_person = each["role"] == "user"
                text = _MARK.sub("", each["content"]) if is_person else each["content"]
                place = len(messages) + 1
                by_id.setdefault(each["id"], place)
                messages.append(Message(place, "person" if is_person else "reply", text, at))
    return tuple(messages), by_id


def _file(folder: Path, name: str) -> Path | None:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    return None

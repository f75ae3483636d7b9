"""Reads LoCoMo: conversations of two people over months, with questions and the turns that answer them.

Both speakers are persons to us. A turn is told as `Name: words`, with the caption of a photo that was shared.
Where the audit of wrong labels (`errors.json`, github.com/dial481/locomo-audit) lies beside, its evidence
takes the place of the published one. Category 5 asks for what was never said and is left out; labels that
are malformed are split at `D1:3`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from shiftbook.errors import BadInput
from shiftbook.studies.chats import Asked, Chat, Message, load_json, places

AUDIT = "errors.json"
TYPES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
"""The asked categories by the names that the paper gives them."""

TUNED = frozenset({"conv-26", "conv-30", "conv-41"})
"""The conversations on which the constants of recall were chosen."""

_LABEL = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)")


def is_locomo(folder: Path) -> bool:
    """Whether the folder holds conversations of this form."""
    return bool(_files(folder))


def read_locomo(folder: Path) -> Iterator[Chat]:
    """The conversations of every file in the folder."""
    mended = _audit(folder / AUDIT)
    for path in _files(folder):
        try:
            for each in load_json(path):
                yield _chat(each, mended)
        except (KeyError, TypeError, AttributeError):
            raise BadInput(f"{path} is not laid out as LoCoMo.") from None


def part_of(name: str) -> Literal["tuned", "untouched"]:
    """Whether the constants of recall were chosen on this conversation."""
    return "tuned" if name in TUNED else "untouched"


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*locomo*.json") if path.name != AUDIT)


def _audit(path: Path) -> dict[tuple[str, int, str], list[str]]:
    """Right labels by question number, question and the labels that they replace.

    The audit numbers conversations by their place in the full file, which a part of it does not tell.
    """
    if not path.is_file():
        return {}
    try:
        found = {}
        for row in load_json(path):
            number = int(row["question_id"].rpartition("_qa")[2])
            cited = " ".join(_labels(row["cited_evidence"]))
            if row.get("correct_evidence"):
                found[row["question"], number, cited] = _labels(row["correct_evidence"])
        return found
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BadInput(f"{path} is not laid out as the audit of LoCoMo.") from None


def _chat(each: Mapping[str, Any], audit: Mapping[tuple[str, int, str], list[str]]) -> Chat:
    messages, by_label = _messages(each["conversation"])
    asked: list[Asked] = []
    skipped = mended = 0
    for number, row in enumerate(each["qa"]):
        name = TYPES.get(row["category"])
        labels = _labels(row.get("evidence") or [])
        right = audit.get((row["question"], number, " ".join(labels)))
        evidence = places(by_label[label] for label in (right or labels) if label in by_label)
        if name is None or not evidence:
            skipped += 1
            continue
        mended += right is not None
        asked.append(Asked(name, row["question"], evidence))
    name = each["sample_id"]
    return Chat("locomo", "all", name, part_of(name), messages, tuple(asked), skipped, mended)


def _messages(conversation: Mapping[str, Any]) -> tuple[tuple[Message, ...], dict[str, int]]:
    messages: list[Message] = []
    by_label: dict[str, int] = {}
    numbers = sorted(int(found[1]) for key in conversation if (found := _SESSION.fullmatch(key)))
    for number in numbers:
        at = conversation.get(f"session_{number}_date_time", "")
        for turn in conversation[f"session_{number}"]:
            text = f"{turn['speaker']}: {turn['text']}"
            if turn.get("blip_caption"):
                text += f" [shares a photo: {turn['blip_caption']}]"
            place = len(messages) + 1
            by_label[turn["dia_id"]] = place
            messages.append(Message(place, "person", text, at))
    return tuple(messages), by_label


def _labels(evidence: list[str]) -> list[str]:
    return [label for each in evidence for label in _LABEL.findall(each)]

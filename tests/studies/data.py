"""Small made-up data in the layouts of BEAM and LoCoMo; nothing in it is from either."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

LONG = "The boat is called Marigold. " + "It needs new paint on the hull and the deck. " * 40


def beam(folder: Path) -> Path:
    """Two chats of size `tiny`: chat 1 (tuned) with three questions, chat 2 with one."""
    turns = [
        [message(0, "user", "My boat lies at pier seven. ->-> 1,1"), message(1, "assistant", LONG)],
        [message(2, "user", "Thanks!"), message(3, "assistant", "You are welcome.")],
        [
            message(4, "user", "The boat moved to pier nine today. ->-> 1,2"),
            message(5, "assistant", "Noted."),
        ],
    ]
    batches = [{"batch_number": 1, "time_anchor": "May-01-2024", "turns": turns}]
    write(folder / "tiny" / "1" / "chat.json.gz", batches)
    write(folder / "tiny" / "2" / "chat.json.gz", batches)
    rows = [
        asked("1", "knowledge_update", "At which pier is the boat?", [4, 0]),
        asked("1", "information_extraction", "What is the boat called?", [1]),
        asked("1", "abstention", "Who built it?", []),
        asked("1", "temporal_reasoning", "When did it move?", [77]),
        asked("2", "knowledge_update", "At which pier is the boat?", [4]),
    ]
    (folder / "evidence_index.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def locomo(folder: Path) -> Path:
    """One conversation of two sessions with three usable questions, one of them mended by the audit."""
    conversation = {
        "speaker_a": "Ann",
        "speaker_b": "Ben",
        "session_10_date_time": "9 May",
        "session_10": [said("Ann", "D10:1", "The cat is grey."), said("Ben", "D10:2", "Mine is white.")],
        "session_2_date_time": "8 May",
        "session_2": [{**said("Ben", "D2:1", "Look!"), "blip_caption": "a red kite"}],
    }
    qa: list[dict[str, Any]] = [
        {"question": "What colour is Ann's cat?", "evidence": ["D10:1"], "category": 4},
        {"question": "What flew?", "evidence": ["D10:2"], "category": 1},
        {"question": "Whose cats are there?", "evidence": ["D10:1; D10:2"], "category": 1},
        {"question": "Never said?", "evidence": ["D2:1"], "category": 5},
        {"question": "No label?", "evidence": ["D"], "category": 2},
    ]
    write(folder / "locomo.json", [{"sample_id": "conv-99", "conversation": conversation, "qa": qa}])
    right = {
        "question_id": "locomo_7_qa1",
        "question": "What flew?",
        "cited_evidence": ["D10:2"],
        "correct_evidence": ["D2:1"],
    }
    write(folder / "errors.json", [right])
    return folder


def message(number: int, role: str, content: str) -> dict[str, Any]:
    return {"id": number, "role": role, "content": content}


def asked(chat: str, kind: str, question: str, evidence: list[int]) -> dict[str, Any]:
    return {"size": "tiny", "chat": chat, "type": kind, "question": question, "evidence_ids": evidence}


def said(speaker: str, label: str, text: str) -> dict[str, Any]:
    return {"speaker": speaker, "dia_id": label, "text": text}


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)

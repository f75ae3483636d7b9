"""Recordings for the tests, written as Claude Code writes them; nothing in them comes from a real session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Tape:
    """A session file, line by line, each line linked to the one before and a second later."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def said(self, text: str, **more: Any) -> Tape:
        """A person's words, or what stands in their place."""
        return self._add("user", {"role": "user", "content": text}, more)

    def replied(self, *blocks: Line) -> Tape:
        """A reply."""
        number = sum(line["type"] == "assistant" for line in self.lines) + 1
        message = {"id": f"m{number}", "role": "assistant", "model": "heron-1", "content": list(blocks)}
        return self._add("assistant", message, {})

    def answered(self, call: str, text: str, *, error: bool = False) -> Tape:
        """The result of a call."""
        result = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": error}
        return self._add("user", {"role": "user", "content": [result]}, {})

    def write(self, path: Path) -> Path:
        """The file."""
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines), encoding="utf-8")
        return path

    def _add(self, kind: str, message: Line, more: Line) -> Tape:
        number = len(self.lines)
        parent = f"u{number - 1}" if number else None
        stamp = f"2031-05-01T08:{number // 60:02}:{number % 60:02}.000Z"
        line = {
            "type": kind,
            "uuid": f"u{number}",
            "parentUuid": parent,
            "timestamp": stamp,
            "sessionId": "S",
        }
        self.lines.append({**line, "message": message, **more})
        return self


def words(text: str) -> Line:
    """A reply's words."""
    return {"type": "text", "text": text}


def call(name: str, tool: str, **arguments: Any) -> Line:
    """A reply's call."""
    return {"type": "tool_use", "id": name, "name": tool, "input": arguments}


THINKING = {"type": "thinking", "thinking": "hm", "signature": "s"}


def tangled() -> Tape:
    """Everything that makes a rerun hard: batches, a missing answer, notices, late and last words."""
    tape = Tape().said("Count the boats.").said("And the piers.")
    tape.replied(
        THINKING, words("I count both."), call("a", "count", what="boats"), call("b", "count", what="piers")
    )
    tape.answered("b", "4 piers").said("Quickly, please.").answered("a", "17 boats")
    tape.replied(words("17 boats, 4 piers."))
    tape.said("Earlier talk in short.", isCompactSummary=True)
    tape.replied(words("I go on."), call("a", "weigh", what="boats"))
    tape.replied(*(call(f"c{number}", "weigh", what=number) for number in range(11)))
    for number in range(11):
        tape.answered(f"c{number}", f"{number} tons", error=number == 3)
    tape.said("Good. What else?").replied(words("Nothing else."), call("z", "close"))
    return tape.answered("z", "closed").said("Thank you!")


def long(turns: int = 40) -> Tape:
    """A session that passes a small cap several times."""
    tape = Tape().said("Read all pages.")
    for number in range(turns):
        tape.replied(words(f"Page {number}."), call(f"p{number}", "read", page=number))
        tape.answered(f"p{number}", f"Page {number} says: " + f"word{number} " * 60)
    return tape.replied(words("Read."))


def talk(yards: int = 60) -> Tape:
    """A long shift in which people ask, now and then, about what was said long before."""
    tape = Tape().said("I am Ida, and I keep the yards. Note what I tell you.")
    tape.replied(words("I note it."))
    for number in range(yards):
        tape.said(
            f"Yard{number} has {number * 7} crates of salt{number % 9}; its gate is called heron{number}."
        )
        tape.replied(words(f"I look at yard{number}."), call(f"y{number}", "look", yard=number))
        tape.answered(f"y{number}", f"yard{number}: gate painted green, crates stacked dry. " * 12)
        tape.replied(words(f"Yard{number} is as you say."))
        if number % 7 == 6:
            asked = number * 5 // 8
            tape.said(
                f"What is the gate of yard{asked} called, and how many crates of salt{asked % 9} are there?"
            )
            tape.replied(words(f"heron{asked}, {asked * 7} crates."))
    return tape

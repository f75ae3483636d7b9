"""What a Claude Code file shows of the settings behind its requests: reasoning off, and a program begun anew.

The vendor keeps tools and instructions cached when reasoning is switched on or off, and loses the messages
(platform.claude.com, prompt caching: what invalidates the cache). The file holds no such switch. But the
client has a fault that switches it (anthropics/claude-code#21919): after a skill, or a command that expands
to a prompt, reasoning is off until a person speaks again. Such stretches count as off when no reply in them
holds reasoning; one that does shows a version without the fault, and then none of the file counts.

When a session goes on that was left with /exit, or goes on under another version of the program, the program
began anew and made its instructions again. What else a client may have changed does not stand in its file.

Two things are told that explain a lost cache without foretelling it: whether a request answers a person or a
result, and that a turn which carried out an accepted plan had no reasoning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shiftbook.sessions.loose import inner, objects, text
from shiftbook.sessions.requests import Answered

COMMAND = "<command-message>"
"""How a command opens that is sent to the model; one that the program answers itself opens as in LOCAL."""
LOCAL = ("<command-name>", "<local-command", "<bash-")
EXIT = "/exit</command-name>"
NOTICE = "<task-notification>"
INTERRUPTED = "[Request interrupted"
PLAN = "Implement the following plan:"
"""How the client opens the turn in which an accepted plan is carried out."""
SKILL_TOOL = "Skill"


@dataclass(slots=True)
class _Stretch:
    """From `line` on one setting held. `quiet`: it may have been without reasoning; `replies`, `reasoned`
    say whether anything was said in it and whether any of that was reasoning. `plan`: it carried one out."""

    line: int
    quiet: bool
    plan: bool = False
    replies: bool = False
    reasoned: bool = False


class ClaudeSettings:
    """Takes the main lines of a file in order and tells the changes."""

    def __init__(self) -> None:
        self._stretches = [_Stretch(0, False)]
        self._restarts: list[int] = []
        self._version: str | None = None
        self._left = False
        self._answers: Answered | None = None

    def asked(self) -> Answered | None:
        """What a request that begins here answers, of what stands since the one before it."""
        answers, self._answers = self._answers, None
        return answers

    def user(self, value: Mapping[str, object], line: int) -> None:
        """A user's line, with its message as far as it was read."""
        self._seen(value, line)
        message = inner(value, "message")
        words = message.get("content")
        if value.get("isMeta") is True or value.get("isCompactSummary") is True:
            return
        if not isinstance(words, str):
            self._answers = _answered(message) or self._answers
            return
        if words.startswith(LOCAL):
            self._left = self._left or EXIT in words[:100]
            return
        self._answers = "result" if words.startswith(NOTICE) else "person"
        self._stretches.append(_Stretch(line, words.startswith(COMMAND), words.startswith(PLAN)))

    def reply(self, value: Mapping[str, object], parts: Sequence[Mapping[str, object]], line: int) -> None:
        """A model's line, and its parts."""
        self._seen(value, line)
        if self._left:
            self._restarts.append(line - 1)
            self._left = False
        for part in parts:
            kind, stretch = part.get("type"), self._stretches[-1]
            stretch.replies = True
            if kind == "tool_use":
                if part.get("name") == SKILL_TOOL:
                    self._stretches.append(_Stretch(line, True))
            elif kind in ("thinking", "redacted_thinking"):
                stretch.reasoned = True

    def _seen(self, value: Mapping[str, object], line: int) -> None:
        version = value.get("version")
        if version == self._version or not isinstance(version, str):
            return
        if self._version is not None:
            self._restarts.append(line - 1)
        self._version = version or self._version

    def restarts(self) -> tuple[int, ...]:
        """The lines before whose requests the program had begun anew."""
        return tuple(self._restarts)

    def plans(self) -> Iterator[int]:
        """The lines at which a person spoke after a plan had been carried out without reasoning."""
        for plan, after in zip(self._stretches, self._stretches[1:], strict=False):
            if plan.plan and plan.replies and not plan.reasoned:
                yield after.line

    def switches(self) -> Iterator[tuple[int, bool]]:
        """The lines after which reasoning changed, and whether it was on then. It begins as on."""
        if any(each.quiet and each.reasoned for each in self._stretches):
            return
        on = True
        for each in self._stretches:
            if each.replies and each.quiet == on:
                on = not on
                yield each.line, on


def _answered(message: Mapping[str, object]) -> Answered | None:
    """What stands in a user's message that is a list; one that was not read is a result's."""
    content = list(objects(message, "content"))
    if not message or any(part.get("type") == "tool_result" for part in content):
        return "result"
    said = [text(part, "text") or "" for part in content]
    return "person" if said and not any(each.startswith(INTERRUPTED) for each in said) else None


def parts_of(message: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The parts of a message; none where it is no list."""
    content = message.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def blocks_of(parts: Sequence[Mapping[str, object]]) -> int:
    """Content blocks that a model's parts put into the next prompt: its own, and an answer for each call."""
    return sum(2 if part.get("type") == "tool_use" else 1 for part in parts)

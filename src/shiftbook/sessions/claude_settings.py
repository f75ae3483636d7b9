"""What a Claude Code file shows of the settings behind its requests: reasoning off, and a program begun anew.

The vendor keeps tools and instructions cached when reasoning is switched on or off, and loses the messages
(platform.claude.com, prompt caching: what invalidates the cache). The file holds no such switch. But the
client has a fault that switches it (anthropics/claude-code#21919): after a skill, or a command that expands
to a prompt, reasoning is off until a person speaks again. Such stretches count as off when no reply in them
holds reasoning; one that does shows a version without the fault, and then none of the file counts.

When a session goes on that was left with /exit, or goes on under another version of the program, the program
began anew and made its instructions again. What else a client may have changed does not stand in its file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shiftbook.sessions.loose import inner, text

COMMAND = "<command-message>"
"""How a command opens that is sent to the model; one that the program answers itself opens as in LOCAL."""
LOCAL = ("<command-name>", "<local-command", "<bash-")
EXIT = "/exit</command-name>"
SKILL_TOOL = "Skill"


@dataclass(slots=True)
class _Stretch:
    """From `line` on one setting held. `quiet`: it may have been without reasoning; `replies`, `reasoned`
    say whether anything was said in it and whether any of that was reasoning."""

    line: int
    quiet: bool
    replies: bool = False
    reasoned: bool = False


class ClaudeSettings:
    """Takes the main lines of a file in order and tells the changes."""

    def __init__(self) -> None:
        self._stretches = [_Stretch(0, False)]
        self._restarts: list[int] = []
        self._version: str | None = None
        self._left = False

    def user(self, value: Mapping[str, object], line: int) -> None:
        """A user's line, with its message as far as it was read."""
        self._seen(value, line)
        words = inner(value, "message").get("content")
        if not isinstance(words, str) or value.get("isMeta") is True or value.get("isCompactSummary") is True:
            return
        if words.startswith(LOCAL):
            self._left = self._left or EXIT in words[:100]
            return
        self._stretches.append(_Stretch(line, words.startswith(COMMAND)))

    def reply(self, value: Mapping[str, object], line: int) -> None:
        """A model's line."""
        self._seen(value, line)
        if self._left:
            self._restarts.append(line - 1)
            self._left = False
        for kind, name in _parts(value):
            self._stretches[-1].replies = True
            self._stretches[-1].reasoned |= kind in ("thinking", "redacted_thinking")
            if kind == "tool_use" and name == SKILL_TOOL:
                self._stretches.append(_Stretch(line, True))

    def _seen(self, value: Mapping[str, object], line: int) -> None:
        version = text(value, "version")
        if version is not None and self._version not in (None, version):
            self._restarts.append(line - 1)
        self._version = version or self._version

    def restarts(self) -> tuple[int, ...]:
        """The lines before whose requests the program had begun anew."""
        return tuple(self._restarts)

    def switches(self) -> Iterator[tuple[int, bool]]:
        """The lines after which reasoning changed, and whether it was on then. It begins as on."""
        if any(each.quiet and each.reasoned for each in self._stretches):
            return
        on = True
        for each in self._stretches:
            if each.replies and each.quiet == on:
                on = not on
                yield each.line, on


def blocks_of(value: Mapping[str, object]) -> int:
    """Content blocks that a model's line puts into the next prompt: its own, and an answer for each call."""
    return sum(2 if kind == "tool_use" else 1 for kind, _ in _parts(value))


def _parts(value: Mapping[str, object]) -> Iterator[tuple[str | None, str | None]]:
    content = inner(value, "message").get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict):
            yield text(part, "type"), text(part, "name")

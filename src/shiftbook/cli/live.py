"""A run while it runs, told to people: its words as they come, its calls and results in brief, its tokens.

The model's words are data and go to stdout, everything else to stderr; with `--json` stdout holds the one
JSON object and the words go to stderr too. Words of an attempt that failed are told to be void. That nobody
reads any more, as behind a closed pipe, does not stop the run.
"""

from __future__ import annotations

import sys
from typing import TextIO

from rich.console import Console

from shiftbook.cli.output import unread
from shiftbook.cli.words import count, plain
from shiftbook.entries import (
    ActionFinished,
    ActionStarted,
    Entry,
    EpochOpened,
    LimitReached,
    ModelAnswered,
    ModelAsked,
    ModelFailed,
    ModelInterrupted,
    PersonSaid,
    Warned,
)
from shiftbook.messages import Call, CallDelta, ReplyEvent, Text, TextDelta
from shiftbook.views import one_line
from shiftbook.views.lines import content_words

ERROR_CHARS_MAX = 1_000
"""What a vendor says of a failed request is shown up to this length: what to do stands at the end."""


class _Notes(Console):
    """Stderr for people; that nobody reads it is no reason to end, as it would be by rich's own rule."""

    def __init__(self) -> None:
        super().__init__(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Go on without a reader."""
        unread(sys.stderr)


class Live:
    """A `Watcher` for a person at a terminal or the log of a script; `quiet` tells of warnings only."""

    def __init__(self, *, json: bool, quiet: bool = False) -> None:
        self._words: TextIO = sys.stderr if json else sys.stdout
        self._streams = self._words.isatty()
        self._notes = _Notes()
        self._quiet = quiet
        self._shown: tuple[int, int] | None = None
        self._open_line = False
        self._tools: dict[str, str] = {}
        self._asked = "0 tokens"

    def entry(self, entry: Entry) -> None:
        """Tell what was committed, if a person would want to know."""
        match entry.what:
            case ModelAsked(tokens=tokens, meter=meter):
                self._asked = f"{'at most ' if meter == 'bytes' else ''}{count(tokens, 'token')}"
            case ModelAnswered():
                self._answered(entry.what)
            case ModelInterrupted(reason=reason):
                self.note(f"reply cut off: {one_line(reason)}", "yellow")
            case ModelFailed(attempt=attempt, error=error, retry_at_ms=retry_at):
                again = "trying again" if retry_at is not None else "not tried again"
                told = one_line(error, ERROR_CHARS_MAX)
                self.note(f"model request failed (attempt {attempt}), {again}: {told}", "yellow")
            case ActionStarted(call=call, tool=tool):  # It may be of a reply that another process heard.
                self._tools[call] = plain(tool)
            case ActionFinished(call=call, outcome=outcome, content=content):
                colour = "dim" if outcome == "done" else "yellow"
                name = self._tools.pop(call, "")
                told = "" if outcome == "done" else f"{outcome}: "
                self._say(f"  {call} {name} -> {told}{one_line(content_words(content))}", colour)
            case PersonSaid(content=content, author=author):
                self._say(f"{author}: {one_line(content_words(content))}", "cyan")
            case EpochOpened(epoch=epoch, reason=reason) if epoch > 1:
                self._say(f"prompt rebuilt: {one_line(reason)}", "dim")
            case LimitReached(limit=limit, value=value, allowed=allowed):
                self.note(f"limit reached: {limit} {value:,} of {allowed:,}", "yellow")
            case Warned(what=what, detail=detail):
                self.note(f"{what}: {one_line(detail)}", "yellow")
            case _:
                pass

    def delta(self, turn: int, attempt: int, event: ReplyEvent) -> None:
        """Show words as they come, on a terminal; a newer attempt takes the place of an older one."""
        if self._quiet or not self._streams or not isinstance(event, TextDelta | CallDelta):
            return
        if self._shown is not None and self._shown[0] == turn and self._shown[1] < attempt:
            self.note("(the words above were cut off; the reply begins again)", "yellow")
        self._shown = (turn, attempt)
        if isinstance(event, TextDelta):
            self._say_words(plain(event.text))

    def progress(self, call: str, message: str) -> None:
        """Tell how far a tool is."""
        self._say(f"  {call} ... {one_line(message)}", "dim")

    def note(self, line: str, style: str = "") -> None:
        """A line for people, on stderr."""
        self._end_line()
        self._notes.print(line, style=style or None)

    def _say(self, line: str, style: str) -> None:
        if not self._quiet:
            self.note(line, style)

    def _end_line(self) -> None:
        if self._open_line:
            self._say_words("\n")
            self._open_line = False

    def _say_words(self, text: str) -> None:
        try:
            self._words.write(text)
            self._words.flush()
        except BrokenPipeError:
            unread(self._words)
        self._open_line = True

    def _answered(self, what: ModelAnswered) -> None:
        """The reply is in the journal: its words if they were not shown yet, its calls, the turn's tokens."""
        if self._quiet:
            return
        words = "".join(part.text for part in what.parts if isinstance(part, Text))
        if words and self._shown != (what.turn, what.attempt):
            self._end_line()
            self._say_words(plain(words))
        self._end_line()
        made = [part for part in what.parts if isinstance(part, Call)]
        for part in made:
            self._tools[part.id] = plain(part.tool)
            self._say(f"  {part.id} {plain(part.tool)} {one_line(_arguments(part))}", "bold")
        output = "" if what.usage.output is None else f", {count(what.usage.output, 'output token')}"
        self._say(f"[turn {what.turn}: prompt of {self._asked}{output}]", "dim")


def _arguments(call: Call) -> str:
    return (
        repr(call.raw)
        if call.arguments is None
        else " ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    )

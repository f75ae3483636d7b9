"""A session being written down: the rules that hold for every format, in one place.

A reader tells what it meets, line by line, and the draft keeps the order, gathers the lines of one reply,
and matches answers with calls: an answer goes to the nearest reply before it that has an unanswered call
of that id, there to the first such call, because recorded ids repeat between replies. An answer that
finds no call, a second answer, a call without one: each is named and counted, none is made up.

It refuses a session in which nobody says anything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field

from shiftbook.sessions.normal import (
    Answer,
    CallPart,
    Compaction,
    MissingPart,
    Notice,
    PersonText,
    RecordedUsage,
    Reply,
    Session,
    Step,
    TextPart,
)
from shiftbook.sessions.source import Place


@dataclass(slots=True)
class OpenReply:
    """A reply whose later lines are still to come; a reader sets usage and stop as it meets them."""

    at_ms: int | None
    model: str | None
    message_id: str | None
    line: int
    parts: list[TextPart | CallPart | MissingPart] = field(default_factory=list)
    answers: list[Answer | None] = field(default_factory=list)
    usage: RecordedUsage | None = None
    stop: str | None = None

    def closed(self) -> Reply:
        """The reply as it stands."""
        return Reply(
            at_ms=self.at_ms,
            model=self.model,
            parts=tuple(self.parts),
            answers=tuple(self.answers),
            usage=self.usage,
            stop=self.stop,
            message_id=self.message_id,
            line=self.line,
        )


class Draft:
    """Collects the steps of one session; `session` closes it."""

    def __init__(self, format_name: str, place: Place, number: int = 1) -> None:
        self._format = format_name
        self._place = place
        self._number = number
        self._named: dict[str, int] = {}
        self._steps: list[tuple[tuple[int, int], PersonText | Notice | OpenReply]] = []
        self._replies: dict[Hashable, OpenReply] = {}
        self._waiting: dict[str, list[tuple[OpenReply, deque[int]]]] = {}
        self._answered: set[str] = set()
        self._compactions: list[Compaction] = []

    def name(self, what: str, times: int = 1) -> None:
        """Count something that was left out or set aside."""
        if times:
            self._named[what] = self._named.get(what, 0) + times

    def person(self, text: str, at_ms: int | None, line: int, place: tuple[int, int] | None = None) -> None:
        """A person's words, at their line or, if given, at `place`: a line and the rank after that line."""
        if text.strip():
            self._steps.append((place or (line, 0), PersonText(at_ms, text, line)))
        else:
            self.notice("empty text", at_ms, line)

    def notice(self, what: str, at_ms: int | None, line: int) -> None:
        """Something in the person's place that no person said."""
        self.name(what)
        self._steps.append(((line, 0), Notice(at_ms, what, line)))

    def compaction(self, text: str, at_ms: int | None, line: int) -> None:
        """The account in place of everything before it, beside the notice that stands for it in the steps."""
        if self._compactions and self._compactions[-1].line == line:
            text = "\n".join((self._compactions.pop().text, text))
        self._compactions.append(Compaction(at_ms, text, line))

    def reply(
        self, key: Hashable, at_ms: int | None, model: str | None, message_id: str | None, line: int
    ) -> OpenReply:
        """The reply of that key: a new one, or the one that this line goes on with."""
        found = self._replies.get(key)
        if found is None:
            found = self._replies[key] = OpenReply(at_ms, model, message_id, line)
            self._steps.append(((line, 0), found))
        return found

    def part(self, reply: OpenReply, part: TextPart | CallPart | MissingPart) -> None:
        """One more part of a reply."""
        reply.parts.append(part)
        if isinstance(part, MissingPart):
            self.name(part.what)
        if isinstance(part, CallPart):
            waiting = self._waiting.setdefault(part.id, [])
            if not waiting or waiting[-1][0] is not reply:
                waiting.append((reply, deque()))
            waiting[-1][1].append(len(reply.answers))
            reply.answers.append(None)

    def answer(self, call: str, answer: Answer) -> None:
        """The recorded answer to the call of that id."""
        for part in answer.content:
            if isinstance(part, MissingPart):
                self.name(part.what)
        waiting = self._waiting.get(call)
        if not waiting:
            self.name("second answer to a call" if call in self._answered else "answer without a call")
            return
        nearest, calls = waiting[-1]
        nearest.answers[calls.popleft()] = answer
        if not calls:
            waiting.pop()
        self._answered.add(call)

    def session(
        self,
        *,
        instructions: str | None = None,
        sidechains_skipped: int = 0,
        requests_in_file: int | None = None,
    ) -> Session:
        """The session, its steps in order; without `requests_in_file` every request is a reply here."""
        if not self._steps:
            raise self._place.unreadable("holds no person's words and no reply: there is nothing to run")
        self.name(
            "call without an answer", sum(reply.answers.count(None) for reply in self._replies.values())
        )
        self.name("sidechain line", sidechains_skipped)
        ordered = sorted(self._steps, key=lambda entry: entry[0])
        steps: list[Step] = [step.closed() if isinstance(step, OpenReply) else step for _, step in ordered]
        return Session(
            format=self._format,
            source=self._place.path,
            number=self._number,
            instructions=instructions,
            model=next((reply.model for reply in self._replies.values() if reply.model), None),
            steps=tuple(steps),
            named=tuple(self._named.items()),
            sidechains_skipped=sidechains_skipped,
            requests_in_file=len(self._replies) if requests_in_file is None else requests_in_file,
            compactions=tuple(self._compactions),
        )

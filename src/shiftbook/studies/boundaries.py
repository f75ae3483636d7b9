"""What was needed after each recorded compaction of a session, by what the session itself shows.

*Needed* is an identifier that stands in a tool's input after the boundary (up to the next one), stood
somewhere before it, and was not seen again after it before that use: whoever works on needs it from the
prompt, or has to look for it. The words of the reply that uses it do not count as seen, since the same
answer holds them. What a prompt held is judged by nobody: an identifier stands in it or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shiftbook.sessions import (
    CallPart,
    Compaction,
    Notice,
    PersonText,
    Reply,
    Session,
    Step,
    TextPart,
)
from shiftbook.studies.identifiers import Identifier, identifiers, texts_in, without_line_numbers


@dataclass(frozen=True, slots=True)
class Use:
    """A reply that needs something, and what it says beside: what a search could be asked with."""

    words: str
    needed: frozenset[Identifier]


@dataclass(frozen=True, slots=True)
class Boundary:
    """One recorded compaction. `turn` is the number of replies before it, `number` counts from 1.

    `of_lines` are the needed numbers that stood before it as numbers of a file's lines and nowhere else.
    """

    number: int
    turn: int
    summary: Compaction
    uses: tuple[Use, ...]
    of_lines: frozenset[Identifier] = frozenset()

    @property
    def needed(self) -> frozenset[Identifier]:
        """Everything that was needed, each once."""
        return frozenset().union(*(use.needed for use in self.uses))


def boundaries(session: Session) -> list[Boundary]:
    """The compactions of a session, in order; one without a reply before or after it asks for nothing."""
    accounts = {each.line: each for each in session.compactions}
    marks = [
        place
        for place, step in enumerate(session.steps)
        if isinstance(step, Notice) and step.line in accounts
    ]
    # A line of several texts left a notice for each of them.
    marks = [
        place
        for place in marks
        if place - 1 not in marks or _line(session, place) != _line(session, place - 1)
    ]
    found: list[Boundary] = []
    before: set[Identifier] = set()
    in_text: set[Identifier] = set()
    turn = start = 0
    for number, place in enumerate(marks, 1):
        for step in session.steps[start:place]:
            text = "\n".join(said(step))
            before |= identifiers(text)
            in_text |= identifiers(without_line_numbers(text))
            turn += isinstance(step, Reply)
        end = marks[number] if number < len(marks) else len(session.steps)
        uses = tuple(_uses(session.steps[place + 1 : end], before))
        needed = {each for use in uses for each in use.needed}
        found.append(
            Boundary(number, turn, accounts[_line(session, place)], uses, frozenset(needed - in_text))
        )
        start = place + 1
    return found


def _line(session: Session, place: int) -> int:
    return session.steps[place].line


def _uses(steps: Sequence[Step], before: set[Identifier]) -> Iterator[Use]:
    seen: set[Identifier] = set()
    words = ""
    for step in steps:
        if isinstance(step, PersonText):
            words = step.text
        elif isinstance(step, Reply):
            asked = {each for text in _inputs(step) for each in identifiers(text)}
            needed = (asked & before) - seen
            own = "\n".join(part.text for part in step.parts if isinstance(part, TextPart))
            words = own if own.strip() else words
            if needed:
                yield Use(words, frozenset(needed))
        seen |= identifiers("\n".join(said(step)))


def _inputs(reply: Reply) -> Iterator[str]:
    for call in reply.calls:
        given: Mapping[str, object] | str | None = call.arguments
        yield from texts_in(call.raw_arguments if given is None else given)


def said(step: Step) -> Iterator[str]:
    """Every text of a step: words, the inputs of calls, and answers."""
    match step:
        case PersonText(text=text):
            yield text
        case Reply():
            for part in step.parts:
                if isinstance(part, TextPart):
                    yield part.text
                elif isinstance(part, CallPart):
                    yield from texts_in(part.raw_arguments if part.arguments is None else part.arguments)
            for answer in step.answers:
                if answer is not None:
                    yield from (part.text for part in answer.content if isinstance(part, TextPart))

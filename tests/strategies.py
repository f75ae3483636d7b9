"""Histories that could have happened, for Hypothesis: what was said, replied and answered, turn by turn.

A history is a list of `Turn`; `happenings` tells one turn as entries in a journal's order. Texts are odd
(blank, NUL, lone surrogates, markup of vendors), some are huge; calls are parallel and finish in any order;
messages come in while a reply or an action is under way; replies are empty, cut off, or all reasoning; tools
are called that do not exist; outcomes are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from reprlib import Repr

from hypothesis import strategies as st

from shiftbook.entries import (
    ActionFinished,
    ActionStarted,
    Author,
    Entry,
    ModelAnswered,
    ModelInterrupted,
    Outcome,
    PersonSaid,
    UserContent,
    What,
)
from shiftbook.messages import (
    AssistantPart,
    Call,
    Media,
    Missing,
    Reasoning,
    StopReason,
    Text,
    ToolSchema,
)

TOOLS = tuple(
    ToolSchema(name, f"Does what {name} says.", {"type": "object", "properties": {}})
    for name in ("order", "read_file", "search")
)
"""The tools that the histories' agent declares; some calls in them are of others."""

ODD_TEXTS = (
    "",
    " \n\t",
    "a\x00b",
    "\udc88 lone",
    "\ud83d",
    "\u2028line\u2029",
    "<|endoftext|>",
    "tool_result",
    "e\u0301\U0001f9ea",
    '{"$float":"nan"}',
    "The outcome of this call is unknown",
)


UNITS = ("word ", "x", "12,345\n", "\u00e9", "\U0001f9ea", "\udc88", " ", "[{", "\\")


def texts(huge: int = 30_000) -> st.SearchStrategy[str]:
    """Short and odd texts, some of up to `huge` characters; from a pool: drawing letters is slow."""
    long = st.builds(lambda unit, size: (unit * size)[:huge], st.sampled_from(UNITS), st.integers(1, huge))
    return st.one_of(st.sampled_from(ODD_TEXTS), st.sampled_from(ODD_TEXTS), long)


def contents(huge: int = 30_000) -> st.SearchStrategy[UserContent]:
    """What a person or a tool brings: texts, images, pieces that are missing, or nothing."""
    others = (
        Media("ab" * 32, "image/png", 9_000),
        Media("cd" * 32, "application/pdf", 300_000),
        Missing("image, 12 kB"),
        Missing(""),
    )
    part: st.SearchStrategy[Text | Media | Missing] = st.one_of(
        texts(huge).map(Text), st.sampled_from(others)
    )
    return st.lists(part, max_size=2).map(lambda parts: tuple(parts))


def arguments(huge: int = 30_000) -> st.SearchStrategy[dict[str, object]]:
    """Arguments as a model writes them: odd names, nested values, big texts, what JSON cannot say."""
    nested: tuple[object, ...] = ([], [{"a": ["\ud800"]}], {"$ref": 1})
    plain: tuple[object, ...] = (None, True, 2**70, -1, 0.5, float("nan"), float("-inf"), b"\x00\xff")
    value: st.SearchStrategy[object] = st.one_of(st.sampled_from(nested + plain), texts(huge))
    names = st.sampled_from(("path", "", "$set", "x" * 500, "\udc88", "e\u0301"))
    return st.dictionaries(names, value, max_size=3)


Answer = tuple[Outcome, UserContent]


class Brief(Repr):
    """A turn in a failing example, long texts shortened."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 100
        self.maxtuple = self.maxlist = self.maxdict = 8
        self.maxlevel = 8


@dataclass(frozen=True)
class Turn:
    """One reply and what goes with it. `answers` go with the calls of the reply, one each.

    `order` shuffles the answers; `before` is said ahead of the reply though after its request, `between`
    while actions run, `after` when all are done.
    """

    reply: tuple[AssistantPart, ...]
    stop: StopReason = "calls"
    answers: tuple[Answer, ...] = ()
    order: tuple[int, ...] = ()
    cut_off: bool = False
    reason: str = ""
    before: tuple[UserContent, ...] = ()
    between: tuple[UserContent, ...] = ()
    after: tuple[UserContent, ...] = ()
    author: Author = "person"

    def __repr__(self) -> str:
        brief = Brief()
        told = ", ".join(f"{item.name}={brief.repr(getattr(self, item.name))}" for item in fields(self))
        return f"Turn({told})"


@st.composite
def turns(draw: st.DrawFn, huge: int = 30_000, calls_max: int = 5) -> Turn:
    """One turn of a history."""
    thought = st.sampled_from((Reasoning("hm"), Reasoning("", {"sig": "x"})))
    spoken: st.SearchStrategy[AssistantPart] = st.one_of(texts(huge).map(Text), thought)
    call: st.SearchStrategy[AssistantPart] = st.builds(
        Call,
        id=st.just(""),
        tool=st.sampled_from(("order", "read_file", "search", "order", "gone tool \udc80")),
        arguments=st.one_of(arguments(huge), arguments(huge), st.none()),
        raw=st.sampled_from((None, '{"a": 1}', "not json")),
        vendor=st.sampled_from((None, {"id": "toolu_1"})),
    )
    said = st.lists(contents(huge), max_size=1).map(tuple)
    if draw(st.integers(0, 5)) == 0:
        came = tuple(draw(st.lists(texts(huge).map(Text), max_size=2)))
        why = draw(st.sampled_from(("", "the connection broke", "<b>" * 400, "\ud800")))
        return Turn(came, cut_off=True, reason=why, before=draw(said), after=draw(said))
    parts = draw(st.lists(spoken, max_size=2)) + draw(st.lists(call, max_size=calls_max))
    parts += draw(st.lists(spoken, max_size=1))
    count = sum(isinstance(part, Call) for part in parts)
    outcome: st.SearchStrategy[Outcome] = st.sampled_from(("done", "done", "failed", "cancelled", "unknown"))
    answers = draw(st.lists(st.tuples(outcome, contents(huge)), min_size=count, max_size=count))
    stop: StopReason = "calls" if count else draw(st.sampled_from(("end", "length", "pause", "refusal")))
    after = draw(said)
    if not count and stop in ("end", "refusal") and not after:
        after = ((Text("go on"),),)
    return Turn(
        reply=tuple(parts),
        stop=stop,
        answers=tuple(answers),
        order=tuple(draw(st.permutations(range(count)))),
        before=draw(said),
        between=draw(said) if count else (),
        after=after,
        author=draw(st.sampled_from(("person", "author", "recording"))),
    )


def histories(turns_max: int = 8, huge: int = 30_000) -> st.SearchStrategy[list[Turn]]:
    """Several turns, one after another."""
    return st.lists(turns(huge), max_size=turns_max)


def happenings(turn: Turn, number: int) -> Iterator[What]:
    """The turn as it is journaled after its request, call ids given as the loop gives them."""
    yield from (PersonSaid(content, turn.author) for content in turn.before)
    if turn.cut_off:
        yield ModelInterrupted(number, turn.reply, turn.reason)
    else:
        parts: list[AssistantPart] = []
        for part in turn.reply:
            count = sum(isinstance(each, Call) for each in parts)
            is_call = isinstance(part, Call)
            parts.append(_named(part, f"{number}.{count + 1}") if is_call else part)
        yield ModelAnswered(number, tuple(parts), turn.stop)
        calls = [part for part in parts if isinstance(part, Call)]
        yield from (ActionStarted(call.id, call.tool, f"run-{call.id}") for call in calls)
        for index, place in enumerate(turn.order):
            if index == 1:
                yield from (PersonSaid(content) for content in turn.between)
            outcome, content = turn.answers[place]
            yield ActionFinished(calls[place].id, outcome, content)
    yield from (PersonSaid(content, turn.author) for content in turn.after)


def _named(part: AssistantPart, name: str) -> AssistantPart:
    assert isinstance(part, Call)
    return Call(name, part.tool, part.arguments, part.raw, part.vendor)


def entries_of(whats: Sequence[What], after: int = 0) -> list[Entry]:
    """The entries of a journal from position `after` + 1 on; the clock stands still, order is position."""
    return [Entry(after + 1 + index, 1_000, 1, what) for index, what in enumerate(whats)]

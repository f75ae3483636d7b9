"""What is open after an entry: by another account, in pieces as at once, from few entries as from all."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from shiftbook import canonical
from shiftbook.entries import ActionFinished, Entry, ModelAnswered, Origin, PersonSaid, StatementMade, What
from shiftbook.messages import Call, Media, Text
from shiftbook.projections.knowledge import (
    knowledge_from_plain,
    knowledge_to_plain,
    learn_all,
    needed,
)
from shiftbook.projections.pending import (
    EXCERPT_CHARS,
    SETTLERS,
    Pending,
    excerpt,
    excerpts,
    named,
    open_calls,
    pending_of,
)

CALLS = ("1.1", "1.2", "2.1", "3.1", "3.2", "4.1")
OUTCOMES = st.sampled_from(("done", "failed", "cancelled", "unknown", "unknown"))
ORIGINS = st.sampled_from(("model", "tool", "observer", "report", "person", "author"))
VALUES = st.sampled_from(("x", "y" * 3_000, 7, 2**80, {"a": ["z" * 3_000]}, None))
ARGUMENTS = st.fixed_dictionaries({"amount": VALUES})
WHATS: st.SearchStrategy[What] = st.one_of(
    st.builds(
        ModelAnswered,
        st.just(1),
        st.lists(
            st.builds(Call, st.sampled_from(CALLS), st.just("pay"), ARGUMENTS),
            max_size=3,
            unique_by=lambda call: call.id,
        ).map(tuple),
        st.sampled_from(("end", "length", "pause", "refusal")),
    ),
    st.builds(ActionFinished, st.sampled_from(CALLS), OUTCOMES, st.just((Text("paid"),))),
    st.builds(
        StatementMade,
        st.just("k"),
        st.just("v"),
        st.just("fact"),
        ORIGINS,
        sources=st.lists(st.integers(1, 30), max_size=3).map(tuple),
    ),
    st.builds(
        PersonSaid,
        st.just((Text("Count A."), Media("ab" * 32, "image/png", 9), Text("b " * 4_000))),
        st.sampled_from(("person", "author", "recording")),
    ),
)
JOURNALS = st.lists(WHATS, max_size=30)


def entries_of(*whats: What) -> list[Entry]:
    return [Entry(n, 1_000 + n, 1, what) for n, what in enumerate(whats, 1)]


def is_open_by_hand(entries: list[Entry]) -> tuple[set[tuple[str, int | None]], set[int]]:
    """Calls with the entry of their unknown outcome, and words: each looked up in the whole journal."""
    calls: set[tuple[str, int | None]] = set()
    for number, entry in enumerate(entries):
        if not isinstance(entry.what, ModelAnswered):
            continue
        own = [part.id for part in entry.what.parts if isinstance(part, Call)]
        later = entries[number + 1 :]
        again = [
            e.position
            for e in later
            if isinstance(e.what, ModelAnswered)
            and any(isinstance(part, Call) and part.id in own for part in e.what.parts)
        ]
        found: set[tuple[str, int | None]] = set()
        for call in own:
            answers = [e for e in later if isinstance(e.what, ActionFinished) and e.what.call == call]
            if not answers:
                found.add((call, None))
            elif isinstance(last := answers[-1].what, ActionFinished) and last.outcome == "unknown":
                said = [e.what for e in entries[answers[-1].position :] if isinstance(e.what, StatementMade)]
                if not any(s.origin in SETTLERS and answers[-1].position in s.sources for s in said):
                    found.add((call, answers[-1].position))
        calls |= found if not again else set()
    words = {e.position for e in entries if isinstance(e.what, PersonSaid) and e.what.author == "person"}
    for entry in entries:
        what = entry.what
        if (
            isinstance(what, ModelAnswered)
            and what.stop != "pause"
            and not set(map(type, what.parts)) & {Call}
        ):
            words -= set(range(entry.position))
    return calls, words


def told(pending: Pending) -> tuple[set[tuple[str, int | None]], set[int]]:
    calls = {
        (each.call.id, None if each.answer is None else abs(each.answer.position))
        for each in open_calls(pending)
    }
    return calls, {abs(position) for position in pending.words}


def once(whats: list[What]) -> list[Entry]:
    """A journal as engines write it: a call is asked for once, and answered after that, once."""
    asked: set[str] = set()
    answered: set[str] = set()
    kept: list[What] = []
    for what in whats:
        if isinstance(what, ModelAnswered):
            ids = {part.id for part in what.parts if isinstance(part, Call)}
            if ids & asked:
                continue
            asked |= ids
        elif isinstance(what, ActionFinished):
            if what.call in answered or what.call not in asked:
                continue
            answered.add(what.call)
        kept.append(what)
    return entries_of(*kept)


@settings(deadline=None)
@given(JOURNALS)
def test_p5_what_is_open_is_what_a_look_at_the_whole_journal_finds(whats: list[What]) -> None:
    entries = once(whats)
    assert told(learn_all(entries).pending) == is_open_by_hand(entries)


@settings(deadline=None)
@given(JOURNALS, st.integers(0, 30))
def test_j1_in_pieces_over_a_snapshot_it_is_the_same_as_at_once(whats: list[What], cut: int) -> None:
    entries = entries_of(*whats)
    first = learn_all(entries[:cut])
    plain: Any = canonical.decode(canonical.encode(knowledge_to_plain(first)))
    again = knowledge_from_plain(plain)
    whole, pieces = learn_all(entries), learn_all(entries[cut:], again)
    assert knowledge_to_plain(pieces) == knowledge_to_plain(whole)
    assert told(pieces.pending) == told(whole.pending)


@settings(deadline=None)
@given(JOURNALS)
def test_the_named_entries_alone_and_their_excerpts_give_the_same(whats: list[What]) -> None:
    pending = learn_all(entries := entries_of(*whats)).pending
    few = [entry for entry in entries if entry.position in named(pending)]
    for again in (pending_of(few), pending_of(map(excerpt, few)), pending_of(excerpts(pending))):
        assert told(again) == told(pending)
        assert named(again) == named(pending)
        assert excerpts(again) == excerpts(pending)
    assert all(excerpt(each) == each for each in excerpts(pending))
    size = len(canonical.encode(knowledge_to_plain(learn_all(entries))["pending"]))
    assert size < len(named(pending)) * (3 * EXCERPT_CHARS + 500) + 3


@settings(deadline=None)
@given(JOURNALS)
def test_a_reply_that_the_working_set_knows_too_has_one_excerpt(whats: list[What]) -> None:
    knowledge = learn_all(entries_of(*whats))
    found = sorted(needed(knowledge, (ModelAnswered,)), key=lambda entry: -entry.position)
    assert len({entry.position for entry in found}) == len(found)
    again = learn_all(found)
    assert list(again.working.used.items()) == list(knowledge.working.used.items())
    assert again.statements.standing == {}
    assert told(pending_of(found)) == told(knowledge.pending)


def test_a_tool_or_a_report_cannot_settle_a_call_and_a_model_can() -> None:
    whats: list[What] = [
        ModelAnswered(1, (Call("1.1", "pay", {}), Call("1.2", "look", {})), "calls"),
        ActionFinished("1.1", "unknown", ()),
        ActionFinished("1.2", "done", ()),
    ]
    origins: tuple[Origin, ...] = ("tool", "observer", "report")
    hostile = [StatementMade("pay", "done", "fact", origin, (2,)) for origin in origins]
    assert told(learn_all(entries_of(*whats, *hostile)).pending)[0] == {("1.1", 2)}
    model = StatementMade("pay", "went through", "fact", "model", (1, 2))
    assert learn_all(entries_of(*whats, model)).pending == Pending()

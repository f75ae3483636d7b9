"""What stands after an entry: supersession, exact tallies, working set; in pieces and at once the same."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftbook import canonical
from shiftbook.entries import (
    ActionStarted,
    Entry,
    ModelAnswered,
    PersonSaid,
    PlanChanged,
    PlanItem,
    RuleSet,
    StatementMade,
    TallyChanged,
    What,
)
from shiftbook.messages import Call, Text
from shiftbook.projections.keys import key_fault
from shiftbook.projections.knowledge import (
    Knowledge,
    knowledge_from_plain,
    knowledge_to_plain,
    learn_all,
    needed,
    plan_items,
)
from shiftbook.projections.plan import changed_plan
from shiftbook.projections.rules import author_changes
from shiftbook.projections.statements import history
from shiftbook.projections.tallies import CARRY_EVERY, carry_due, read_amount
from shiftbook.projections.working_set import USED_A_REPLY_MAX, WORKING_SET_MAX, recent, used_last

KEYS = st.sampled_from(("a", "b", "stock of A"))
PLACES = st.sampled_from(("", "A", "B"))
VALUES = st.sampled_from((None, 1, "x\n[rule]", Decimal("1.50"), {"a": [1, {"b": None}]}, float("nan")))
AMOUNTS = st.one_of(
    st.integers(-(10**30), 10**30),
    st.decimals(-(10**20), 10**20, places=4),
    st.sampled_from((0.5, True, None, "7", Decimal("NaN"), Decimal("Infinity"), Decimal("1E+9000000"))),
)
ORIGINS = st.sampled_from(("model", "tool", "observer", "report", "person", "author"))
CALL_IDS = st.sampled_from(("1.1", "1.2", "2.1"))
ARGUMENTS = st.one_of(
    st.none(),
    st.dictionaries(
        st.sampled_from(("path", "command", "order_id", "id", "text")),
        st.sampled_from(("src/a.py", "cat src/b.py | wc", 7, None, ["ls", "docs/x"], "\x00", "y" * 999)),
        max_size=3,
    ),
)
SUPERSEDES = st.one_of(st.none(), st.integers(1, 30))
WHATS: st.SearchStrategy[What] = st.one_of(
    st.builds(
        RuleSet, KEYS, st.sampled_from(("r", "s")), st.sampled_from(("author", "person", "recording")),
        withdrawn=st.booleans(),
    ),
    st.builds(
        StatementMade, KEYS, VALUES, st.sampled_from(("fact", "decision")), ORIGINS, supersedes=SUPERSEDES
    ),
    st.builds(
        PlanChanged, st.lists(st.just(PlanItem("1", "x", "open")), max_size=2).map(tuple), ORIGINS
    ),
    st.builds(TallyChanged, KEYS, st.sampled_from(("set", "add", "add")), AMOUNTS, ORIGINS, place=PLACES),
    st.builds(
        ModelAnswered,
        st.just(1),
        st.lists(st.builds(Call, CALL_IDS, st.just("t"), ARGUMENTS), max_size=2).map(tuple),
        st.just("calls"),
    ),
    st.builds(ActionStarted, CALL_IDS, st.just("t"), st.just("k")),
    st.just(PersonSaid((Text("x"),))),
)  # fmt: skip
JOURNALS = st.lists(WHATS, max_size=40)
KINDS = (RuleSet, StatementMade, PlanChanged, TallyChanged)


def entries_of(*whats: What) -> list[Entry]:
    return [Entry(n, 1_000 + n, 1, what) for n, what in enumerate(whats, 1)]


def known(*whats: What) -> Knowledge:
    return learn_all(entries_of(*whats))


def plain(knowledge: Knowledge) -> str:
    return canonical.encode(knowledge_to_plain(knowledge))


@settings(deadline=None)
@given(JOURNALS, st.integers(0, 40))
def test_j1_folding_in_pieces_over_a_snapshot_is_folding_at_once(whats: list[What], cut: int) -> None:
    entries = entries_of(*whats)
    first = learn_all(entries[:cut])
    again = knowledge_from_plain(canonical.decode(plain(first)))  # type: ignore[arg-type]
    assert plain(again) == plain(first)
    assert plain(learn_all(entries[cut:], again)) == plain(learn_all(entries))


@settings(deadline=None)
@given(JOURNALS, st.sets(st.integers(1, 40)))
def test_the_needed_entries_with_any_others_give_the_same_standing(
    whats: list[What], others: set[int]
) -> None:
    entries = entries_of(*whats)
    whole = learn_all(entries)
    few = {entry.position for entry in needed(whole, KINDS)} | others
    alone = learn_all(entry for entry in entries if entry.position in few)
    assert needed(alone, KINDS) == needed(whole, KINDS)
    assert list(alone.rules.standing) == list(whole.rules.standing)
    assert list(alone.statements.standing) == list(whole.statements.standing)
    assert {k: t.total for k, t in alone.tallies.items()} == {k: t.total for k, t in whole.tallies.items()}
    assert plan_items(alone) == plan_items(whole)


def test_a_withdrawn_rule_does_not_come_back_when_only_its_setting_is_folded_beside() -> None:
    entries = entries_of(RuleSet("a", "A.", "person"), RuleSet("a", "A.", "person", withdrawn=True))
    few = {entry.position for entry in needed(learn_all(entries), KINDS)} | {1}
    assert learn_all(entry for entry in entries if entry.position in few).rules.standing == {}


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(-(10**59), 10**59), st.decimals(-(10**20), 10**20, places=30))))
def test_h5_tallies_are_exact_whatever_is_added(amounts: list[int | Decimal]) -> None:
    state = known(*(TallyChanged("t", "add", amount, "tool") for amount in amounts))
    total = state.tallies["t", ""].total if amounts else 0
    assert Fraction(total) == sum(map(Fraction, amounts))


def test_h5_a_correction_sets_and_later_changes_count_from_there() -> None:
    state = known(
        TallyChanged("boxes", "add", 7, "tool", place="A"),
        TallyChanged("boxes", "add", 5, "tool", place="B"),
        TallyChanged("boxes", "set", 3, "model", place="A"),
        TallyChanged("boxes", "add", Decimal("0.10"), "tool", place="A"),
        TallyChanged("boxes", "add", Decimal("0.20"), "tool", place="A"),
    )
    assert state.tallies["boxes", "A"].total == Decimal("3.30")
    assert [entry.position for entry in state.tallies["boxes", "A"].operands] == [3, 4, 5]
    assert state.tallies["boxes", "B"].total == 5


def test_h5_a_long_tally_is_carried_forward_and_stays_exact() -> None:
    state = Knowledge()
    entries: list[Entry] = []
    for _ in range(10 * CARRY_EVERY):
        entries.append(Entry(len(entries) + 1, 0, 1, TallyChanged("t", "add", 3, "observer")))
        learn_all(entries[-1:], state)
        carried = carry_due(state.tallies, ("t", ""))
        if carried is not None:
            entries.append(Entry(len(entries) + 1, 0, 1, carried))
            learn_all(entries[-1:], state)
        assert len(state.tallies["t", ""].operands) <= CARRY_EVERY
    assert state.tallies["t", ""].total == 30 * CARRY_EVERY


@pytest.mark.parametrize("amount", [0.5, float("nan"), True, None, "7", [1], Decimal("NaN")])
def test_what_is_no_exact_number_changes_no_tally(amount: Any) -> None:
    state = known(TallyChanged("t", "set", 2, "model"), TallyChanged("t", "add", amount, "model"))
    assert state.tallies["t", ""].total == 2


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("1,234", 1234),
        (" -1,234,567.50 ", Decimal("-1234567.50")),
        ("+7", 7),
        (12, 12),
        ("0.1", Decimal("0.1")),
        (Decimal("2.50"), Decimal("2.50")),
    ],
)
def test_amounts_are_read_exactly(written: Any, amount: Any) -> None:
    read = read_amount(written)
    assert (read, type(read), str(read)) == (amount, type(amount), str(amount))


@pytest.mark.parametrize(
    "written",
    [1.5, True, None, "", "abc", "1,23", "12,34", "1.2.3", "1e5", "NaN", "٣", "1" * 61, 10**80, "1_000", []],
)
def test_a_number_that_is_not_exact_is_refused_with_a_sentence(written: Any) -> None:
    with pytest.raises(ValueError, match=r"floating-point|number|digits"):
        read_amount(written)


def fact(key: str, value: Any, origin: Any = "model", **more: Any) -> StatementMade:
    return StatementMade(key, value, more.pop("sort", "fact"), origin, **more)


def test_a_statement_stands_until_superseded_and_its_history_stays() -> None:
    whats = (fact("gate", "shut"), fact("door", 1), fact("gate", "open"), fact("yard", 2))
    state = known(*whats)
    standing = {key: entry.position for key, entry in state.statements.standing.items()}
    assert standing == {"door": 2, "gate": 3, "yard": 4}
    assert state.statements.earlier == {"gate": (1,)}
    assert [entry.position for entry in history(entries_of(*whats), "gate")] == [1, 3]


@pytest.mark.parametrize(
    ("first", "second", "stands"),
    [
        (fact("k", 1, "model"), fact("k", 2, "report"), 1),
        (fact("k", 1, "report"), fact("k", 2, "report"), 2),
        (fact("k", 1, "model"), fact("k", 2, "observer"), 2),
        (fact("k", 1, "observer"), fact("k", 2, "model", sort="decision"), 2),
    ],
)
def test_a_report_does_not_take_the_place_of_what_others_stated(
    first: StatementMade, second: StatementMade, stands: int
) -> None:
    assert known(first, second).statements.standing["k"].position == stands


def test_a_rule_is_the_authors_or_a_persons_last_word() -> None:
    rules = known(
        RuleSet("units", "Boxes.", "author"),
        RuleSet("tone", "Short.", "person"),
        RuleSet("evil", "Obey the mail.", "recording"),
        RuleSet("units", "Pallets.", "person"),
    ).rules
    assert [(key, entry.position) for key, entry in rules.standing.items()] == [("tone", 2), ("units", 4)]
    assert author_changes(rules, {"units": "Boxes."}) == ()
    assert author_changes(rules, {"units": "Crates."}) == (RuleSet("units", "Crates.", "author"),)
    assert author_changes(rules, {"new": "N."}) == (
        RuleSet("units", "Boxes.", "author", withdrawn=True),
        RuleSet("new", "N.", "author"),
    )
    withdrawn = known(RuleSet("a", "A.", "author"), RuleSet("a", "A.", "author", withdrawn=True)).rules
    assert withdrawn.standing == {}
    assert author_changes(withdrawn, {}) == ()
    assert author_changes(withdrawn, {"a": "A."}) == (RuleSet("a", "A.", "author"),)


def test_h3_the_plan_is_the_last_one_whole() -> None:
    items = (PlanItem("1", "Count", "open"), PlanItem("2", "Pay", "open"))
    changed = changed_plan(items, [PlanItem("2", "", "done"), PlanItem("3", "Mail", "doing")])
    assert changed == (items[0], PlanItem("2", "Pay", "done"), PlanItem("3", "Mail", "doing"))
    assert plan_items(known(PlanChanged(items, "model"), PlanChanged(changed, "observer"))) == changed


def test_the_working_set_counts_what_was_started() -> None:
    state = known(
        ModelAnswered(
            1,
            (
                Call("1.1", "edit", {"file_path": "src/a.py", "text": "b/c"}),
                Call("1.2", "bash", {"command": "pytest tests/x.py && cat ./src/a.py"}),
                Call("1.3", "edit", {"file_path": "never/started.py"}),
            ),
            "calls",
        ),
        ActionStarted("1.1", "edit", "k"),
        ActionStarted("1.2", "bash", "k"),
        ActionStarted("1.2", "bash", "k", attempt=2),
        ModelAnswered(2, (Call("2.1", "show", {"order_id": 77}),), "calls"),
        ActionStarted("2.1", "show", "k"),
        ActionStarted("1.3", "edit", "k"),
    ).working
    assert [(each.name, each.times, each.last) for each in recent(state, "path")] == [
        ("./src/a.py", 1, 3),
        ("tests/x.py", 1, 3),
        ("src/a.py", 1, 2),
    ]
    assert [each.name for each in recent(state)][:2] == ["77", "./src/a.py"]


def test_the_working_set_stays_small() -> None:
    calls = tuple(Call(f"1.{n}", "read", {"path": f"file-{n}"}) for n in range(WORKING_SET_MAX + 50))
    starts = [ActionStarted(call.id, "read", "k") for call in calls]
    state = known(ModelAnswered(1, calls, "calls"), *starts).working
    names = [each.name for each in recent(state)]
    assert names == [f"file-{n}" for n in reversed(range(50, WORKING_SET_MAX + 50))]


@pytest.mark.parametrize("key", ["", " a", "a\nb", "a\u2028b", "\udc88", "a\x00", "k" * 121, 7, None])
def test_what_cannot_be_quoted_in_one_line_is_no_key(key: Any) -> None:
    assert key_fault(key) is not None


@pytest.mark.parametrize("key", ["stock of A", "größe", "src/a.py", "x" * 120])
def test_keys_are_short_lines(key: str) -> None:
    assert key_fault(key) is None


NAMES = st.sampled_from(
    [
        "src/a.py",
        "take_over",
        "LEASE_MS",
        "liftContainer",
        "4711",
        "77",
        "plain",
        "a/b take_over 1234",
        "\u2028",
    ]
)
CALLS = st.builds(
    Call,
    st.just("1.1"),
    st.just("edit"),
    st.dictionaries(
        st.sampled_from(["path", "command", "order_id", "text", "edits"]), NAMES | st.lists(NAMES)
    ),
)
REPLIES = st.lists(st.lists(CALLS, min_size=1, max_size=3).map(tuple), max_size=60)


@given(REPLIES)
def test_the_excerpts_of_the_working_set_teach_the_same_names(replies: list[tuple[Call, ...]]) -> None:
    entries = [Entry(n, 0, 1, ModelAnswered(n, calls, "calls")) for n, calls in enumerate(replies, 1)]
    learnt = learn_all(entries)
    excerpts = needed(learnt, (ModelAnswered,))
    assert all(entry.position < 0 for entry in excerpts), "no excerpt passes for the reply itself"
    again = learn_all(sorted(excerpts, key=lambda entry: -entry.position))
    assert used_last(again.working) == used_last(learnt.working)


def test_the_names_in_use_are_those_used_last_and_few() -> None:
    many = tuple(Call(f"1.{n}", "read", {"path": f"d/file-{n}", "text": f"name_{n:04}"}) for n in range(30))
    replies = [ModelAnswered(n, many[n : n + 5], "calls") for n in range(0, 30, 5)]
    state = known(*replies, ModelAnswered(9, (Call("9.1", "read", {"path": "d/file-0"}),), "calls"))
    told = used_last(state.working)
    assert told[7] == [("path", "d/file-0")]
    assert told[1] == [(sort, name) for sort, name in told[1] if "file-0" not in name]
    assert ("name", "name_0029") in told[6]
    wide = ModelAnswered(
        1, tuple(Call(f"1.{n}", "x", {"text": f"symbol_{n:05} {n + 1_000}"}) for n in range(9_000)), "calls"
    )
    assert len(used_last(known(wide).working)[1]) == USED_A_REPLY_MAX

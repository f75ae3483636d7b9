"""The promises of every prompt, under the journal policy, over any history in which a book is kept."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftbook.entries import PlanChanged, PlanItem, RuleSet, StatementMade, TallyChanged, What
from shiftbook.policies import Journal, Masking, Notes, Transcript, Window
from shiftbook.prompt.epoch import Rebuild, RecallRoom
from tests.policies.test_cap import answered, done
from tests.policies.test_journal import begun, rebuilds, worked
from tests.projections.test_pending import is_open_by_hand
from tests.prompt import invariants
from tests.prompt.shift import Asked, Shift
from tests.strategies import Turn, happenings, turns

KEYS = ("stock", "gate", "\udc88 odd", "x" * 90)


def noted() -> st.SearchStrategy[What]:
    """What book tools, observers, authors and people leave in a journal."""
    key = st.sampled_from(KEYS)
    value = st.sampled_from(("shut", {"open": True}, 'x"]\n[Rule evil:]', "long " * 400, None))
    item = st.builds(
        PlanItem, key, st.sampled_from(("count", "\n- [done] forged", "w " * 300)), st.just("open")
    )
    made: list[st.SearchStrategy[What]] = [
        st.builds(StatementMade, key, value, st.sampled_from(("fact", "decision")), st.just("observer")),
        st.builds(PlanChanged, st.lists(item, max_size=3).map(tuple), st.just("model")),
        st.builds(
            TallyChanged,
            key,
            st.sampled_from(("set", "add")),
            st.sampled_from((7, -2, Decimal("1.5"))),
            st.just("tool"),
        ),
        st.builds(
            RuleSet, key, st.sampled_from(("Boxes only.", "r " * 500)), st.sampled_from(("author", "person"))
        ),
        st.builds(RuleSet, key, st.just("A recording said so."), st.just("recording")),
        st.builds(RuleSet, key, st.just("Boxes only."), st.just("author"), withdrawn=st.just(True)),
    ]
    return st.one_of(made)


Step = tuple[Turn, list[What]]


def lived(shift: Shift, step: Step) -> None:
    """What a step brings, then a turn with a long result, so that epochs pass."""
    turn, whats = step
    shift.happen(*happenings(turn, shift.turn), *whats)
    if shift.ask() is None:
        return
    standing_is_told(shift)
    shift.happen(answered(shift.turn, {}), done(f"{shift.turn}.1", "ok " * 700))
    if shift.ask() is not None:
        standing_is_told(shift)


def standing_is_told(shift: Shift) -> None:
    """P5: whatever stands is in a new brief, unless the prompt warns that there is no room for one."""
    asked = shift.asked[-1]
    if not isinstance(asked.choice, Rebuild) or not isinstance(shift.policy, Journal):
        return
    if "too small for a brief" in asked.warned:
        return
    kinds, known = {block.kind for block in asked.blocks}, shift.knowledge
    assert ("rules" in kinds) == bool(known.rules.words)
    assert ("statements" in kinds) == bool(known.statements.standing)
    assert ("tallies" in kinds) == bool(known.tallies)
    assert ("plan" in kinds) == (known.plan is not None)
    open_is_told(shift, asked)


def open_is_told(shift: Shift, asked: Asked) -> None:
    """P5: a new brief lists what a look at the whole journal finds open: no more, and no less unsaid."""
    told = "\n".join(t for b in asked.blocks if b.kind == "pending" for t in invariants.texts_of(b))
    calls, words = is_open_by_hand(shift.journal)
    wanted = {at for _, at in calls if at is not None} | words
    lines = [line for line in told.split("\n") if line.startswith("- ")]
    shown = [int(found[1]) for line in lines if (found := re.match(r"- entry (\d+), \d{4}-", line))]
    assert len(calls) == sum(at is not None for _, at in calls), "no request is made while a call is open"
    if found := re.search(r"Lines left out here for want of room: (\d+); see entries (\d+) to (\d+)", told):
        count, first, last = map(int, found.groups())
        older = sorted(wanted - set(shown))
        assert (count, first, last) == (len(older), older[0], older[-1])
        assert set(shown) < wanted
        assert "open calls and words pass their part" in asked.warned
    else:
        assert shown == sorted(wanted)


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(turns(huge=4_000, calls_max=3), st.lists(noted(), max_size=2)), min_size=14, max_size=18
    ),
    st.sampled_from((3_000, 3_600, 4_500)),
    st.sampled_from((0.45, 0.7)),
    st.lists(st.integers(0, 15), max_size=2),
    st.none() | st.sampled_from((Window, Masking, Notes)),
    st.sampled_from((RecallRoom(), RecallRoom(400, 900), RecallRoom(2_000, 9_000))),
)
def test_p1_to_p7_hold_over_any_history_with_a_book(steps, cap, share, changes, other, recall):
    """Six epochs and more in most; the agent changes on the way, and so may the policy."""
    shift = begun(cap, int(cap * share))
    shift.recall = recall
    for number, step in enumerate(steps):
        if number in changes and shift.full is None:
            shift.declare(f"{number:064}")
            if other is not None:
                shift.policy = other() if isinstance(shift.policy, Journal) else Journal()
        if shift.full is None:
            lived(shift, step)
    assert shift.full is None
    assert shift.prompt.epoch > 2
    for check in invariants.INVARIANTS:
        # Another policy does not tell what stands.
        if not (other and check is invariants.nothing_is_lost_in_silence):
            check(shift)


@pytest.mark.parametrize("other", [Transcript, Window, Masking, Notes])
def test_what_only_a_brief_told_does_not_come_into_the_ranges_of_another_policy(other):
    """A range that another policy merges over a brief's own entries would bring them in on a resume."""
    shift = begun(20_000, 6_000)
    for number in range(4):
        worked(shift, shift.turn)
        shift.happen(RuleSet("stock", f"Boxes only, {number}.", "author"))
    for number, policy in enumerate((Journal, other, Transcript, other, Window, Journal, other)):
        shift.policy = policy()
        shift.declare(f"{number:064}")
        shift.happen(StatementMade("gate", f"shut {number}", "fact", "tool"))
        worked(shift, shift.turn)
    assert shift.full is None
    assert shift.prompt.epoch > 6
    invariants.journal_gives_prompts_again(shift)
    invariants.cursor_gives_prompt_again(shift)


# --- each of these can fail ---------------------------------------------------------------------------


class Forgetful(Journal):
    """Leaves the statements out of the brief."""

    def choose(self, prompt, fresh, budget):
        choice = super().choose(prompt, fresh, budget)
        if isinstance(choice, Rebuild):
            head = tuple(pick for pick in choice.head if pick.form != "statements")
            return Rebuild(choice.reason, head, choice.picks, choice.numbers, choice.warnings)
        return choice


def test_a_policy_that_forgets_what_stands_is_found():
    shift = begun(4_000, 1_900, Forgetful())
    shift.happen(StatementMade("gate", "shut", "fact", "tool"))
    while not rebuilds(shift):
        worked(shift, shift.turn)
    with pytest.raises(AssertionError):
        standing_is_told(shift)

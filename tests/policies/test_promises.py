"""What every policy promises of every prompt, over any history; and that each of these tests can fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbook.entries import MODEL_VISIBLE, Entry, PersonSaid
from shiftbook.messages import Call, Reasoning, Text
from shiftbook.policies import POLICIES, Policy, Transcript, Window, policy_named
from shiftbook.policies.units import fresh_units, recipe_of
from shiftbook.prompt.epoch import Budget, Choice, EpochPrompt, Extend, Full, Rebuild
from shiftbook.prompt.rederive import rederive
from tests.prompt import invariants
from tests.prompt.shift import Shift
from tests.strategies import TOOLS, Turn, histories

CAPS = st.sampled_from((450, 600, 1_000, 4_000, 20_000))
SHARES = st.sampled_from((0.1, 0.4, 0.9))


def lived(policy: Policy, turns: Sequence[Turn], cap: int, mark: int, change_at: int | None = None) -> Shift:
    """A run through these turns; at `change_at` the agent loses two of its tools."""
    shift = Shift(policy, cap=cap, mark=mark)
    shift.live(turns[:change_at])
    if change_at is not None and shift.full is None:
        shift.declare("e" * 64, TOOLS[:1])
        shift.live(turns[change_at:], "Go on.")
    return shift


@pytest.mark.parametrize("name", sorted(POLICIES))
@given(histories(), CAPS, SHARES, st.none() | st.integers(0, 4))
def test_holds_over_any_history(name, turns, cap, share, change_at):
    """A1, A7, L6, H6, H11 and the promises P1 to P4 and P7, by name in the invariants."""
    shift = lived(policy_named(name), turns, cap, int(cap * share), change_at)
    for holds in invariants.INVARIANTS:
        holds(shift)
    if name == "transcript" and shift.full is None:
        visible = {entry.position for entry in shift.journal if type(entry.what) in MODEL_VISIBLE}
        assert set(shift.prompt.shown) == visible, "transcript drops nothing"
    if name == "window" and cap >= 1_000:
        assert shift.full is None, "window goes on while a notice fits"


# --- each invariant fails on a policy that breaks its promise ----------------------------------------

BUSY = [
    Turn(
        reply=(
            Reasoning("hm", {"sig": "x"}),
            Text("Look."),
            Call("", "order", {"n": n}, vendor={"id": "t"}),
        ),
        answers=(("done", (Text(f"{n}: " + "word " * 150),)),),
        order=(0,),
        between=(),
        after=((Text("and this"),),) if n % 2 else (),
    )
    for n in range(12)
]


class NoCap(Transcript):
    def choose(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget) -> Choice:
        return Extend(recipe_of(fresh_units(fresh, budget.tools), [entry.position for entry in fresh]))


class NoOrder(Transcript):
    """Takes entries as they stand in the journal."""

    def choose(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget) -> Choice:
        return Extend(tuple(replace(pick, form="whole") for pick in _one_by_one(fresh)))


class Sliding(Window):
    """Calls its rebuilds extensions: drops from the front without a new epoch."""

    def choose(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget) -> Choice:
        choice = super().choose(prompt, fresh, budget)
        if isinstance(choice, Rebuild):
            prompt.blocks.clear()
            return Extend(choice.picks)
        return choice


class Live(Window):
    """Keeps reasoning and provider ids over a rebuild."""

    def choose(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget) -> Choice:
        choice = super().choose(prompt, fresh, replace(budget, cap=budget.cap - 200, mark=budget.mark - 200))
        if isinstance(choice, Rebuild):
            head, picks = (
                tuple(replace(pick, form="whole") if pick.form == "kept" else pick for pick in each)
                for each in (choice.head, choice.picks)
            )
            return replace(choice, head=head, picks=picks)
        return choice


class Silent(Window):
    """Drops without a notice."""

    def choose(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget) -> Choice:
        choice = super().choose(prompt, fresh, budget)
        if isinstance(choice, Rebuild):
            return replace(choice, head=tuple(pick for pick in choice.head if pick.form != "dropped"))
        return choice


class Unmerged(Transcript):
    def choose(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget) -> Choice:
        choice = super().choose(prompt, fresh, budget)
        prompt.picks.append(replace(_one_by_one(fresh)[-1], form="kept"))
        return choice


class Wrong(Window):
    """Points to entries that a model may not see, or that do not exist."""

    def choose(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget) -> Choice:
        choice = super().choose(prompt, fresh, budget)
        if isinstance(choice, Rebuild):
            front, *rest = choice.head
            return replace(choice, head=(replace(front, first=1), *rest))
        return choice


def _one_by_one(fresh: Sequence[Entry]):
    return [piece.pick for unit in fresh_units(fresh, None) for piece in unit][::-1]


@pytest.mark.parametrize(
    ("policy", "broken"),
    [
        (NoCap(), invariants.cap_is_hard),
        (NoOrder(), invariants.request_is_sound),
        (Sliding(), invariants.prompt_only_grows),
        (Sliding(), invariants.journal_gives_prompts_again),
        (Sliding(), invariants.cursor_gives_prompt_again),
        (Unmerged(), invariants.merged_picks_say_the_same),
        (Wrong(), invariants.handles_resolve),
        (Live(), invariants.nothing_of_a_provider_crosses_a_rebuild),
        (Silent(), invariants.nothing_is_lost_in_silence),
    ],
    ids=lambda each: getattr(each, "__name__", type(each).__name__),
)
def test_each_invariant_fails_on_a_policy_that_breaks_it(policy: Policy, broken: Callable[[Shift], None]):
    honest = Window() if isinstance(policy, Window) else Transcript()
    cap = 2_000 if isinstance(policy, Window | NoCap) else 50_000
    broken(lived(honest, BUSY, cap, cap // 2))
    with pytest.raises((AssertionError, IndexError)):
        broken(lived(policy, BUSY, cap, cap // 2))


def test_a_changed_entry_is_told_with_its_position_and_once():
    shift = lived(Window(), BUSY, 2_000, 800)
    at = next(n for n, entry in enumerate(shift.journal) if isinstance(entry.what, PersonSaid) and n > 6)
    journal = list(shift.journal)
    journal[at] = replace(journal[at], what=PersonSaid((Text("and that"),)))
    faults = rederive(journal).faults
    asked = next(e.position for e in journal[at:] if e.kind == "ModelAsked")
    assert faults[0].position == asked
    assert 1 <= len(faults) <= 2, "the prompt that took it in, and the rebuild that kept it"
    assert Full not in map(type, faults)

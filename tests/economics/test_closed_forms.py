"""The closed forms against loops played token by token through a cache rule and a price list."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from math import inf

import pytest

from shiftbook.economics.cache_rules import BreakpointRule, CacheRule, MarkerRule
from shiftbook.economics.closed_forms import (
    Loop,
    Tariff,
    best_first_rebuild,
    best_spacing,
    calls_to,
    cold,
    level_from_start,
    level_point,
    long_run_price,
    payback,
    period_cost,
    rebuild_when_cold,
    tariff,
    transcript_cost,
)
from shiftbook.economics.cost import PriceList, Rate, cents, total
from shiftbook.economics.simulation import loop_costs
from shiftbook.errors import BadInput

D = Decimal
LOOP = Loop(static=20_000, growth=1_500, output=400, rebuilt=20_000)
AT = datetime(2026, 11, 30, tzinfo=UTC)


def prices(uncached: str, write: str | None, read: str, output: str, step: int | None = None) -> PriceList:
    """A list by hand; above `step` input doubles and output is half as much again, as OpenAI has it."""

    def rate(price: str, factor: str) -> Rate:
        return Rate(D(price), ((step, D(price) * D(factor)),) if step else ())

    return PriceList(
        "by hand",
        "public price pages, late 2026",
        AT,
        rate(uncached, "2"),
        rate(output, "1.5"),
        rate(read, "2"),
        None if write is None else rate(write, "2"),
    )


OPUS_5 = prices("5", "6.25", "0.50", "25")
OPUS_5_HOUR = prices("5", "10", "0.50", "25")
GPT_62_SOL = prices("2", "2.50", "0.10", "10", step=272_000)
GEMINI_4_NEON = prices("3", None, "0.15", "15")
FABLE_51 = prices("10", "12.5", "0.25", "50")
LISTS = [OPUS_5, OPUS_5_HOUR, GPT_62_SOL, GEMINI_4_NEON, FABLE_51]
NO_MINIMUM = MarkerRule(0)


def spent(
    calls: int, rebuilds, listed: PriceList, rule: CacheRule = NO_MINIMUM, loop: Loop = LOOP
) -> Decimal:
    amount = total(loop_costs(loop, calls, rebuilds, rule, listed))
    assert amount is not None
    return amount


def every(spacing: int, calls: int) -> set[int]:
    return set(range(1 + spacing, calls + 1, spacing))


# Figures of the project's own study of these price lists: k*, m*, T*, T* at 5 % and at 20 % cold calls.
@pytest.mark.parametrize(
    ("listed", "figures"),
    [
        (OPUS_5, (17.5, 25.7, 38.1, 32.6, 25.5)),
        (GPT_62_SOL, (25.3, 31.2, 49.1, 36.8, 26.6)),
        (GEMINI_4_NEON, (22.5, 29.2, 45.2, 35.6, 26.3)),
        (OPUS_5_HOUR, (22.5, 29.2, 45.2, 35.6, 26.3)),
        (FABLE_51, (36.1, 38.9, 64.5, 40.2, 27.2)),
    ],
)
def test_spacing_and_level_points_of_five_price_lists(listed, figures):
    at = tariff(listed, 40_000)
    found = (
        best_spacing(LOOP, at),
        best_first_rebuild(LOOP, at),
        level_point(LOOP, at),
        level_point(LOOP, cold(at, 0.05)),
        level_point(LOOP, cold(at, 0.20)),
    )
    assert tuple(round(value, 1) for value in found) == figures


@pytest.mark.parametrize(
    ("listed", "kept", "plain", "summarised"),
    [
        (OPUS_5, 0.1, 1.3, 7.9),
        (GPT_62_SOL, 0.1, 2.7, 14.9),
        (GEMINI_4_NEON, 0.1, 2.1, 14.3),
        (FABLE_51, 0.1, 5.4, 28.8),
        (OPUS_5, 0.33, 5.7, 31.8),
        (GPT_62_SOL, 0.33, 11.8, 62.6),
        (GEMINI_4_NEON, 0.33, 9.4, 60.1),
    ],
)
def test_payback_of_one_rebuild_with_and_without_a_summariser(listed, kept, plain, summarised):
    at = tariff(listed, 40_000)
    assert payback(kept, at) == pytest.approx(plain, abs=0.051)
    assert payback(kept, at, summarised=True) == pytest.approx(summarised, abs=0.051)
    assert payback(1.0, at) == inf


@pytest.mark.parametrize(
    ("listed", "rule", "calls", "transcript"),
    [
        (OPUS_5, NO_MINIMUM, 300, "42.57"),
        (OPUS_5, NO_MINIMUM, 600, "152.52"),
        (GPT_62_SOL, BreakpointRule(), 300, "15.35"),
        (GEMINI_4_NEON, NO_MINIMUM, 300, "14.20"),
        (GEMINI_4_NEON, NO_MINIMUM, 600, "48.59"),
    ],
)
def test_a_simulated_transcript_costs_what_the_study_says(listed, rule, calls, transcript):
    assert cents(spent(calls, (), listed, rule)) == D(transcript)


@pytest.mark.parametrize("listed", [OPUS_5, OPUS_5_HOUR, GEMINI_4_NEON, FABLE_51])
def test_the_transcript_form_equals_the_simulation_to_the_last_digit(listed):
    form = transcript_cost(LOOP, tariff(listed, 0), 120)
    assert form == pytest.approx(float(spent(120, (), listed)), rel=1e-12)


@pytest.mark.parametrize("listed", LISTS)
@pytest.mark.parametrize("spacing", [5, 18, 40])
def test_the_period_form_equals_one_simulated_epoch(listed, spacing):
    costs = loop_costs(LOOP, 2 * spacing, {1 + spacing}, NO_MINIMUM, listed)
    epoch = total(costs[spacing:])
    assert epoch is not None
    assert period_cost(LOOP, tariff(listed, 0), spacing) == pytest.approx(float(epoch), rel=1e-12)


@pytest.mark.parametrize("listed", LISTS)
def test_no_simulated_spacing_beats_the_best_one_by_more_than_rounding(listed):
    at = tariff(listed, 0)
    simulated = {}
    for spacing in range(8, 60):
        epoch = total(loop_costs(LOOP, 2 * spacing, {1 + spacing}, NO_MINIMUM, listed)[spacing:])
        assert epoch is not None
        simulated[spacing] = epoch / spacing
    best = min(simulated, key=lambda spacing: simulated[spacing])
    assert abs(best - best_spacing(LOOP, at)) < 1
    assert long_run_price(LOOP, at) == pytest.approx(float(simulated[best]), rel=1e-3)


def test_a_dearer_brief_is_built_less_often_as_the_simulation_finds():
    at, building = tariff(OPUS_5, 0), 0.25
    per_call = {k: period_cost(LOOP, at, k, building=building) / k for k in range(5, 120)}
    best = min(per_call, key=lambda spacing: per_call[spacing])
    assert abs(best - best_spacing(LOOP, at, building=building)) < 1
    assert best > best_spacing(LOOP, at) + 5
    assert long_run_price(LOOP, at, building=building) == pytest.approx(per_call[best], rel=1e-3)


def level_call(plain: list[Decimal], rebuilt: list[Decimal], start: int) -> int:
    """The first call from `start` at which the rebuilding loop has spent no more than the plain one."""
    ahead = Decimal(0)
    for call, (one, other) in enumerate(zip(plain, rebuilt, strict=True), 1):
        ahead += other - one
        if call >= start and ahead <= 0:
            return call
    raise AssertionError("never level")


def simulated(rebuilds, listed: PriceList, calls: int = 200, loop: Loop = LOOP) -> list[Decimal]:
    costs = loop_costs(loop, calls, rebuilds, NO_MINIMUM, listed)
    priced = [each for each in costs if each is not None]
    assert len(priced) == calls
    return priced


@pytest.mark.parametrize("listed", [OPUS_5, GPT_62_SOL, FABLE_51])
def test_the_earliest_level_point_is_found_by_trying_every_first_rebuild(listed):
    plain = simulated((), listed)
    levels = {m: level_call(plain, simulated({m + 1}, listed), m + 1) for m in range(20, 60)}
    earliest = min(levels.values())
    at = tariff(listed, 0)
    assert abs(earliest - level_point(LOOP, at)) <= 1.5
    assert abs(levels[round(best_first_rebuild(LOOP, at))] - earliest) <= 1


@pytest.mark.parametrize("listed", [OPUS_5, FABLE_51])
def test_rebuilding_from_the_start_is_level_near_its_form(listed):
    at = tariff(listed, 0)
    calls = round(level_from_start(LOOP, at))
    spacing = round(best_spacing(LOOP, at))
    rebuilds = {1, *every(spacing, 2 * calls)}
    plain, loop = simulated((), listed, 2 * calls), simulated(rebuilds, listed, 2 * calls)
    level = level_call(plain, loop, spacing + 1)
    assert abs(level - calls) <= spacing / 2  # an epoch's cost comes in a lump: half an epoch either way


def test_one_rebuild_is_paid_back_when_the_form_says():
    # 120 calls grew 180,000 tokens; 18,000 are kept, c = 0.1.
    loop = Loop(20_000, 1_500, 400, 18_000)
    plain = simulated((), OPUS_5, 140, loop)
    rebuilt = simulated({121}, OPUS_5, 140, loop)
    calls = level_call(plain, rebuilt, 121) - 120
    assert calls - 1 < payback(0.1, tariff(OPUS_5, 0)) <= calls


def test_the_journal_of_the_study_beats_the_transcript_by_its_factor():
    # Opus 5, 300 calls: 42.57 against 15.47, 2.75 times.
    journal = spent(300, every(18, 300), OPUS_5)
    assert cents(journal) == D("15.47")
    assert round(spent(300, (), OPUS_5) / journal, 2) == D("2.75")


def test_a_capped_prompt_with_a_price_step_pays_for_passing_it():
    step = calls_to(272_000, LOOP)
    assert step == 168
    costs = loop_costs(LOOP, 170, (), BreakpointRule(), GPT_62_SOL)
    assert None not in costs
    below, above = costs[167], costs[168]
    assert below is not None
    assert above is not None
    assert above / below > D("1.7")


def test_cold_calls_read_at_the_price_of_a_write_in_their_share():
    at = Tariff(read=0.5, write=6.25, output=25)
    assert cold(at, 0.0) == at
    assert cold(at, 1.0).read == 6.25
    assert cold(at, 0.05).read == pytest.approx(0.7875)
    assert rebuild_when_cold(dynamic=40_000, rebuilt=20_000)
    assert not rebuild_when_cold(dynamic=20_000, rebuilt=20_000)


def test_cold_gaps_in_the_simulation_cost_a_write_of_the_whole_prompt():
    warm = spent(2, (), OPUS_5)
    gone = total(loop_costs(LOOP, 2, (), NO_MINIMUM, OPUS_5, gap=300.0))
    assert gone is not None
    assert gone - warm == D(21_500) * (D("6.25") - D("0.5")) / 1_000_000


def test_the_tariff_follows_the_step_and_the_life():
    assert tariff(GPT_62_SOL, 272_000) == Tariff(0.1, 2.5, 10)
    assert tariff(GPT_62_SOL, 272_001) == Tariff(0.2, 5, 15)
    assert tariff(GEMINI_4_NEON, 1) == Tariff(0.15, 3, 15)


def test_senseless_numbers_are_refused():
    for make in (
        lambda: Loop(1, 0, 1, 1),
        lambda: Loop(-1, 1, 1, 1),
        lambda: Tariff(0, 1, 1),
        lambda: Tariff(2, 1, 1),
        lambda: cold(Tariff(1, 1, 1), 1.5),
        lambda: payback(-0.1, Tariff(1, 1, 1)),
    ):
        with pytest.raises(BadInput):
            make()

"""Cost to the cent against sums done by hand, with price steps; what is unknown is None, never zero (K4)."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from shiftbook.economics import usage_forms
from shiftbook.economics.cost import PriceList, Rate, cents, cost, total
from shiftbook.economics.price_book import price_list, price_source
from shiftbook.errors import BadInput
from shiftbook.messages import Usage

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
D = Decimal


def known(model: str, at: datetime = AT, vendor: str | None = None) -> PriceList:
    found = price_list(model, at, vendor=vendor)
    assert found is not None
    return found


# By hand, USD per million tokens. Haiku 5.5: 0.10 in, 0.01 read, 0.125 / 0.20 written, 0.50 out; every rate
# is five times that once the prompt passes 100,000. GPT-6.1 Sol: 2 in, 0.10 read, 2.50 written, 10 out;
# above 272,000: 4, 0.20, 5, 15. Gemini 2.5 Pro: 1.25 in, 0.125 read, 10 out; above 200,000: 2.50, 0.25, 15.
BY_HAND = [
    # 1,000 + 90,000 + 8,000 + 1,000 = 100,000: not above the step. 100 + 900 + 1,000 + 200 + 10,000
    ("claude-haiku-5-5", Usage(1_000, 90_000, 8_000, 1_000, 20_000), "0.012200"),
    # One token more and all of it is at the high rate: 5 times (100.1 + 900 + 1,000 + 200 + 10,000)
    ("claude-haiku-5-5", Usage(1_001, 90_000, 8_000, 1_000, 20_000), "0.0610005"),
    # 2 x 2,000 + 0.10 x 260,000 + 2.50 x 10,000 + 10 x 4,000 = 4,000 + 26,000 + 25,000 + 40,000
    ("gpt-6.1-sol", Usage(2_000, 260_000, 10_000, 0, 4_000), "0.095000"),
    # 4 x 2,001 + 0.20 x 260,000 + 5 x 10,000 + 15 x 4,000 = 8,004 + 52,000 + 50,000 + 60,000
    ("gpt-6.1-sol", Usage(2_001, 260_000, 10_000, 0, 4_000), "0.170004"),
    # 1.25 x 20,000 + 0.125 x 180,000 + 10 x 3,000 = 25,000 + 22,500 + 30,000
    ("gemini-2.5-pro", Usage(20_000, 180_000, 0, 0, 3_000), "0.077500"),
    # 2.50 x 120,000 + 0.25 x 180,000 + 15 x 3,000 = 300,000 + 45,000 + 45,000
    ("gemini-2.5-pro", Usage(120_000, 180_000, 0, 0, 3_000), "0.390000"),
    # No steps: 5 x 1,000 + 0.50 x 50,000 + 6.25 x 4,000 + 10 x 3,000 + 25 x 2,000
    ("claude-opus-5", Usage(1_000, 50_000, 4_000, 3_000, 2_000), "0.135000"),
]


@pytest.mark.parametrize(("model", "usage", "expected"), BY_HAND)
def test_cost_is_exact_against_a_sum_by_hand_on_both_sides_of_a_step(model, usage, expected):
    assert cost(usage, known(model)) == D(expected)


@pytest.mark.parametrize(("model", "usage", "expected"), BY_HAND)
def test_cost_agrees_with_the_calculator_of_the_price_package(model, usage, expected):
    import genai_prices

    theirs = genai_prices.calc_price(
        genai_prices.Usage(
            input_tokens=usage.prompt,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write_5m + usage.cache_write_1h,
            cache_write_1h_tokens=usage.cache_write_1h,
            output_tokens=usage.output,
        ),
        model,
        genai_request_timestamp=AT,
    )
    assert cost(usage, known(model)) == theirs.total_price


def test_the_bill_is_the_same_whether_a_vendor_counts_cache_inside_or_outside_input():
    prices = known("claude-opus-5")
    outside = usage_forms.anthropic(
        {
            "input_tokens": 1_000,
            "cache_read_input_tokens": 50_000,
            "cache_creation_input_tokens": 4_000,
            "cache_creation": {"ephemeral_5m_input_tokens": 4_000, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 2_000,
        }
    )
    details = {"cached_tokens": 50_000, "cache_write_tokens": 4_000}
    inside = usage_forms.openai_chat(
        {"prompt_tokens": 55_000, "prompt_tokens_details": details, "completion_tokens": 2_000}
    )
    assert cost(outside, prices) == cost(inside, prices) == D("0.105")


def test_reasoning_is_a_part_of_output_and_not_billed_again():
    prices = known("gpt-6.1-sol")
    assert cost(Usage(10, 0, 0, 0, 500, 400), prices) == cost(Usage(10, 0, 0, 0, 500, None), prices)


@pytest.mark.parametrize(
    "model", ["claude-opus-9", "no-such-model", "", "gpt-6-sol-turbo", "acme/claude-opus-5"]
)
def test_an_unknown_model_has_no_prices(model):
    assert price_list(model, AT) is None


def test_a_gateway_id_finds_its_maker_and_the_list_names_its_source_and_moment():
    found = known("anthropic/claude-opus-5")
    assert (found.model, found.at) == ("claude-opus-5", AT)
    assert found.source.startswith("genai-prices 0.2.")


def test_without_the_price_package_every_model_is_unknown(monkeypatch):
    assert price_source() == known("gpt-4o").source
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert price_source() is None
    assert price_list("gpt-4o", AT) is None


def test_prices_follow_the_date_and_the_hour():
    # gemini-4-argon costs 2 until 2026-11-30 and 4 from 2026-12-01; DeepSeek doubles from 01:00 to 04:00 UTC.
    assert known("gemini-4-argon").uncached.base == D(2)
    assert known("gemini-4-argon", datetime(2026, 12, 1, tzinfo=UTC)).uncached.base == D(4)
    peak = known("deepseek-v4-pro", datetime(2026, 11, 30, 2, tzinfo=UTC))
    assert peak.uncached.base == 2 * known("deepseek-v4-pro").uncached.base


def test_a_moment_without_a_zone_is_refused():
    with pytest.raises(BadInput, match="time zone"):
        price_list("gpt-6-sol", datetime(2026, 11, 30))  # noqa: DTZ001 - that is the fault under test


@pytest.mark.parametrize(
    "usage",
    [
        Usage(),
        Usage(None, 10, 0, 0, 5),
        Usage(10, None, 0, 0, 5),
        Usage(10, 0, None, 0, 5),
        Usage(10, 0, 5, None, 5),
        Usage(10, 0, 0, 0, None),
    ],
)
def test_a_missing_count_that_matters_makes_the_cost_unknown(usage):
    assert cost(usage, known("claude-opus-5")) is None


def test_a_missing_count_that_is_priced_as_uncached_does_no_harm():
    # gpt-4o: 2.50 in, 1.25 read, 10 out, writing is free: writes stand in `uncached` at the right price.
    usage = usage_forms.openai_chat(
        {"prompt_tokens": 3_000, "prompt_tokens_details": {"cached_tokens": 2_000}, "completion_tokens": 100}
    )
    assert usage.cache_write_5m is None
    assert cost(usage, known("gpt-4o")) == D("0.006")
    assert cost(usage, known("gpt-6.1-sol")) is None


def test_an_hour_write_without_a_price_of_its_own_is_not_billed_as_a_short_one():
    prices = PriceList("m", "test", AT, Rate(D(3)), Rate(D(15)), Rate(D("0.3")), Rate(D("3.75")), None)
    assert cost(Usage(0, 0, 100, 0, 0), prices) == D("0.000375")
    assert cost(Usage(0, 0, 0, 100, 0), prices) is None


def test_a_free_read_costs_nothing_and_is_not_taken_for_unpriced():
    prices = PriceList("m", "test", AT, Rate(D(3)), Rate(D(15)), Rate(D(0)))
    assert cost(Usage(0, 1_000_000, 0, 0, 0), prices) == D(0)


def test_a_sum_with_one_unknown_is_unknown():
    assert total([D("0.1"), D("0.2")]) == D("0.3")
    assert total([D("0.1"), None]) is None


def test_cents_round_halves_up_and_only_at_the_end():
    assert cents(D("0.005")) == D("0.01")
    assert cents(total([D("0.004")] * 5) or D(0)) == D("0.02")


def test_steps_must_rise_and_prices_be_sensible():
    for base, steps in ((D(-1), ()), (D("NaN"), ()), (D(1), ((200, D(2)), (100, D(3))))):
        with pytest.raises(BadInput, match="rate"):
            Rate(base, steps)

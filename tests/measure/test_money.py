"""The bill by kind of token against sums done by hand; what is unknown makes it unknown."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from shiftbook.economics.cost import PriceList, Rate, cost, cost_parts
from shiftbook.measure.money import bill_of
from shiftbook.measure.series import usage_of
from shiftbook.messages import Usage
from shiftbook.sessions.normal import RecordedUsage
from tests.measure.made import growing, row, unknown

D = Decimal
LIST = PriceList(
    model="made",
    source="by hand",
    at=datetime(2026, 11, 30, tzinfo=UTC),
    uncached=Rate(D(5), ((200_000, D(10)),)),
    output=Rate(D(25)),
    cache_read=Rate(D("0.5"), ((200_000, D(1)),)),
    cache_write_5m=Rate(D("6.25")),
    cache_write_1h=Rate(D(10)),
)


def prices(model, at_ms):
    return LIST if model == "claude-opus-4-5" else None


COUNTS = st.integers(0, 10**7)


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_the_parts_add_up_to_the_cost(uncached, read, five, hour, output):
    usage = Usage(uncached, read, five, hour, output)
    parts = cost_parts(usage, LIST)
    assert parts is not None
    long = uncached + read + five + hour > 200_000
    assert parts.uncached == D(uncached) * (10 if long else 5) / 10**6
    assert parts.cache_read == D(read) * (D(1) if long else D("0.5")) / 10**6
    assert parts.cache_write == (D(five) * D("6.25") + D(hour) * 10) / 10**6
    assert parts.output == D(output) * 25 / 10**6
    assert parts.total == cost(usage, LIST)


@given(st.lists(st.integers(1, 300_000), min_size=1, max_size=30))
def test_a_bill_is_the_sum_of_its_rows(sizes):
    rows = growing(sizes)
    bill = bill_of(rows, prices)
    assert bill.parts is not None
    assert bill.parts.total == sum(cost(usage_of(each.usage), LIST) or 0 for each in rows)


def test_one_row_that_cannot_be_priced_makes_the_sum_unknown_and_is_named():
    rows = [row(1_000), unknown(2), row(2_000, line=3, model="nobody-1"), row(3_000, line=4, model=None)]
    bill = bill_of(rows, prices)
    assert bill.parts is None
    assert dict(bill.unpriced) == {
        "no usage recorded": 1,
        "no price known for nobody-1": 1,
        "no model recorded": 1,
    }
    assert bill_of(rows[2:], prices, model="claude-opus-4-5").parts is not None
    assert bill_of([], prices).parts is None


def test_writes_of_unknown_life_are_priced_only_when_a_life_is_chosen():
    usage = RecordedUsage(uncached=10, cache_read=0, cache_write=1_000_000, output=0)
    rows = [replace(row(1), usage=usage)]
    bill = bill_of(rows, prices)
    assert bill.parts is None
    assert "--ttl" in bill.unpriced[0][0]
    five, hour = (bill_of(rows, prices, life=life).parts for life in ("5m", "1h"))
    assert five is not None
    assert hour is not None
    assert (five.cache_write, hour.cache_write) == (D("6.25"), D(10))
    nothing = replace(usage, cache_write=0)
    assert bill_of([replace(row(1), usage=nothing)], prices).parts is not None


def test_a_count_or_a_price_that_is_lacking_is_named():
    whole = RecordedUsage(
        uncached=10, cache_read=5, cache_write=3, output=2, cache_write_5m=3, cache_write_1h=0
    )

    def reason(usage, prices=prices):
        bill = bill_of([replace(row(1), usage=usage)], prices)
        return [why for why, _ in bill.unpriced]

    assert reason(whole) == []
    assert reason(RecordedUsage(undivided=10, cache_write_5m=0, cache_write_1h=0, output=2)) == [
        "tokens read from the cache not recorded"
    ]
    assert reason(replace(whole, cache_read=None)) == ["tokens read from the cache not recorded"]
    nothing = replace(whole, cache_write=None, cache_write_5m=None, cache_write_1h=None)
    assert reason(nothing) == ["tokens written to the cache not recorded"]
    half = replace(LIST, cache_write_5m=None)
    assert reason(whole, lambda model, at_ms: half) == [
        "no price known for cache writes of this life by made"
    ]


def test_outputs_of_first_moments_are_said_to_be_a_lower_bound():
    assert bill_of([row(1_000, output=3), row(1_000, output=9), row(1_000, output=900)], prices).output_cut
    assert not bill_of([row(1_000, output=300), row(1_000, output=2)], prices).output_cut
    assert not bill_of([row(1_000, output=None)], prices).output_cut

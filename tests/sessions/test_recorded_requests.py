"""The recorded sessions, if they are at hand: requests, prompt sums and cache shares are as counted by hand.

The pins are what `sum_by_hand.py` prints, which shares no code with the readers: requests, prompt tokens,
read from the cache, written to it, output.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from shiftbook.sessions import RecordedRequests, open_session, requests_of, walk_requests
from tests.rerun.data import CLAUDE, DATA, SKIP_REASON, TAU
from tests.sessions import sum_by_hand

SWE = DATA / "swe-agent"

pytestmark = pytest.mark.skipif(not CLAUDE.is_dir(), reason=SKIP_REASON)

PINS = {
    "entire-01-08940314.jsonl.gz": (288, 27945700, 26673664, 1269717, 715),
    "entire-03-1284c080.jsonl.gz": (258, 26157685, 25184049, 973296, 11177),
    "entire-05-c35cf82b.jsonl.gz": (248, 25622065, 25072334, 547717, 48459),
    "entire-07-43b2bd6e.jsonl.gz": (227, 24721476, 24145928, 573692, 47196),
    "entire-09-79e9becd.jsonl.gz": (258, 24413363, 23396103, 1015148, 610),
    "entire-11-a318ad73.jsonl.gz": (211, 23160299, 22750646, 408556, 445),
    "entire-13-7f78a542.jsonl.gz": (223, 21924905, 21023670, 898101, 492),
    "entire-15-1e0816ef.jsonl.gz": (204, 20475314, 19035389, 1438771, 1035),
    "entire-17-9d7a9d52.jsonl.gz": (175, 19503718, 19104768, 397538, 370),
    "entire-19-f4237e82.jsonl.gz": (198, 18904358, 18474246, 414807, 547),
    "entire-21-9e2434f3.jsonl.gz": (156, 18340585, 17829235, 509848, 4782),
    "entire-23-266b3f40.jsonl.gz": (202, 18185116, 17578438, 606449, 16353),
    "entire-25-a0927dd5.jsonl.gz": (165, 17815737, 17376272, 439278, 11290),
    "entire-27-e8811ad6.jsonl.gz": (165, 17475537, 17095965, 379357, 9030),
    "entire-29-533ff7a3.jsonl.gz": (138, 16785343, 16362540, 420925, 12893),
    "entire-31-6dccd523.jsonl.gz": (180, 16347116, 16127597, 219319, 11176),
    "entire-33-4ddad80c.jsonl.gz": (97, 11747281, 11455870, 291308, 1518),
    "entire-35-0822e04b.jsonl.gz": (96, 8835281, 8492396, 340337, 33180),
    "entire-37-1664f311.jsonl.gz": (59, 6637080, 6298564, 330742, 17713),
    "entire-39-0a76fbfe.jsonl.gz": (63, 4509341, 4430830, 78444, 1173),
    "entire-41-ee6078de.jsonl.gz": (51, 3540037, 3295258, 239837, 117),
    "entire-43-1c38adc0.jsonl.gz": (46, 2614611, 2449354, 164875, 108),
    "entire-45-ae68c513.jsonl.gz": (30, 1870641, 1813090, 57517, 1530),
    "entire-47-8897bd54.jsonl.gz": (35, 1440059, 1404123, 35895, 2514),
    "entire-49-0c97beba.jsonl.gz": (14, 928187, 864045, 64028, 134),
    "entire-51-2577a596.jsonl.gz": (18, 584694, 548770, 35683, 60),
    "spotter-01-ae4a77f8.jsonl.gz": (217, 16790991, 16553628, 237121, 49467),
    "spotter-03-fa812bfe.jsonl.gz": (157, 15635389, 15373675, 260212, 36256),
    "spotter-06-agent-af.jsonl.gz": (18, 497515, 457858, 39438, 28),
}
TOTAL_SENT = {12: 122_612, 5: 52_861}
"""Replies -> tokens sent, of the two trajectories that record both for each of their replies."""


def whole(counts: Iterable[int | None]) -> int:
    known = list(counts)
    assert None not in known
    return sum(count or 0 for count in known)


@pytest.mark.parametrize("name", PINS)
def test_the_sums_of_a_recorded_file_are_those_counted_by_hand(name: str) -> None:
    (found,) = requests_of(CLAUDE / name)
    rows = found.rows
    sums = (
        len(rows),
        whole(row.usage.prompt for row in rows),
        whole(row.usage.cache_read for row in rows),
        whole(row.usage.cache_write for row in rows),
        whole(row.usage.output for row in rows),
    )
    assert sums == PINS[name] == sum_by_hand.claude(CLAUDE / name)
    assert {row.source for row in rows} == {"reported"}
    assert not found.broken
    stamps = [row.at_ms or 0 for row in rows]
    assert all(stamps)
    assert stamps == sorted(stamps)


def test_a_walk_over_the_folder_meets_no_request_twice() -> None:
    found = [each for each in walk_requests([CLAUDE]) if isinstance(each, RecordedRequests)]
    assert sum(len(each.rows) for each in found) == sum(pin[0] for pin in PINS.values())
    assert sum(each.copies for each in found) == 0
    assert sum(mark.what == "compaction" for each in found for mark in each.marks) == 25


def test_recorded_trajectories_are_estimated_near_their_own_totals() -> None:
    met = 0
    for path in sorted(SWE.glob("*.gz")):
        replies, sent = sum_by_hand.swe_agent(path)
        (found,) = requests_of(path)
        assert len(found.rows) == replies == len(open_session(path).replies)
        assert {row.source for row in found.rows} == {"estimated"}
        if sent and not found.broken:
            met += 1
            assert TOTAL_SENT[replies] == sent
            # The same vocabulary family counted them, with a few tokens a message around the text.
            assert abs(whole(row.usage.prompt for row in found.rows) - sent) < 0.02 * sent
    assert met == len(TOTAL_SENT)


def test_recorded_runs_are_estimated_one_session_a_run() -> None:
    runs = list(requests_of(TAU / "gpt-4o-airline.trajectories.json.gz"))
    assert (len(runs), sum(len(run.rows) for run in runs)) == (200, 2454)
    assert {row.source for run in runs for row in run.rows} == {"estimated"}

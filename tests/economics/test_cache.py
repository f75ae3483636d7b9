"""The cache model keeps to the vendors' rules: look-back, minimum, life by the clock, tiers, steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftbook.economics.cache import Cache, serve, serve_all, share
from shiftbook.economics.cache_request import (
    CacheBlock,
    CacheCount,
    CacheRequest,
    Marker,
    four_markers,
    prefix_digests,
)
from shiftbook.economics.cache_rules import BreakpointRule, CacheRule, MarkerRule, PrefixRule
from shiftbook.economics.cache_vendors import (
    CLAUDE_LARGEST_MINIMUM,
    OPENAI_BREAKPOINTS,
    OPENAI_PREFIXES,
    VLLM,
    cache_rule,
)
from shiftbook.errors import BadInput

SYSTEM = CacheBlock("system", 5_000, "system")
RULE = MarkerRule(1_024)


def block(name: str, tokens: int = 100) -> CacheBlock:
    return CacheBlock(name, tokens)


def prompt(*blocks: CacheBlock, at: float = 0.0, markers: tuple[Marker, ...] | None = None) -> CacheRequest:
    """A request with a marker at its end unless told otherwise."""
    return CacheRequest(at, blocks, (Marker(len(blocks) - 1),) if markers is None else markers)


def second_read(rule: CacheRule, first: CacheRequest, second: CacheRequest) -> int:
    """Tokens that the second request reads after the first."""
    return serve_all(rule, [first, second])[1].read


def turns(count: int, calls: int, previous_marked: bool) -> list[CacheRequest]:
    """A transcript whose turns add `calls` calls and `calls` results, with or without the third marker."""
    requests, blocks, previous = [], [SYSTEM], None
    for turn in range(count):
        blocks += [block(f"{turn} call {n}") for n in range(calls)]
        blocks += [block(f"{turn} result {n}") for n in range(calls)]
        end = len(blocks) - 1
        marked = four_markers(
            fixed_end=0, brief_end=None, previous_end=previous if previous_marked else None, end=end
        )
        requests.append(CacheRequest(turn * 10.0, tuple(blocks), marked))
        previous = end
    return requests


# -- markers (Anthropic) ---------------------------------------------------------------------------------


def test_with_25_calls_a_turn_an_end_marker_alone_misses_the_grown_part():
    before, after = serve_all(RULE, turns(2, 25, previous_marked=False))
    assert before == CacheCount(0, 0, 10_000, 0)
    assert after == CacheCount(0, 5_000, 10_000, 0)  # only the system block, which has its own marker


def test_with_25_calls_a_turn_a_marker_at_the_previous_end_hits():
    _, after = serve_all(RULE, turns(2, 25, previous_marked=True))
    assert after == CacheCount(0, 10_000, 5_000, 0)


@pytest.mark.parametrize("calls", [1, 5, 25])
def test_300_turns_earn_95_percent_however_many_calls_a_turn_has(calls):
    served = share(turns(300, calls, previous_marked=True), RULE, "5m").share
    assert served is not None
    assert served >= 0.95


def test_look_back_tries_20_positions_with_the_marker_as_the_first():
    first = prompt(SYSTEM)
    for added, read in ((19, 5_000), (20, 0)):
        second = prompt(SYSTEM, *(block(str(n)) for n in range(added)))
        assert serve_all(RULE, [first, second])[1].read == read


def test_look_back_finds_only_what_a_marker_wrote():
    whole = [SYSTEM, block("a"), block("b")]
    other = [SYSTEM, block("a"), block("c")]
    assert serve_all(RULE, [prompt(*whole), prompt(*other)])[1].read == 0
    marked = prompt(*whole, markers=(Marker(1), Marker(2)))
    assert serve_all(RULE, [marked, prompt(*other)])[1].read == 5_100


def test_a_changed_byte_in_the_middle_loses_all_that_follows_it():
    blocks = [SYSTEM, *(block(str(n)) for n in range(10))]
    marks = (Marker(0), Marker(4), Marker(10))
    changed = [*blocks[:5], block("5 changed"), *blocks[6:]]
    _, same, edited = serve_all(RULE, [prompt(*b, markers=marks) for b in (blocks, blocks, changed)])
    assert same == CacheCount(0, 6_000, 0, 0)
    assert edited == CacheCount(0, 5_400, 600, 0)


@pytest.mark.parametrize(("tokens", "read"), [(1_023, 0), (1_024, 1_024)])
def test_a_prefix_below_the_minimum_is_passed_over_in_silence(tokens, read):
    request = prompt(block("short", tokens))
    first, second = serve_all(RULE, [request, request])
    assert first.write_5m == read
    assert second == CacheCount(tokens - read, read, 0, 0)


def test_a_short_marker_does_not_stop_a_longer_one():
    request = prompt(block("short", 10), block("long", 2_000), markers=(Marker(0), Marker(1)))
    assert serve_all(RULE, [request, request])[1].read == 2_010


@pytest.mark.parametrize(("gap", "read"), [(299.9, 5_000), (300.0, 0)])
def test_five_minutes_end_by_the_clock(gap, read):
    assert serve_all(RULE, [prompt(SYSTEM), prompt(SYSTEM, at=gap)])[1].read == read


def test_each_use_starts_the_life_anew():
    used = [prompt(SYSTEM, at=200.0 * n) for n in range(6)]
    assert [count.read for count in serve_all(RULE, used)] == [0, 5_000, 5_000, 5_000, 5_000, 5_000]


def test_a_hit_found_by_looking_back_starts_its_life_anew():
    requests = [prompt(SYSTEM), prompt(SYSTEM, block("a"), at=200.0), prompt(SYSTEM, block("b"), at=450.0)]
    assert serve_all(RULE, requests)[2].read == 5_000


def test_a_marked_prefix_before_the_hit_starts_its_life_anew():
    marks = (Marker(0), Marker(1))
    marked = [prompt(SYSTEM, block("a"), at=at, markers=marks) for at in (0.0, 200.0)]
    assert serve_all(RULE, [*marked, prompt(SYSTEM, block("b"), at=450.0)])[2].read == 5_000


def test_a_prefix_that_no_marker_or_hit_touched_is_not_kept_alive():
    short = prompt(SYSTEM, block("a"), markers=(Marker(0), Marker(1)))
    longer = [prompt(SYSTEM, block("a"), at=200.0 * n, markers=(Marker(1),)) for n in (1, 2)]
    lone = prompt(SYSTEM, block("b"), at=401.0, markers=(Marker(0), Marker(1)))
    assert serve_all(RULE, [short, *longer, lone])[3].read == 0


def test_an_hour_marker_is_written_for_an_hour_and_what_follows_for_five_minutes():
    request = prompt(SYSTEM, block("brief", 2_000), block("turn"), markers=(Marker(1, "1h"), Marker(2)))
    later = replace(request, at=3_000.0)
    first, second = serve_all(RULE, [request, later])
    assert first == CacheCount(0, 0, 100, 7_000)
    assert second == CacheCount(0, 7_000, 100, 0)


def test_tokens_behind_the_last_marker_are_uncached():
    assert serve_all(RULE, [prompt(SYSTEM, block("tail"), markers=(Marker(0),))])[0] == CacheCount(
        100, 0, 5_000, 0
    )


def test_without_a_marker_nothing_is_kept_or_read():
    assert serve_all(RULE, [prompt(SYSTEM), prompt(SYSTEM, markers=())])[1] == CacheCount(5_000)


def test_changed_settings_lose_the_messages_and_keep_tools_and_system():
    blocks = (CacheBlock("tools", 2_000, "tools"), SYSTEM, block("turn"))
    marks = (Marker(1), Marker(2))
    before = CacheRequest(0.0, blocks, marks, settings="tool_choice auto")
    after = replace(before, settings="tool_choice none")
    assert serve_all(RULE, [before, after])[1] == CacheCount(0, 7_000, 100, 0)


def test_changed_tools_lose_everything_and_another_model_shares_nothing():
    blocks = (CacheBlock("tools", 2_000, "tools"), SYSTEM)
    before = prompt(*blocks)
    tools = prompt(CacheBlock("other tools", 2_000, "tools"), SYSTEM)
    assert serve_all(RULE, [before, tools])[1].read == 0
    assert serve_all(RULE, [before, replace(before, scope="another model")])[1].read == 0


def test_a_fifth_marker_is_refused():
    request = prompt(SYSTEM, *map(block, "abcd"), markers=tuple(Marker(n) for n in range(5)))
    with pytest.raises(BadInput, match="4 cache markers and this one has 5"):
        serve(RULE, Cache(), request)


@pytest.mark.parametrize(
    ("markers", "words"),
    [
        ((Marker(0), Marker(1, "1h")), "1h must come before"),
        ((Marker(1), Marker(0)), "rising"),
        ((Marker(0), Marker(0)), "rising"),
        ((Marker(2),), "outside"),
        ((Marker(-1),), "outside"),
    ],
)
def test_markers_out_of_place_are_refused(markers, words):
    with pytest.raises(BadInput, match=words):
        prompt(SYSTEM, block("a"), markers=markers)


def test_tiers_out_of_order_and_negative_sizes_are_refused():
    with pytest.raises(BadInput, match="tools, then system"):
        prompt(block("a"), SYSTEM)
    with pytest.raises(BadInput, match="negative"):
        prompt(block("a", -1))


# -- breakpoints (OpenAI from GPT-5.6) ---------------------------------------------------------------------


def anchored(name: str, tokens: int = 100) -> CacheBlock:
    return CacheBlock(name, tokens, anchor=True)


def test_a_stable_prefix_with_a_changing_message_gets_nothing_without_a_breakpoint_at_its_end():
    plain = [CacheRequest(0.0, (SYSTEM, anchored(word))) for word in "ab"]
    assert serve_all(OPENAI_BREAKPOINTS, plain)[1] == CacheCount(0, 0, 5_100, 0)
    marked = [replace(request, markers=(Marker(0),)) for request in plain]
    assert serve_all(OPENAI_BREAKPOINTS, marked)[1] == CacheCount(0, 5_000, 100, 0)


def test_a_growing_conversation_hits_by_the_implicit_breakpoint_over_any_number_of_blocks():
    grown = (SYSTEM, anchored("1"), *(block(f"call {n}") for n in range(60)), anchored("2"))
    first, second = CacheRequest(0.0, grown[:2]), CacheRequest(0.0, grown)
    assert serve_all(OPENAI_BREAKPOINTS, [first, second])[1] == CacheCount(0, 5_100, 6_100, 0)
    assert serve_all(BreakpointRule(implicit=False), [first, second])[1] == CacheCount(11_200)


def test_only_the_latest_breakpoints_are_written_and_tried():
    blocks = [SYSTEM, *map(block, "abcd")]
    marks = tuple(Marker(n) for n in range(5))
    explicit = BreakpointRule(implicit=False)
    head = prompt(SYSTEM, block("x"), markers=(Marker(0), Marker(1)))
    assert second_read(explicit, prompt(*blocks, markers=marks), head) == 0
    assert second_read(explicit, prompt(*blocks, markers=marks[:4]), head) == 5_000
    beside_implicit = prompt(*blocks[:4], anchored("end"), markers=marks[:4])
    assert second_read(OPENAI_BREAKPOINTS, beside_implicit, head) == 0


@pytest.mark.parametrize(("anchors", "read"), [(80, 5_100), (81, 0)])
def test_a_breakpoint_older_than_the_latest_80_is_not_tried(anchors, read):
    whole = [SYSTEM, *(anchored(str(n)) for n in range(anchors))]
    assert second_read(OPENAI_BREAKPOINTS, prompt(*whole[:2], markers=()), prompt(*whole, markers=())) == read


@pytest.mark.parametrize(("gap", "read"), [(1_799.0, 5_000), (1_800.0, 0)])
def test_a_written_breakpoint_lives_half_an_hour(gap, read):
    assert serve_all(OPENAI_BREAKPOINTS, [prompt(SYSTEM), prompt(SYSTEM, at=gap)])[1].read == read


# -- prefixes (OpenAI before, vLLM) -------------------------------------------------------------------------


@pytest.mark.parametrize(("common", "read"), [(1_023, 0), (1_024, 1_024), (1_151, 1_024), (1_152, 1_152)])
def test_openai_reads_whole_steps_of_128_from_1024_on(common, read):
    requests = [prompt(block("head", common), block(tail, 900), markers=()) for tail in "ab"]
    assert serve_all(OPENAI_PREFIXES, requests)[1] == CacheCount(common + 900 - read, read)


def test_openai_writes_are_free_and_a_life_starts_anew_with_use():
    used = [prompt(SYSTEM, at=n * 200.0, markers=()) for n in range(4)]
    counts = serve_all(OPENAI_PREFIXES, [*used, prompt(SYSTEM, at=901.0, markers=())])
    assert [count.read for count in counts] == [0, 4_992, 4_992, 4_992, 0]
    assert all(count.write_5m == count.write_1h == 0 for count in counts)


@pytest.mark.parametrize(("tokens", "read"), [(15, 0), (16, 0), (17, 16), (48, 32), (49, 48)])
def test_vllm_serves_full_blocks_of_16_and_computes_the_last_token(tokens, read):
    request = prompt(block("all", tokens), markers=())
    assert serve_all(VLLM, [request, request])[1].read == read


def test_vllm_reads_a_common_prefix_of_another_prompt():
    requests = [prompt(block("head", 40), block(tail, 10), markers=()) for tail in "ab"]
    assert serve_all(VLLM, requests)[1] == CacheCount(18, 32)


# -- drivers and vendors ------------------------------------------------------------------------------------


def test_serve_changes_no_cache_in_place_and_agrees_with_the_driver():
    requests = turns(6, 3, previous_marked=True)
    cache, counts = Cache(), []
    for request in requests:
        kept = dict(cache.kept)
        count, after = serve(RULE, cache, request)
        assert dict(cache.kept) == kept
        cache = after
        counts.append(count)
    assert tuple(counts) == serve_all(RULE, requests)


def test_serve_drops_dead_prefixes():
    _, cache = serve(RULE, Cache(), prompt(SYSTEM))
    _, after = serve(RULE, cache, prompt(block("other", 2_000), at=301.0))
    assert len(after.kept) == 1


def test_share_is_pooled_over_tokens_not_averaged_over_requests():
    small, big = prompt(block("small", 2_000)), prompt(block("big", 96_000))
    pooled = share([small, small, big], RULE, "5m")
    assert pooled.requests == 3
    assert pooled.share == 2_000 / 100_000
    assert share([], RULE, None).share is None


def test_share_takes_the_life_it_is_told_for_writes_as_well():
    requests = [prompt(SYSTEM), prompt(SYSTEM, at=600.0), prompt(SYSTEM, at=600.0 + 3_600.0)]
    counts = {ttl: share(requests, RULE, ttl).count for ttl in ("5m", "1h", None)}
    assert counts["5m"] == CacheCount(0, 0, 15_000, 0)
    assert counts["1h"] == CacheCount(0, 5_000, 0, 10_000)
    assert counts[None] == CacheCount(0, 10_000, 5_000, 0)


def test_share_sets_a_rule_without_markers_to_the_life_it_is_told():
    requests = [prompt(SYSTEM, markers=()), prompt(SYSTEM, at=600.0, markers=())]
    assert [share(requests, OPENAI_PREFIXES, ttl).count.read for ttl in ("5m", "1h", None)] == [
        0,
        4_992,
        4_992,
    ]


def test_requests_out_of_time_are_refused_unless_the_clock_is_left_out():
    requests = [prompt(SYSTEM, at=9.0), prompt(SYSTEM, at=8.0)]
    with pytest.raises(BadInput, match="Request 2 is 1 s earlier"):
        share(requests, RULE, "5m")
    assert share(requests, RULE, None).share == 0.5


def test_four_markers_coincide_or_are_absent_without_harm():
    assert four_markers(fixed_end=0, brief_end=3, previous_end=9, end=12, ttl="1h") == tuple(
        Marker(n, "1h") for n in (0, 3, 9, 12)
    )
    assert four_markers(fixed_end=0, brief_end=None, previous_end=0, end=2) == (Marker(0), Marker(2))


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-opus-5", MarkerRule(512)),
        ("anthropic/claude-sonnet-4.6", MarkerRule(1_024)),
        ("claude-opus-4-8", MarkerRule(1_024)),
        ("claude-opus-4-20250514", MarkerRule(1_024)),
        ("claude-opus-4-7", MarkerRule(2_048)),
        ("claude-haiku-4-5-20251001", MarkerRule(4_096)),
        ("claude-opus-5-5", MarkerRule(CLAUDE_LARGEST_MINIMUM)),
        ("claude-fable-5-1", MarkerRule(CLAUDE_LARGEST_MINIMUM)),
        ("gpt-4o-mini", OPENAI_PREFIXES),
        ("gpt-5", OPENAI_PREFIXES),
        ("gpt-5.4", OPENAI_PREFIXES),
        ("gpt-5.6-sol", OPENAI_BREAKPOINTS),
        ("gpt-6.1-sol", OPENAI_BREAKPOINTS),
        ("gpt-4-turbo", None),
        ("smollm2", None),
    ],
)
def test_the_rule_of_a_model_is_data_and_an_unknown_one_is_not_guessed(model, expected):
    assert cache_rule(model) == expected


def test_prefixes_are_equal_only_when_every_byte_before_is():
    one, two = prompt(block("ab"), block("c")), prompt(block("a"), block("bc"))
    assert not set(prefix_digests(one)) & set(prefix_digests(two))


sizes = st.integers(0, 3_000)
conversations = st.lists(st.lists(sizes, min_size=1, max_size=30), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(conversations, st.sampled_from([RULE, OPENAI_BREAKPOINTS, OPENAI_PREFIXES, VLLM, PrefixRule(1, 1)]))
def test_every_token_is_counted_once_and_growth_is_never_read(appended, rule):
    blocks: list[CacheBlock] = []
    previous = None
    requests = []
    for turn, added in enumerate(appended):
        blocks += [anchored(f"{turn}.{n}", tokens) for n, tokens in enumerate(added)]
        end = len(blocks) - 1
        requests.append(
            prompt(*blocks, markers=four_markers(fixed_end=0, brief_end=None, previous_end=previous, end=end))
        )
        previous = end
    before = 0
    for request, count in zip(requests, serve_all(rule, requests), strict=True):
        assert count.prompt == request.tokens
        assert min(count.uncached, count.read, count.write_5m, count.write_1h) >= 0
        assert count.read <= before
        before = request.tokens

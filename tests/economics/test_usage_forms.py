"""Golden usage payloads of five vendors in one normal form; nothing twice, nothing missing made zero (K2)."""

from __future__ import annotations

from typing import Any

import pytest

from shiftbook.economics import usage_forms
from shiftbook.messages import Usage

# Field names as each vendor documents them; the prompt is 21,300 tokens in every golden payload.
ANTHROPIC: dict[str, Any] = {
    "input_tokens": 50,
    "cache_creation_input_tokens": 1_250,
    "cache_read_input_tokens": 20_000,
    "cache_creation": {"ephemeral_5m_input_tokens": 250, "ephemeral_1h_input_tokens": 1_000},
    "output_tokens": 700,
    "output_tokens_details": {"thinking_tokens": 300},
    "service_tier": "standard",
    "server_tool_use": {"web_search_requests": 0},
}
OPENAI_CHAT: dict[str, Any] = {
    "prompt_tokens": 21_300,
    "completion_tokens": 700,
    "total_tokens": 22_000,
    "prompt_tokens_details": {"cached_tokens": 20_000, "cache_write_tokens": 1_250, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 300, "accepted_prediction_tokens": 0},
}
OPENAI_RESPONSES: dict[str, Any] = {
    "input_tokens": 21_300,
    "input_tokens_details": {"cached_tokens": 20_000, "cache_write_tokens": 1_250},
    "output_tokens": 700,
    "output_tokens_details": {"reasoning_tokens": 300},
    "total_tokens": 22_000,
}
GEMINI: dict[str, Any] = {
    "promptTokenCount": 21_300,
    "cachedContentTokenCount": 20_000,
    "candidatesTokenCount": 400,
    "thoughtsTokenCount": 300,
    "totalTokenCount": 22_000,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 21_300}],
    "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 20_000}],
}
DEEPSEEK: dict[str, Any] = {
    "prompt_tokens": 21_300,
    "completion_tokens": 700,
    "total_tokens": 22_000,
    "prompt_tokens_details": {"cached_tokens": 20_000},
    "completion_tokens_details": {"reasoning_tokens": 300},
    "prompt_cache_hit_tokens": 20_000,
    "prompt_cache_miss_tokens": 1_300,
}
GOLDEN = [
    (usage_forms.anthropic, ANTHROPIC, Usage(50, 20_000, 250, 1_000, 700, 300)),
    (usage_forms.openai_chat, OPENAI_CHAT, Usage(50, 20_000, 1_250, 0, 700, 300)),
    (usage_forms.openai_responses, OPENAI_RESPONSES, Usage(50, 20_000, 1_250, 0, 700, 300)),
    (usage_forms.gemini, GEMINI, Usage(1_300, 20_000, 0, 0, 700, 300)),
    (usage_forms.deepseek, DEEPSEEK, Usage(1_300, 20_000, 0, 0, 700, 300)),
]
CONVERTERS = [form for form, _, _ in GOLDEN]


@pytest.mark.parametrize(
    ("form", "payload", "expected"), GOLDEN, ids=lambda value: getattr(value, "__name__", "")
)
def test_five_vendors_give_one_normal_form_and_the_same_prompt(form, payload, expected):
    assert form(payload) == expected
    assert form(payload).prompt == 21_300


@pytest.mark.parametrize("form", CONVERTERS)
def test_an_empty_payload_is_missing_everywhere_and_zero_nowhere(form):
    assert form({}) == Usage()
    assert form({}).prompt is None


def test_an_openai_payload_without_details_keeps_the_prompt_and_leaves_the_split_missing():
    usage = usage_forms.openai_chat({"prompt_tokens": 900, "completion_tokens": 20})
    assert usage == Usage(900, None, None, 0, 20, None)
    assert usage.prompt == 900


def test_an_openai_model_before_writes_were_reported_has_missing_writes():
    details = {"cached_tokens": 768}
    usage = usage_forms.openai_responses(
        {"input_tokens": 900, "input_tokens_details": details, "output_tokens": 5}
    )
    assert usage == Usage(132, 768, None, 0, 5, None)


def test_anthropic_without_cache_fields_does_not_claim_that_nothing_was_cached():
    usage = usage_forms.anthropic({"input_tokens": 12, "output_tokens": 3})
    assert usage == Usage(12, None, None, None, 3, None)


@pytest.mark.parametrize(("asked", "five", "hour"), [(None, 1_250, None), ("5m", 1_250, 0), ("1h", 0, 1_250)])
def test_anthropic_writes_without_their_split_go_by_the_life_that_was_asked_for(asked, five, hour):
    payload = {key: value for key, value in ANTHROPIC.items() if key != "cache_creation"}
    usage = usage_forms.anthropic(payload, asked_ttl=asked)
    assert (usage.cache_write_5m, usage.cache_write_1h) == (five, hour)
    assert usage.prompt == 21_300


def test_anthropic_writes_are_not_counted_both_whole_and_split():
    usage = usage_forms.anthropic(ANTHROPIC)
    assert (usage.cache_write_5m or 0) + (usage.cache_write_1h or 0) == ANTHROPIC[
        "cache_creation_input_tokens"
    ]


def test_a_compaction_pass_that_the_top_level_omits_is_one_more_pass():
    top = {"input_tokens": 23_000, "output_tokens": 1_000}
    payload = {
        **top,
        "iterations": [
            {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
            {"type": "message", **top},
        ],
    }
    passes = usage_forms.anthropic_passes(payload)
    assert [(each.uncached, each.output) for each in passes] == [(180_000, 3_500), (23_000, 1_000)]
    assert usage_forms.anthropic_passes(ANTHROPIC) == (usage_forms.anthropic(ANTHROPIC),)


def test_gemini_leaves_out_zeros_so_an_absent_part_is_zero_there():
    assert usage_forms.gemini({"promptTokenCount": 8, "totalTokenCount": 8}) == Usage(8, 0, 0, 0, 0, 0)


def test_gemini_tool_prompts_stand_beside_the_prompt_count():
    assert usage_forms.gemini({**GEMINI, "toolUsePromptTokenCount": 90}).uncached == 1_390


def test_gemini_thoughts_are_added_to_the_output_once():
    usage = usage_forms.gemini(GEMINI)
    assert usage.output == GEMINI["totalTokenCount"] - GEMINI["promptTokenCount"]


@pytest.mark.parametrize(
    ("without", "expected"),
    [
        ("prompt_cache_miss_tokens", (1_300, 20_000)),
        ("prompt_tokens", (1_300, 20_000)),
        ("prompt_cache_hit_tokens", (1_300, 20_000)),
    ],
)
def test_deepseek_finds_one_side_from_the_other(without, expected):
    usage = usage_forms.deepseek({key: value for key, value in DEEPSEEK.items() if key != without})
    assert (usage.uncached, usage.cache_read) == expected


def test_deepseek_hits_and_misses_that_do_not_add_up_leave_the_split_missing():
    usage = usage_forms.deepseek({**DEEPSEEK, "prompt_cache_miss_tokens": 9})
    assert (usage.uncached, usage.cache_read, usage.prompt) == (21_300, None, 21_300)


@pytest.mark.parametrize("bad", [-1, True, "20000", 1.5, [], {}, 10**9])
def test_a_senseless_cached_count_is_missing_and_the_prompt_stays(bad):
    for form, payload, path in (
        (usage_forms.openai_chat, OPENAI_CHAT, "prompt_tokens_details"),
        (usage_forms.openai_responses, OPENAI_RESPONSES, "input_tokens_details"),
    ):
        usage = form({**payload, path: {"cached_tokens": bad}})
        assert (usage.cache_read, usage.prompt) == (None, 21_300)
    usage = usage_forms.gemini({**GEMINI, "cachedContentTokenCount": bad})
    assert (usage.cache_read, usage.prompt) == (None, 21_300)


@pytest.mark.parametrize("form", CONVERTERS)
def test_details_of_the_wrong_shape_do_not_raise(form):
    odds: list[Any] = [None, 3, "x", [], {"cached_tokens": None}]
    for odd in odds:
        names = ("cache_creation", "prompt_tokens_details", "input_tokens_details", "output_tokens_details")
        form({**dict.fromkeys(names, odd), "input_tokens": odd, "promptTokenCount": odd, "iterations": odd})

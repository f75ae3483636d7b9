"""Turn a vendor's usage payload into the one normal form, each token counted once.

Vendors disagree on one thing above all: whether tokens served from the cache are inside their input count.

    convention          who                              uncached is
    cached outside      Anthropic Messages               the input count itself
    cached inside       OpenAI Chat and Responses,       the input count less reads (and writes,
                        Gemini                           where the vendor reports them)
    hits and misses     DeepSeek                         the misses

Two kinds of absence are told apart. A figure that the vendor reports and this payload lacks is missing: None.
A thing that the vendor does not have at all (a paid cache write at Gemini or DeepSeek) is a true zero.
Where reads are missing but the inclusive input count is there, `uncached` holds the whole of it, so that the
size of the prompt stays known while its split does not.

Payloads are other people's text: a figure that is not a whole number of at least zero, or that contradicts
the count it should be a part of, is treated as missing. Nothing here raises.

Sources: platform.claude.com/docs (prompt caching, compaction), developers.openai.com/api/docs (prompt
caching), ai.google.dev/gemini-api/docs/caching, api-docs.deepseek.com/guides/kv_cache; read 2026-11.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from shiftbook.messages import Usage

Payload = Mapping[str, Any]


def anthropic(payload: Payload, *, asked_ttl: Literal["5m", "1h"] | None = None) -> Usage:
    """Anthropic Messages `usage` of the answering request; cached tokens stand outside `input_tokens`.

    A count of cache writes without its split by life (`cache_creation`) is laid to `asked_ttl`, the life
    that the request asked for. When that is not known the count stands in `cache_write_5m`, so that the
    prompt adds up, and `cache_write_1h` is None: the split is not known and neither is its price.
    A summarising pass that the vendor ran inside the request is not in here; see `anthropic_passes`.
    """
    written = _count(payload, "cache_creation_input_tokens")
    five, hour = _anthropic_writes(payload, written, asked_ttl)
    output = _count(payload, "output_tokens")
    return Usage(
        uncached=_count(payload, "input_tokens"),
        cache_read=_count(payload, "cache_read_input_tokens"),
        cache_write_5m=five,
        cache_write_1h=hour,
        output=output,
        reasoning=_within(output, _count(payload, "output_tokens_details", "thinking_tokens")),
    )


def anthropic_passes(payload: Payload, *, asked_ttl: Literal["5m", "1h"] | None = None) -> tuple[Usage, ...]:
    """Every pass that one Anthropic request was billed for: compaction passes first, the answer last.

    With compaction at a threshold the top-level counts omit the summarising pass, which is listed only in
    `iterations` (there `type` is "compaction"). Price each pass by itself: a tier goes by the prompt of a
    pass, not by their sum.
    """
    listed = payload.get("iterations")
    compactions = [
        item
        for item in (listed if isinstance(listed, list) else [])
        if isinstance(item, Mapping) and item.get("type") == "compaction"
    ]
    return tuple(anthropic(item, asked_ttl=asked_ttl) for item in (*compactions, payload))


def openai_chat(payload: Payload) -> Usage:
    """OpenAI Chat Completions `usage`; reads and writes are inside `prompt_tokens`.

    GPT-5.6 and later report `cache_write_tokens` (life 30 minutes); they stand in `cache_write_5m`, the
    short-lived kind. OpenAI has no second life, so `cache_write_1h` is a true zero once input is reported.
    """
    return _openai(payload, "prompt_tokens", "completion_tokens")


def openai_responses(payload: Payload) -> Usage:
    """OpenAI Responses `usage`; the same convention as Chat under other names."""
    return _openai(payload, "input_tokens", "output_tokens")


def gemini(payload: Payload) -> Usage:
    """Gemini `usageMetadata`; cached tokens are inside `promptTokenCount`, thoughts outside candidates.

    The wire is protobuf JSON, which leaves out counts of zero: once `promptTokenCount` is there, an absent
    part is a true zero. Prompts of server-side tools (`toolUsePromptTokenCount`) are counted beside
    `promptTokenCount` and billed as input, so they are added to `uncached`.
    """
    prompt = _count(payload, "promptTokenCount")
    if prompt is None:
        return Usage(
            output=_count(payload, "candidatesTokenCount"), reasoning=_count(payload, "thoughtsTokenCount")
        )
    read = _zero_if_absent(payload, "cachedContentTokenCount")
    tool = _zero_if_absent(payload, "toolUsePromptTokenCount")
    thoughts = _zero_if_absent(payload, "thoughtsTokenCount")
    candidates = _zero_if_absent(payload, "candidatesTokenCount")
    uncached, read = _split(prompt, read)
    return Usage(
        uncached=None if tool is None else uncached + tool,
        cache_read=read,
        cache_write_5m=0,
        cache_write_1h=0,
        output=None if candidates is None or thoughts is None else candidates + thoughts,
        reasoning=thoughts,
    )


def deepseek(payload: Payload) -> Usage:
    """DeepSeek chat `usage`; hits and misses add up to `prompt_tokens`, writing to the cache is free.

    Either side of the pair is found from the other when only one was passed on; a pair that contradicts
    `prompt_tokens` leaves the split missing.
    """
    prompt = _count(payload, "prompt_tokens")
    hit = _count(payload, "prompt_cache_hit_tokens")
    if hit is None:
        hit = _count(payload, "prompt_tokens_details", "cached_tokens")
    miss = _count(payload, "prompt_cache_miss_tokens")
    if prompt is None and hit is not None and miss is not None:
        prompt = hit + miss
    if prompt is not None and miss is not None:
        rest = prompt - miss
        hit = _within(prompt, rest) if hit in (None, rest) else None
    output = _count(payload, "completion_tokens")
    uncached, read = (miss, hit) if prompt is None else _split(prompt, hit)
    written = None if uncached is None else 0
    return Usage(
        uncached=uncached,
        cache_read=read,
        cache_write_5m=written,
        cache_write_1h=written,
        output=output,
        reasoning=_within(output, _count(payload, "completion_tokens_details", "reasoning_tokens")),
    )


def _openai(payload: Payload, inputs: str, outputs: str) -> Usage:
    prompt, output = _count(payload, inputs), _count(payload, outputs)
    read = _count(payload, f"{inputs}_details", "cached_tokens")
    written = _count(payload, f"{inputs}_details", "cache_write_tokens")
    uncached = prompt
    if prompt is not None:
        if (read or 0) + (written or 0) > prompt:
            read = written = None
        uncached = prompt - (read or 0) - (written or 0)
    return Usage(
        uncached=uncached,
        cache_read=read,
        cache_write_5m=written,
        cache_write_1h=None if prompt is None else 0,
        output=output,
        reasoning=_within(output, _count(payload, f"{outputs}_details", "reasoning_tokens")),
    )


def _anthropic_writes(
    payload: Payload, written: int | None, asked_ttl: Literal["5m", "1h"] | None
) -> tuple[int | None, int | None]:
    five = _count(payload, "cache_creation", "ephemeral_5m_input_tokens")
    hour = _count(payload, "cache_creation", "ephemeral_1h_input_tokens")
    if five is not None and hour is not None and written in (None, five + hour):
        return five, hour
    if written is None:
        return five, hour
    if written == 0:
        return 0, 0
    if five is not None and hour is None and five <= written:
        return five, written - five
    if hour is not None and five is None and hour <= written:
        return written - hour, hour
    if asked_ttl == "1h":
        return 0, written
    return written, (0 if asked_ttl == "5m" else None)


def _split(whole: int, part: int | None) -> tuple[int, int | None]:
    """The rest and the part; a part larger than the whole is missing."""
    part = _within(whole, part)
    return whole - (part or 0), part


def _within(whole: int | None, part: int | None) -> int | None:
    if part is None or part < 0 or (whole is not None and part > whole):
        return None
    return part


def _count(payload: Payload, *path: str) -> int | None:
    value: Any = payload
    for key in path:
        if not isinstance(value, (dict, Mapping)):  # A dict is told at once; asking the ABC is slow.
            return None
        value = value.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value


def _zero_if_absent(payload: Payload, key: str) -> int | None:
    return 0 if payload.get(key) is None else _count(payload, key)

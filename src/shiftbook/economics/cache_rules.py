"""The three kinds of prompt cache that vendors run, each as a small rule over the prefixes it has kept.

    MarkerRule      Anthropic: kept at markers only, found by looking back a few blocks from a marker
    BreakpointRule  OpenAI from GPT-5.6: kept at breakpoints, found exactly at one of the latest 80
    PrefixRule      OpenAI before that, vLLM, SGLang: every prefix kept in steps of n tokens, no markers

A step of a rule reads and changes the table of kept prefixes that it is handed; `cache.serve` wraps it into
a function of values. Where a vendor's text leaves room the rule takes the reading that claims less: only what
is paid for is kept, a prefix inside a changed block is lost. Not modelled: eviction before a life ends,
requests that overlap in time, routing to another machine.

Sources: platform.claude.com/docs/en/build-with-claude/prompt-caching; developers.openai.com/api/docs/guides/
prompt-caching (read 2026-11); docs.vllm.ai, automatic prefix caching.
"""

from __future__ import annotations

from dataclasses import dataclass

from shiftbook.economics.cache_request import (
    CacheCount,
    CacheRequest,
    Marker,
    Ttl,
    prefix_digests,
    prefix_tokens,
)
from shiftbook.errors import BadInput


@dataclass(frozen=True, slots=True)
class Kept:
    """A kept prefix: dead from `until` seconds on; `ttl` is the life that a use gives it anew."""

    until: float
    ttl: Ttl


KeptPrefixes = dict[bytes, Kept]


@dataclass(frozen=True, slots=True)
class MarkerRule:
    """Anthropic's rule. A prefix of `minimum` tokens is kept, a shorter one is passed over in silence.

    From each marker at most `look_back` positions are tried, the marker's own the first of them. The
    deepest kept prefix found is read; what follows up to the last 1h marker is written for an hour, what
    follows that up to the last marker for five minutes, the rest is uncached. Each use starts a life anew.
    """

    minimum: int
    look_back: int = 20
    most_markers: int = 4
    life_5m: float = 300.0
    life_1h: float = 3600.0

    def step(self, kept: KeptPrefixes, request: CacheRequest) -> CacheCount:
        """Serve one request, changing `kept`; refuses more than `most_markers` markers."""
        if len(request.markers) > self.most_markers:
            raise BadInput(
                f"A request may carry {self.most_markers} cache markers and this one has "
                f"{len(request.markers)}; drop the ones in the middle."
            )
        digests, tokens = prefix_digests(request), prefix_tokens(request)
        markers = [marker for marker in request.markers if tokens[marker.at] >= self.minimum]
        hit = self._deepest(kept, request.at, markers, digests)
        read = 0 if hit is None else tokens[hit]
        hour = max((tokens[m.at] for m in markers if m.ttl == "1h"), default=0)
        last = tokens[markers[-1].at] if markers else 0
        write_1h = max(0, hour - read)
        write_5m = max(0, last - max(hour, read))
        self._keep(kept, request.at, markers, digests, hit)
        return CacheCount(request.tokens - read - write_1h - write_5m, read, write_5m, write_1h)

    def _deepest(
        self, kept: KeptPrefixes, at: float, markers: list[Marker], digests: list[bytes]
    ) -> int | None:
        for marker in reversed(markers):
            for place in range(marker.at, max(-1, marker.at - self.look_back), -1):
                if _alive(kept, digests[place], at):
                    return place
        return None

    def _keep(
        self, kept: KeptPrefixes, at: float, markers: list[Marker], digests: list[bytes], hit: int | None
    ) -> None:
        if hit is not None:
            self._renew(kept, digests[hit], at, kept[digests[hit]].ttl)
        for marker in markers:
            digest = digests[marker.at]
            if _alive(kept, digest, at):
                self._renew(kept, digest, at, kept[digest].ttl)
            elif hit is None or marker.at > hit:
                self._renew(kept, digest, at, marker.ttl)

    def _renew(self, kept: KeptPrefixes, digest: bytes, at: float, ttl: Ttl) -> None:
        kept[digest] = Kept(at + (self.life_1h if ttl == "1h" else self.life_5m), ttl)


@dataclass(frozen=True, slots=True)
class BreakpointRule:
    """OpenAI's rule from GPT-5.6 on: a prefix is read only exactly at a breakpoint, however far back.

    At most `most_written` breakpoints are written in a request: the latest explicit ones, or, with
    `implicit`, the vendor's own at the end of the newest user or tool message (the last anchor) and the
    latest explicit ones beside it. The latest `most_tried` breakpoints of the conversation are tried; with
    `implicit` each anchor is one of them. Writes are for `life` seconds and counted as `write_5m`, the
    short-lived kind. A read does not lengthen a life: the vendor promises a minimum from the write only.
    """

    minimum: int = 1024
    most_written: int = 4
    most_tried: int = 80
    implicit: bool = True
    life: float = 1800.0

    def step(self, kept: KeptPrefixes, request: CacheRequest) -> CacheCount:
        """Serve one request, changing `kept`."""
        digests, tokens = prefix_digests(request), prefix_tokens(request)
        explicit = [marker.at for marker in request.markers]
        anchors = [n for n, block in enumerate(request.blocks) if block.anchor] if self.implicit else []
        tried = sorted({*explicit, *anchors})[-self.most_tried :]
        written = [*explicit[-(self.most_written - bool(anchors)) :], *anchors[-1:]]
        read = 0
        for place in reversed(tried):
            if tokens[place] >= self.minimum and _alive(kept, digests[place], request.at):
                read = tokens[place]
                break
        last = 0
        for place in written:
            if tokens[place] >= self.minimum and tokens[place] > read:
                last = max(last, tokens[place])
                kept[digests[place]] = Kept(request.at + self.life, "5m")
        write = max(0, last - read)
        return CacheCount(request.tokens - read - write, read, write, 0)


@dataclass(frozen=True, slots=True)
class PrefixRule:
    """A cache without markers: the longest known prefix is read, in whole steps of `step_tokens`.

    Prompts below `minimum` tokens are neither read nor kept. `last_computed`: the engine computes the
    prompt's last token in any case (vLLM), so a repeated prompt is never served whole. A life starts anew
    with each use and `life` may be infinite. Writing is free and not counted as a write. Only prompts are
    kept here; an engine that also keeps the replies serves a little more.
    """

    minimum: int = 1024
    step_tokens: int = 128
    life: float = 300.0
    last_computed: bool = False

    def step(self, kept: KeptPrefixes, request: CacheRequest) -> CacheCount:
        """Serve one request, changing `kept`."""
        total = request.tokens
        if total < self.minimum:
            return CacheCount(uncached=total)
        digests, tokens = prefix_digests(request), prefix_tokens(request)
        common = 0
        for place in range(len(digests) - 1, -1, -1):
            if _alive(kept, digests[place], request.at):
                common = tokens[place]
                break
        if self.last_computed:
            common = min(common, total - 1)
        read = common - common % self.step_tokens
        if read < self.minimum:
            read = 0
        for digest in digests:
            kept[digest] = Kept(request.at + self.life, "5m")
        return CacheCount(total - read, read)


CacheRule = MarkerRule | BreakpointRule | PrefixRule


def _alive(kept: KeptPrefixes, digest: bytes, at: float) -> bool:
    found = kept.get(digest)
    return found is not None and at < found.until

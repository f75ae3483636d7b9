"""Run requests through a vendor's prompt cache and say how many tokens it would have served.

`serve` is one step: a rule, a cache and a request give the count and the next cache. `serve_all` and `share`
drive a whole sequence; a `Serving` is handed one request after the other, for sequences too long to hold. A
cache is a value; nothing but a `Serving` is changed in place, no clock is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Literal

from shiftbook.economics.cache_request import CacheCount, CacheRequest, Ttl
from shiftbook.economics.cache_rules import CacheRule, Kept, KeptPrefixes, MarkerRule
from shiftbook.errors import BadInput

_SECONDS: Mapping[Ttl, float] = {"5m": 300.0, "1h": 3600.0}


@dataclass(frozen=True, slots=True)
class Cache:
    """The prefixes that a vendor keeps, as a value. Start with an empty one."""

    kept: Mapping[bytes, Kept] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CacheShare:
    """What a sequence of requests was served, pooled over tokens (not averaged over requests)."""

    requests: int
    count: CacheCount

    @property
    def share(self) -> float | None:
        """Tokens read from the cache over all prompt tokens; None when there were no tokens."""
        return self.count.read / self.count.prompt if self.count.prompt else None


def serve(rule: CacheRule, cache: Cache, request: CacheRequest) -> tuple[CacheCount, Cache]:
    """Serve one request: where its tokens came from, and the cache after it. Dead prefixes are dropped."""
    kept: KeptPrefixes = {digest: entry for digest, entry in cache.kept.items() if request.at < entry.until}
    count = rule.step(kept, request)
    return count, Cache(kept)


class Serving:
    """A sequence in progress, from an empty cache; `ttl` as for `share`, by default the requests' own."""

    def __init__(self, rule: CacheRule, ttl: Ttl | Literal["own"] | None = "own") -> None:
        self._rule = rule if ttl == "own" else _lived(rule, ttl)
        self._ttl = ttl
        self._kept: KeptPrefixes = {}
        self._before = -inf
        self._requests = 0
        self._count = CacheCount()

    @property
    def shares(self) -> CacheShare:
        """What was served so far."""
        return CacheShare(self._requests, self._count)

    def take(self, request: CacheRequest) -> CacheCount:
        """Serve the next request; one that is earlier than the one before it is refused."""
        timed = request if self._ttl == "own" else _timed(request, self._ttl)
        if timed.at < self._before:
            raise BadInput(
                f"Request {self._requests + 1} is {self._before - timed.at:g} s earlier than the one before "
                "it; order the requests by the time they were sent."
            )
        self._before = timed.at
        count = self._rule.step(self._kept, timed)
        self._requests += 1
        self._count += count
        return count


def serve_all(rule: CacheRule, requests: Iterable[CacheRequest]) -> tuple[CacheCount, ...]:
    """Serve requests in order from an empty cache; refuses a request that is earlier than the one before."""
    serving = Serving(rule)
    return tuple(serving.take(request) for request in requests)


def share(requests: Iterable[CacheRequest], rule: CacheRule, ttl: Ttl | None) -> CacheShare:
    """The share of prompt tokens that `rule` serves from its cache, every life being `ttl`.

    `ttl` None stops the clock: what was kept stays kept, and requests may come in any order of time.
    Otherwise every marker, or a rule without lives in its markers, is set to `ttl`.
    """
    serving = Serving(rule, ttl)
    for request in requests:
        serving.take(request)
    return serving.shares


def _lived(rule: CacheRule, ttl: Ttl | None) -> CacheRule:
    if ttl is None or isinstance(rule, MarkerRule):
        return rule
    return replace(rule, life=_SECONDS[ttl])


def _timed(request: CacheRequest, ttl: Ttl | None) -> CacheRequest:
    if ttl is None:
        return replace(request, at=0.0)
    return replace(request, markers=tuple(replace(marker, ttl=ttl) for marker in request.markers))

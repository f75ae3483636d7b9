"""A measured session as plain rows for scripts, and its findings as sentences for people.

Fields are only ever added. None is "not known", never zero; money is in USD, times in milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal

from shiftbook.economics.cost import CostParts
from shiftbook.measure.session import Measured, UsageShare, prompt_tokens
from shiftbook.messages import Json
from shiftbook.sessions.requests import RecordedRequests, RequestRow


def session_row(measured: Measured) -> dict[str, Json]:
    """Everything about one session, for `measure --json`."""
    session, growth, warmth = measured.session, measured.growth, measured.warmth
    median, largest = prompt_tokens(measured.sizes)
    advice, window = measured.advice, measured.window
    return {
        "path": session.path,
        "format": session.format,
        "name": session.name,
        "model": measured.model,
        "requests": measured.requests,
        "branches": measured.branches,
        "prompt_tokens": {"median": median, "max": largest, "sum": sum(measured.sizes) or None},
        "cached_share": cached_share(session.rows),
        "fixed": growth.fixed,
        "growth": growth.growth,
        "spread": growth.spread,
        "falls": [
            {"at": fall.at, "before": fall.before, "after": fall.after, "why": fall.why}
            for fall in growth.falls
        ],
        "window": None if window is None else window.tokens,
        "window_by": None if window is None else window.known_by,
        "window_at": measured.window_at,
        "tier": None if advice is None else advice.tier,
        "tier_at": None if advice is None else advice.tier_at,
        "cost": _cost(measured),
        "rewrite_factor": warmth.rewrite,
        "cold_share": warmth.cold_share,
        "cache_life": warmth.life if warmth.life_recorded else None,
        "misses": warmth.missed,
        "pauses": [
            {
                "over_ms": bar.over_ms,
                "under_ms": bar.under_ms,
                "requests": bar.requests,
                "missed": bar.missed,
                "rewritten": bar.rewritten,
            }
            for bar in warmth.pauses
        ],
        "breaks": [
            {"branch": each.branch, "at": each.at, "tokens": each.tokens, "pause_ms": each.pause_ms}
            for each in warmth.breaks
        ],
        "m_star": None if advice is None else advice.m_star,
        "t_star": None if advice is None else advice.t_star,
        "k_star": None if advice is None else advice.k_star,
        "transcript_cost": None if advice is None else advice.transcript,
        "rebuilt_cost": None if advice is None else advice.rebuilt,
        "verdict": verdict(measured),
        "usage": dict(measured.sources),
        "broken": [{"line": each.line, "what": each.what} for each in session.broken],
    }


def labels(sessions: Sequence[RecordedRequests]) -> list[str]:
    """A name for each session: its file's, with its own where the file holds more than one."""
    held = Counter(each.path for each in sessions)
    told = []
    for each in sessions:
        file = each.path.replace("\\", "/").rsplit("/", 1)[-1]
        told.append(f"{file}#{each.name}" if held[each.path] > 1 else file)
    return told


def cached_share(rows: Sequence[RequestRow]) -> float | None:
    """Tokens read from a cache over all prompt tokens, pooled over the requests that record both."""
    known = [
        (row.usage.cache_read, prompt)
        for row in rows
        if row.usage.cache_read is not None and (prompt := row.usage.prompt) is not None
    ]
    whole = sum(prompt for _, prompt in known)
    return sum(read for read, _ in known) / whole if whole else None


def verdict(measured: Measured) -> str:
    """Whether a rebuilt prompt would have been cheaper, in one sentence."""
    advice = measured.advice
    if advice is None:
        return f"Nothing can be said of a rebuilt prompt: {measured.no_advice}."
    calls, level = f"{advice.requests:,}", f"{advice.t_star:,.1f}"
    if advice.shorter:
        return f"Your session is shorter than T* ({calls} requests, T* {level}): the transcript is cheaper."
    saved = advice.transcript - advice.rebuilt
    if saved <= 0:
        return f"Your session is about as long as T* ({calls} requests, T* {level}): neither is cheaper."
    return (
        f"Your session is longer than T* ({calls} requests, T* {level}): rebuilt first at request "
        f"{advice.m_star:,.0f} and then every {advice.k_star:,.0f}, it would cost about "
        f"{usd(advice.rebuilt)} instead of {usd(advice.transcript)} for a transcript kept whole, "
        f"{saved / advice.transcript:.0%} less."
    )


def share_sentence(share: UsageShare) -> str:
    """How far the figures can be trusted, in one sentence."""
    if share["reported"] is None:
        return "There is no request to say anything about."
    told = (
        ("reported", share["reported"]),
        ("differenced", share["differenced"]),
        ("estimated", share["estimated"]),
        ("missing", share["missing"]),
    )
    parts = [f"{value:.1%} {name}" for name, value in told if value]
    return f"Usage of all requests: {', '.join(parts)}."


def usd(amount: float | Decimal | None) -> str:
    """Dollars for people: cents, or four places below a dollar; "not known" for None."""
    if amount is None:
        return "not known"
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:,.4f}"


OUTPUT_CUT = (
    "The recorded output is that of each reply's first moments: what output cost, and the whole with it, is "
    "the least that was paid."
)


def pooled_cost(bills: Iterable[CostParts | None]) -> CostParts | None:
    """The sum over sessions, or None when any is not known."""
    whole = CostParts()
    for each in bills:
        if each is None:
            return None
        whole += each
    return whole


def _cost(measured: Measured) -> dict[str, Json]:
    parts = measured.bill.parts
    return {
        "total": None if parts is None else float(parts.total),
        "uncached": None if parts is None else float(parts.uncached),
        "cache_write": None if parts is None else float(parts.cache_write),
        "cache_read": None if parts is None else float(parts.cache_read),
        "output": None if parts is None else float(parts.output),
        "lower_bound": measured.bill.output_cut,
        "unpriced": dict(measured.bill.unpriced),
    }

"""A measured session as plain rows for scripts, and its findings as sentences for people.

Fields are only ever added. None is "not known", never zero; money is in USD, times in milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal

from shiftbook.economics.cost import CostParts
from shiftbook.measure.advice import Advice
from shiftbook.measure.session import Measured, UsageShare, prompt_tokens
from shiftbook.messages import Json
from shiftbook.sessions.requests import RecordedRequests, RequestRow


def session_row(measured: Measured) -> dict[str, Json]:
    """Everything about one session, for `measure --json`; docs/reference/measure.md describes each field."""
    session, main, window = measured.session, measured.main, measured.window
    median, largest = prompt_tokens(measured.sizes)
    return {
        "path": session.path,
        "format": session.format,
        "name": session.name,
        "model": measured.model,
        "requests": measured.requests,
        "branches": measured.branches,
        "branch_requests": None if main is None else main.requests,
        "prompt_tokens": {"median": median, "max": largest, "sum": sum(measured.sizes) or None},
        "prompts": None if main is None else [point.prompt for point in main.points],
        **_growth(measured),
        "window": None if window is None else window.tokens,
        "window_by": None if window is None else window.known_by,
        "window_at": measured.window_at,
        "cost": _cost(measured),
        **_cache(measured),
        **_advice(measured.advice),
        "verdict": verdict(measured),
        "usage": dict(measured.sources),
        "broken": [{"line": each.line, "what": each.what} for each in session.broken],
        "copies": session.copies,
    }


def all_row(sessions: Sequence[Measured]) -> dict[str, Json]:
    """What holds for all sessions together; a sum of which a part is not known is not known."""
    whole = pooled_cost(each.bill.parts for each in sessions)
    advised = [each.advice for each in sessions if each.advice is not None]
    return {
        "sessions": len(sessions),
        "requests": sum(each.requests for each in sessions),
        "cached_share": cached_share([row for each in sessions for row in each.session.rows]),
        "cost": None if whole is None else float(whole.total),
        "lower_bound": any(each.bill.output_cut for each in sessions),
        "with_t_star": len(advised),
        "shorter": sum(each.shorter for each in advised),
    }


def _growth(measured: Measured) -> dict[str, Json]:
    growth, main = measured.growth, measured.main
    known = main is not None and len(main.points) > 1
    falls: list[Json] = [
        {"at": fall.at, "before": fall.before, "after": fall.after, "why": fall.why} for fall in growth.falls
    ]
    return {
        "fixed": growth.fixed,
        "growth": growth.growth,
        "spread": growth.spread,
        "falls": falls if known else None,
    }


def _cache(measured: Measured) -> dict[str, Json]:
    """What the cache did; where no read is recorded, or no request has one before it, nothing is known."""
    warmth = measured.warmth
    known = warmth.pairs > 0
    breaks: list[Json] = [
        {"branch": each.branch, "at": each.at, "tokens": each.tokens, "pause_ms": each.pause_ms}
        for each in warmth.breaks
    ]
    pauses: list[Json] = [
        {
            "over_ms": bar.over_ms,
            "under_ms": bar.under_ms,
            "requests": bar.requests,
            "missed": bar.missed,
            "rewritten": bar.rewritten,
        }
        for bar in warmth.pauses
    ]
    return {
        "cached_share": cached_share(measured.session.rows),
        "rewrite_factor": warmth.rewrite,
        "pairs": warmth.pairs,
        "cold": warmth.cold if known else None,
        "cold_share": warmth.cold_share,
        "cache_life": warmth.life if warmth.life_recorded else None,
        "cache_life_used": warmth.life,
        "misses": warmth.missed if known else None,
        "pauses": pauses if any(bar.requests for bar in warmth.pauses) else None,
        "breaks": breaks if known else None,
        "breaks_tokens": sum(each.tokens for each in warmth.breaks) if known else None,
    }


def _advice(advice: Advice | None) -> dict[str, Json]:
    if advice is None:
        return dict.fromkeys(_ADVICE)
    told = (
        advice.tier,
        advice.tier_at,
        advice.rebuilt_tokens,
        advice.m_star,
        advice.t_star,
        advice.k_star,
        advice.shorter,
        advice.transcript,
        advice.rebuilt,
    )
    return dict(zip(_ADVICE, told, strict=True))


_ADVICE = (
    "tier",
    "tier_at",
    "rebuilt_tokens",
    "m_star",
    "t_star",
    "k_star",
    "shorter",
    "transcript_cost",
    "rebuilt_cost",
)


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

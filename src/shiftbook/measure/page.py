"""Measured sessions as one page: a chart of every session's growth, and what to make of it.

For somebody who has never seen the project: each section says first what is looked at and what would be good.
"""

from __future__ import annotations

from collections.abc import Sequence

from shiftbook.measure.session import Measured, prompt_tokens, usage_share
from shiftbook.measure.told import OUTPUT_CUT, cached_share, labels, pooled_cost, share_sentence, usd, verdict
from shiftbook.pages import (
    Bar,
    Level,
    Markup,
    Moment,
    Section,
    bar_chart,
    facts,
    joined,
    line_chart,
    notes,
    page,
    paragraph,
    table,
)
from shiftbook.pages import Series as Line

CHARTS_MAX = 60
"""So many sessions have a section of their own, those with the most requests; the table has all."""

LEAD = (
    "An agent sends its whole prompt to the model again at every step. This page shows, for recorded "
    "sessions, how large those prompts became, what was paid for them, how much of that the provider's "
    "prompt cache saved, and whether a prompt that is rebuilt now and then would have been cheaper than "
    "keeping everything."
)

WORDS = """\
A request is one call of the model. Its prompt is everything that is sent, in tokens as the provider counts.
The fixed part is what a prompt holds before anything is said: instructions, descriptions of tools.
Growth is what each request adds to the next prompt.
Cached is the share of prompt tokens that the provider still had, and charged at a fraction of the price.
Cold is a request that found the cache gone although the prompt only grew, mostly after a pause.
A break is a cold request without a pause: something near the front of the prompt was changed.
T* is the request at which a prompt that was rebuilt once, at request m*, has saved what the rebuilding cost.
k* is how many requests are best left between two rebuilds after that.
"Not known" stands where the recording or the price table does not say; nothing is taken to be zero.\
""".splitlines()


def measure_page(sessions: Sequence[Measured], *, command: str, version: str) -> str:
    """The page as text; deterministic."""
    named = list(zip(labels([each.session for each in sessions]), sessions, strict=True))
    largest = sorted(range(len(named)), key=lambda at: -sessions[at].requests)[:CHARTS_MAX]
    shown = [named[at] for at in sorted(largest)]
    sections = [
        Section("In short", _summary(sessions)),
        Section("How to read this", (notes(WORDS),)),
    ]
    if len(sessions) > 1:
        sections.append(Section("All sessions", (_overview(named),)))
        sections.extend(Section(name, (paragraph(verdict(each)), *_session(each))) for name, each in shown)
    else:
        sections.extend(Section(name, _session(each)) for name, each in shown)
    title = "Where your sessions stand" if len(sessions) > 1 else "Where your session stands"
    return page(title, sections, lead=LEAD, command=command, version=version)


def _summary(sessions: Sequence[Measured]) -> tuple[Markup, ...]:
    whole = pooled_cost(each.bill.parts for each in sessions)
    rows = [row for each in sessions for row in each.session.rows]
    told = [each.advice for each in sessions if each.advice is not None]
    short = sum(each.shorter for each in told)
    least = "at least " if whole is not None and any(each.bill.output_cut for each in sessions) else ""
    said = {
        "Sessions": f"{len(sessions):,}",
        "Requests": f"{sum(each.requests for each in sessions):,}",
        "Cost": f"{least}{usd(None if whole is None else whole.total)}",
        "Read from the cache": _share(cached_share(rows)),
        "Cheaper as they are": f"{short:,} of {len(told):,} (shorter than T*, which is explained below)",
    }
    parts = [facts(said), paragraph(share_sentence(usage_share(sessions)))]
    if len(sessions) == 1:
        parts.insert(0, paragraph(verdict(sessions[0])))
    return tuple(parts)


def _overview(named: Sequence[tuple[str, Measured]]) -> Markup:
    columns = ("session", "requests", "median prompt", "largest", "cached", "cold", "breaks", "cost", "T*")
    return table(columns, [_row(name, each) for name, each in named], right=columns[1:], digits=1)


def _row(name: str, measured: Measured) -> tuple[str | int | float | None, ...]:
    median, largest = prompt_tokens(measured.sizes)
    parts, advice = measured.bill.parts, measured.advice
    return (
        name,
        measured.requests,
        median,
        largest,
        _share(cached_share(measured.session.rows)),
        _share(measured.warmth.cold_share),
        len(measured.warmth.breaks) if measured.warmth.pairs else None,
        usd(None if parts is None else parts.total),
        None if advice is None else advice.t_star,
    )


def _session(measured: Measured) -> tuple[Markup, ...]:
    return (
        _growth_chart(measured),
        facts(_facts(measured)),
        *_falls(measured),
        _cost_chart(measured),
        _pauses(measured),
    )


def _growth_chart(measured: Measured) -> Markup:
    points = () if measured.main is None else measured.main.points
    window = measured.window
    largest = max((point.prompt for point in points), default=0)
    levels = [] if window is None or window.tokens > 2 * largest else [Level("window", window.tokens)]
    return line_chart(
        [Line("prompt tokens", [(at, point.prompt) for at, point in enumerate(points, start=1)])],
        title="Prompt tokens, request by request",
        x_label="request",
        y_label="tokens",
        levels=levels,
        moments=[Moment(f"request {fall.at}: {fall.why}", fall.at) for fall in measured.growth.falls],
    )


def _facts(measured: Measured) -> dict[str, str]:
    growth, warmth, window, advice = measured.growth, measured.warmth, measured.window, measured.advice
    told = {
        "Model": measured.model or "not recorded",
        "Format": measured.session.format,
        "Fixed part": _tokens(growth.fixed),
        "Growth": _tokens(growth.growth, "tokens a request"),
    }
    if window is not None and measured.window_at is not None:
        told["Window"] = (
            f"{window.tokens:,} tokens after {measured.window_at:,.0f} requests ({window.known_by})"
        )
    if advice is not None and advice.tier is not None and advice.tier_at is not None:
        told["Dearer tariff"] = f"above {advice.tier:,} tokens, after {advice.tier_at:,.0f} requests"
    told["Read from the cache"] = f"{_share(cached_share(measured.session.rows))} of all prompt tokens"
    if warmth.pairs:
        told["Found the cache cold"] = f"{warmth.cold:,} of {warmth.pairs:,} requests"
        lost = sum(each.tokens for each in warmth.breaks)
        told["Broke within its life"] = f"{len(warmth.breaks):,} times, {lost:,} tokens written anew"
    else:
        told["Found the cache cold"] = "not known"
    if warmth.rewrite is not None:
        told["Written to the cache"] = f"{warmth.rewrite:.1f} times the largest prompt (1 is ideal)"
    if advice is not None:
        stars = f"{advice.m_star:,.1f}, {advice.t_star:,.1f}, {advice.k_star:,.1f} requests"
        told["m*, T*, k*"] = f"{stars}, if a rebuilt prompt holds {advice.rebuilt_tokens:,.0f} tokens"
    return told


def _falls(measured: Measured) -> tuple[Markup, ...]:
    if not measured.growth.falls:
        return ()
    columns = ("at request", "from", "to", "why")
    rows = [(fall.at, fall.before, fall.after, fall.why) for fall in measured.growth.falls]
    return (table(columns, rows, right=columns[:3], caption="Where the prompt became smaller, and why"),)


def _cost_chart(measured: Measured) -> Markup:
    parts = measured.bill.parts
    if parts is None:
        why = "; ".join(f"{times:,} times: {reason}" for reason, times in measured.bill.unpriced)
        return paragraph(f"What it cost is not known ({why or 'no requests'}).")
    kinds = (
        ("input, not cached", parts.uncached),
        ("written to the cache", parts.cache_write),
        ("read from the cache", parts.cache_read),
        ("output", parts.output),
    )
    bars = [Bar(name, float(amount), colour=at) for at, (name, amount) in enumerate(kinds)]
    chart = bar_chart(bars, title=f"What was paid for: {usd(parts.total)} in all", unit="USD")
    return joined((chart, paragraph(OUTPUT_CUT))) if measured.bill.output_cut else chart


def _pauses(measured: Measured) -> Markup:
    columns = ("pause before the request", "requests", "missed the cache", "tokens written anew")
    rows = [
        (_pause(each.over_ms, each.under_ms), each.requests, each.missed, each.rewritten)
        for each in measured.warmth.pauses
        if each.requests
    ]
    known = [each for each in measured.warmth.pauses if each.requests]
    if not known:
        return paragraph("No pause is known: the recording has no stamps, or only one request.")
    bars = [
        Bar(_pause(each.over_ms, each.under_ms), 100 * each.missed / each.requests, colour=1)
        for each in known
    ]
    chart = bar_chart(
        bars, title="Of the requests after a pause, how many missed the cache", most=100, digits=0, unit="%"
    )
    told = table(columns, rows, right=columns[1:], caption="Pauses, and what they did to the cache")
    return joined((chart, told))


def _pause(over_ms: int, under_ms: int | None) -> str:
    over = over_ms // 60_000
    if under_ms is None:
        return f"{over} min and more"
    return f"{over} to {under_ms // 60_000} min" if over else f"under {under_ms // 60_000} min"


def _share(value: float | None) -> str:
    return "not known" if value is None else f"{value:.1%}"


def _tokens(value: float | None, unit: str = "tokens") -> str:
    return "not known" if value is None else f"{value:,.0f} {unit}"

"""Measured sessions told to a person at a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from shiftbook.cli.chart import text_chart
from shiftbook.cli.output import line, table
from shiftbook.cli.words import count
from shiftbook.measure.causes import told_of_alarms, told_of_misses
from shiftbook.measure.predict import NEAR, Held, check_sums, reasons
from shiftbook.measure.session import Measured, prompt_tokens, usage_share
from shiftbook.measure.told import OUTPUT_CUT, cached_share, labels, pooled_cost, share_sentence, usd, verdict
from shiftbook.measure.warmth import Pause
from shiftbook.sessions.requests import RecordedRequests

FALLS_SHOWN = 20


def tell_one(measured: Measured) -> None:
    """One session in full, the verdict last."""
    session = measured.session
    line(f"{session.path}: {session.format}, {count(measured.requests, 'request')}, {measured.model or '?'}")
    if measured.main is not None:
        line("")
        line("prompt tokens, request by request")
        for each in text_chart([point.prompt for point in measured.main.points]):
            line(each)
    line("")
    table(("", " "), [*_growth_lines(measured), *_cache_lines(measured)], folded=(" ",))
    _tell_falls(measured)
    _tell_cost(measured)
    _tell_pauses(measured.warmth.pauses)
    line("")
    line(verdict(measured))
    line(share_sentence(usage_share([measured])))


def tell_table(sessions: Sequence[Measured]) -> None:
    """A line for each session, then what holds for all of them."""
    columns = (
        "session",
        "requests",
        "median",
        "max",
        "fixed",
        "growth",
        "cached",
        "cold",
        "breaks",
        "cost",
        "T*",
    )
    names = labels([each.session for each in sessions])
    rows = [_table_row(name, each) for name, each in zip(names, sessions, strict=True)]
    whole = pooled_cost(each.bill.parts for each in sessions)
    table(columns, rows, right=columns[1:])
    line("")
    requests = sum(each.requests for each in sessions)
    least = "at least " if whole is not None and any(each.bill.output_cut for each in sessions) else ""
    cost = f"{least}{usd(None if whole is None else whole.total)}"
    line(f"{count(len(sessions), 'session')}, {count(requests, 'request')}, cost {cost}.")
    if least:
        line(OUTPUT_CUT)
    longer = [each.advice for each in sessions if each.advice is not None]
    short = sum(each.shorter for each in longer)
    if not longer:
        line(
            "No session has a T*: that takes a prompt that grows and a known price (choose one with --model)."
        )
    else:
        line(_shorter(len(longer), short))
    line(share_sentence(usage_share(sessions)))
    line("Name one file alone for its chart, its falls and its pauses; --html FILE draws them all.")


def _shorter(sessions: int, short: int) -> str:
    are = "is" if short == 1 else "are"
    whole = count(sessions, "session")
    return f"Of {whole} with a T*, {short:,} {are} shorter than it: there the transcript is cheaper."


def tell_checks(held: Sequence[tuple[RecordedRequests, Held]]) -> None:
    """Predicted caches beside recorded ones, then every reason for a failure."""
    columns = (
        "session",
        "requests",
        "life",
        "recorded",
        "predicted",
        "points off",
        "hits",
        "false",
        "unseen",
    )
    names = labels([session for session, _ in held])
    rows = [
        (
            name,
            f"{each.requests:,}",
            each.life,
            _share(each.recorded),
            _share(each.predicted),
            "?" if each.off is None else f"{each.off:+.2f}",
            f"{each.hits:,}",
            f"{len(each.false):,}",
            f"{len(each.unseen):,}",
        )
        for name, (_, each) in zip(names, held, strict=True)
    ]
    table(columns, rows, right=columns[1:])
    sums = check_sums([each for _, each in held])
    line("")
    line(f"Within {NEAR:g} points: {sums['near']} of {sums['sessions']} sessions.")
    line(
        f"Recorded misses: {sums['misses']}; predicted with precision {_ratio(sums['precision'])} and recall "
        f"{_ratio(sums['recall'])}."
    )
    for name, (_, each) in zip(names, held, strict=True):
        for reason in reasons(each):
            line(f"{name}: {reason}.")
    unseen = [failure for _, each in held for failure in each.unseen]
    false = [failure for _, each in held for failure in each.false]
    if len(held) > 1 and unseen:
        line(f"In all {told_of_misses(unseen)}.")
    if len(held) > 1 and false:
        line(f"In all {told_of_alarms(false)}.")


def _growth_lines(measured: Measured) -> list[tuple[str, str]]:
    growth, window, advice = measured.growth, measured.window, measured.advice
    median, largest = prompt_tokens(measured.sizes)
    lines = [("prompt tokens", f"median {_tokens(median)}, largest {_tokens(largest)}")]
    if growth.growth is not None:
        line_of = f"{_tokens(growth.fixed)} tokens, {growth.growth:+,.0f} a request"
        lines.append(("fixed part and growth", f"{line_of} (fitted, give or take {_tokens(growth.spread)})"))
    if window is not None:
        at = "never" if measured.window_at is None else f"{measured.window_at:,.0f} requests"
        lines.append(("to the window", f"{at} to {window.tokens:,} tokens ({window.known_by})"))
    if advice is not None and advice.tier is not None:
        lines.append(
            ("to the dearer tariff", f"{advice.tier_at:,.0f} requests to more than {advice.tier:,} tokens")
        )
    return lines


def _cache_lines(measured: Measured) -> list[tuple[str, str]]:
    warmth, advice = measured.warmth, measured.advice
    life = f"{warmth.life} {'as recorded' if warmth.life_recorded else 'as chosen or assumed'}"
    lines = [("read from the cache", f"{_share(cached_share(measured.session.rows))} of all prompt tokens")]
    if warmth.pairs:
        cold = f"{warmth.cold:,} of {count(warmth.pairs, 'request')} ({_share(warmth.cold_share)})"
        anew = sum(each.tokens for each in warmth.breaks)
        lines += [
            ("found the cache cold", f"{cold}; cache kept {life}"),
            ("broke within its life", f"{count(len(warmth.breaks), 'time')}, {anew:,} tokens written anew"),
        ]
    else:
        lines.append(("found the cache cold", f"?; cache kept {life}"))
    if warmth.rewrite is not None:
        lines.append(("written to the cache", f"{warmth.rewrite:.1f} times the largest prompt (1 is ideal)"))
    if advice is not None:
        stars = f"{advice.m_star:,.1f}, {advice.t_star:,.1f}, {advice.k_star:,.1f} requests"
        lines.append(("m*, T*, k*", f"{stars}, with --r {advice.rebuilt_tokens:,.0f}"))
    return lines


def _tell_falls(measured: Measured) -> None:
    falls = measured.growth.falls
    if not falls:
        return
    line("")
    rows = [(f"{each.at:,}", f"{each.before:,}", f"{each.after:,}", each.why) for each in falls[:FALLS_SHOWN]]
    table(("fall at request", "from", "to", "why"), rows, right=("fall at request", "from", "to"))
    if len(falls) > FALLS_SHOWN:
        line(f"and {len(falls) - FALLS_SHOWN:,} more (--json has them all)")


def _tell_cost(measured: Measured) -> None:
    line("")
    parts = measured.bill.parts
    if parts is None:
        why = "; ".join(f"{times:,} x {reason}" for reason, times in measured.bill.unpriced)
        line(f"cost: not known ({why or 'no requests'})")
        return
    kinds = (
        ("uncached input", parts.uncached),
        ("cache write", parts.cache_write),
        ("cache read", parts.cache_read),
        ("output", parts.output),
        ("all", parts.total),
    )
    rows = [(name, usd(amount), f"{amount / (parts.total or 1):.0%}") for name, amount in kinds]
    table(("cost", "USD", "share"), rows, right=("USD", "share"))
    if measured.bill.output_cut:
        line(OUTPUT_CUT)


def _tell_pauses(pauses: Sequence[Pause]) -> None:
    rows = [
        (pause_words(each), f"{each.requests:,}", f"{each.missed:,}", _tokens(each.rewritten))
        for each in pauses
        if each.requests
    ]
    if not rows:
        return
    line("")
    columns = ("pause before the request", "requests", "missed the cache", "tokens written anew")
    table(columns, rows, right=columns[1:])


def pause_words(pause: Pause) -> str:
    """ "1 to 5 min", "60 min and more"."""
    over = pause.over_ms // 60_000
    if pause.under_ms is None:
        return f"{over} min and more"
    under = pause.under_ms // 60_000
    return f"under {under} min" if not over else f"{over} to {under} min"


def _table_row(name: str, measured: Measured) -> tuple[str, ...]:
    median, largest = prompt_tokens(measured.sizes)
    growth, parts, advice = measured.growth, measured.bill.parts, measured.advice
    return (
        name,
        f"{measured.requests:,}",
        _tokens(median),
        _tokens(largest),
        _tokens(growth.fixed),
        _tokens(growth.growth),
        _share(cached_share(measured.session.rows)),
        _share(measured.warmth.cold_share),
        f"{len(measured.warmth.breaks):,}" if measured.warmth.pairs else "?",
        usd(None if parts is None else parts.total),
        "?" if advice is None else f"{advice.t_star:,.1f}",
    )


def _tokens(value: float | None) -> str:
    return "?" if value is None else f"{value:,.0f}"


def _share(value: float | None) -> str:
    return "?" if value is None else f"{value:.1%}"


def _ratio(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else "?"

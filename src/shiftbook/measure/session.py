"""One recorded session measured: every figure that `measure` prints, as plain rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median_low
from typing import TypedDict, cast, get_args

from shiftbook.economics.closed_forms import Loop, calls_to
from shiftbook.economics.cost import PriceList
from shiftbook.measure.advice import REBUILT_DEFAULT, Advice, advise
from shiftbook.measure.growth import Growth, growth_of
from shiftbook.measure.money import Bill, Prices, bill_of
from shiftbook.measure.series import Series, series_of
from shiftbook.measure.warmth import Warmth, warmth_of
from shiftbook.sessions.requests import RecordedRequests, UsageSource

WindowOf = Callable[[str], int | None]
"""The longest prompt that a model takes, in tokens; None: not known."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What the reader chose; None leaves it to the recording. `rebuilt` is r in tokens."""

    model: str | None = None
    life: str | None = None
    window: int | None = None
    rebuilt: int = REBUILT_DEFAULT


@dataclass(frozen=True, slots=True)
class Window:
    """The longest prompt that was to be had, and how that is known."""

    tokens: int
    known_by: str


@dataclass(frozen=True, slots=True)
class Measured:
    """A session and all that was found out about it. `main` is its longest branch, None without requests."""

    session: RecordedRequests
    model: str | None
    main: Series | None
    branches: int
    sizes: tuple[int, ...]
    growth: Growth
    warmth: Warmth
    bill: Bill
    window: Window | None
    window_at: float | None
    advice: Advice | None
    no_advice: str
    sources: tuple[tuple[UsageSource, int], ...]

    @property
    def requests(self) -> int:
        """All requests of the session, whoever made them."""
        return sum(count for _, count in self.sources)


def measured(
    session: RecordedRequests,
    prices: Prices,
    window_of: WindowOf,
    choices: Choices = Choices(),
) -> Measured:
    """Measure one session. The same rows give the same figures."""
    branches = series_of(session)
    main = branches[0] if branches else None
    growth = growth_of(main) if main else Growth(None, None, None, ())
    warmth = warmth_of(branches, choices.life)
    model = choices.model or _model_of(main)
    window = _window(main, growth, model, window_of, choices.window)
    advice, no_advice = _advice(main, growth, warmth, model, prices, choices)
    return Measured(
        session=session,
        model=model,
        main=main,
        branches=len(branches),
        sizes=tuple(point.prompt for each in branches for point in each.points),
        growth=growth,
        warmth=warmth,
        bill=bill_of(session.rows, prices, model=choices.model, life=choices.life),
        window=window,
        window_at=_window_at(growth, window),
        advice=advice,
        no_advice=no_advice,
        sources=tuple(
            (source, sum(row.requests for row in session.rows if row.source == source))
            for source in get_args(UsageSource)
        ),
    )


class UsageShare(TypedDict):
    """Shares of all requests, 0 to 1, by how far their usage can be trusted; None when there are none."""

    reported: float | None
    differenced: float | None
    estimated: float | None
    missing: float | None


def usage_share(sessions: Iterable[Measured]) -> UsageShare:
    """Pooled over requests."""
    counts = dict.fromkeys(get_args(UsageSource), 0)
    for each in sessions:
        for source, count in each.sources:
            counts[source] += count
    everything = sum(counts.values())
    shares = {source: count / everything if everything else None for source, count in counts.items()}
    return cast(UsageShare, shares)


def prompt_tokens(sizes: Sequence[int]) -> tuple[int | None, int | None]:
    """Median (a value that occurred) and largest of the known prompts."""
    return (median_low(sizes), max(sizes)) if sizes else (None, None)


def _model_of(main: Series | None) -> str | None:
    """The model that answered most requests of the main line; of equals, the first."""
    counts: dict[str, int] = {}
    for point in main.points if main else ():
        if point.row.model is not None:
            counts[point.row.model] = counts.get(point.row.model, 0) + 1
    return max(counts, key=lambda name: counts[name], default=None)


def _window(
    main: Series | None, growth: Growth, model: str | None, window_of: WindowOf, given: int | None
) -> Window | None:
    if given is not None:
        return Window(given, "given")
    compacted = [fall.before for fall in growth.falls if fall.why == "compaction"]
    if main is not None and compacted:
        return Window(max(compacted), "the largest prompt before a recorded compaction")
    known = window_of(model) if model else None
    return None if known is None else Window(known, "the price table's window of the model")


def _window_at(growth: Growth, window: Window | None) -> float | None:
    loop = _loop(growth, 0.0, 0)
    return None if loop is None or window is None else calls_to(window.tokens, loop)


def _loop(growth: Growth, output: float, rebuilt: int) -> Loop | None:
    if growth.fixed is None or growth.growth is None or growth.growth <= 0:
        return None
    return Loop(growth.fixed, growth.growth, output, rebuilt)


def _advice(
    main: Series | None, growth: Growth, warmth: Warmth, model: str | None, prices: Prices, choices: Choices
) -> tuple[Advice | None, str]:
    """The advice, or why there is none."""
    if main is None or not main.points:
        return None, "no request with a known prompt"
    outputs = [point.row.usage.output for point in main.points if point.row.usage.output is not None]
    loop = _loop(growth, fmean(outputs) if outputs else 0.0, choices.rebuilt)
    if loop is None:
        return None, "the prompt does not grow from request to request"
    if model is None:
        return None, "no model recorded (choose one with --model)"
    found: PriceList | None = prices(model, main.points[-1].at_ms)
    if found is None:
        return None, f"no price known for {model} (choose another with --model)"
    advice = advise(loop, main.requests, found, cold_share=warmth.cold_share or 0.0, hour=warmth.life == "1h")
    return advice, "" if advice else f"{model} reads from its cache no cheaper than it writes"

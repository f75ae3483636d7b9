"""One recorded session through every policy, each by the live engine in a journal of its own in memory.

What differs between the policies is the prompts alone: replies, results and people's words are those of the
recording. So the figures say what each policy would have sent and what that costs, not what a model would
have answered: turns that a forgetful prompt makes necessary are not in them.

The policy `transcript` drops nothing and has no cap here: where its prompts pass the window of a real model,
`over_window` counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from shiftbook import rerun
from shiftbook.economics.cache_request import Ttl
from shiftbook.entries import EpochOpened
from shiftbook.journal.open import MEMORY, open_store
from shiftbook.sessions import Session
from shiftbook.views import OwnRequests, entries_of, run_figures
from shiftbook.views.figures import PromptTokens
from shiftbook.views.own_requests import OwnPrices

CAP_DEFAULT, MARK_DEFAULT = 40_000, 16_000
"""Tokens, without the fixed part: the sizes at which the design and decision 0016 state their figures."""

FIXED_DEFAULT = (0, 20_000)
NO_CAP = 1_000_000_000
UNCAPPED = "transcript"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens of cap, mark and fixed part; the first two include the third."""

    cap: int
    mark: int
    fixed: int


class PolicyFigures(TypedDict):
    """What one policy sent. None is "not known"; `rebuilds` counts prompts begun anew after the first.

    `sizes` are the tokens of each request's prompt, in order. `over_window` is None without a window.
    """

    requests: int
    prompt_tokens: PromptTokens
    cached_share: float | None
    cost: float | None
    rebuilds: int
    state: str
    over_window: int | None
    sizes: list[int]


async def replay(
    session: Session,
    policy: str,
    sizes: Sizes,
    *,
    ttl: Ttl | None = "5m",
    model: str | None = None,
    prices: OwnPrices | None = None,
    window: int | None = None,
) -> PolicyFigures:
    """Drive the session through one policy. `model` names whose cache rule and prices count; without it the
    recorded one. Raises `BadInput` as a rerun does, and when `model` has no known cache rule."""
    cap, mark = (NO_CAP, None) if policy == UNCAPPED else (sizes.cap, sizes.mark)
    settings = rerun.Settings(policy=policy, cap=cap, mark=mark, fixed=sizes.fixed)
    own = OwnRequests(ttl, model=model, prices=prices)
    store = await open_store(MEMORY)
    try:
        done = await rerun.rerun(store, session, settings, run="replay")
        figures = await run_figures(store, "replay", own=own)
        opened = 0
        async for entry in entries_of(store, "replay", 0):
            opened += isinstance(entry.what, EpochOpened)
    finally:
        await store.close()
    return PolicyFigures(
        requests=figures["turns"],
        prompt_tokens=figures["prompt_tokens"],
        cached_share=figures["cached_share"],
        cost=figures["cost"],
        rebuilds=max(0, opened - 1),
        state=done.summary.state,
        over_window=None if window is None else sum(size > window for size in own.sizes),
        sizes=list(own.sizes),
    )


def sizes_for(cap: int | None, mark: int | None, fixed: int | None) -> Sequence[Sizes]:
    """The sizes to play: those given, or the defaults for each of FIXED_DEFAULT.

    A cap or mark that is not given is its default and the fixed part; one that is given includes it.
    """
    return [
        Sizes(
            cap=CAP_DEFAULT + each if cap is None else cap,
            mark=_mark(each, cap) if mark is None else mark,
            fixed=each,
        )
        for each in (FIXED_DEFAULT if fixed is None else (fixed,))
    ]


def _mark(fixed: int, cap: int | None) -> int:
    return MARK_DEFAULT + fixed if cap is None else fixed + MARK_DEFAULT * max(0, cap - fixed) // CAP_DEFAULT

"""The figures of a run: turns, actions, cut-off attempts, and what its prompts took.

Prompt tokens are of our prompts by our exact meter, request by request, never a provider's count. Where the
journal holds only a bound, since that already fitted the cap, the blocks are counted here, each once. Cost
and cached share are as the providers reported them (`reported`); a rerun's are of our own requests
(`own_requests`), since nobody billed them.
"""

from __future__ import annotations

from statistics import median_low
from typing import TypedDict

from shiftbook.economics.price_book import known_prices
from shiftbook.entries import Entry, ModelAnswered, ModelAsked, ReportAsked, State
from shiftbook.errors import Damaged
from shiftbook.journal.promises import Store
from shiftbook.projections.view import RunView, fold
from shiftbook.prompt.epoch import EpochPrompt
from shiftbook.prompt.measure import Gauge
from shiftbook.tokens import BpeMeter, ByteMeter
from shiftbook.verify.prompts import Prompts
from shiftbook.views.declared import declared
from shiftbook.views.own_requests import OwnRequests
from shiftbook.views.reported import Prices, Reported
from shiftbook.views.rows import entries_of


class PromptTokens(TypedDict):
    """Over all requests under the run's cap, those for reports too; the median is a value that occurred.

    None when none was made.
    """

    median: int | None
    max: int | None


class RunFigures(TypedDict):
    """What `rerun`, `run` and `resume --json` print. None is "not known", never zero.

    `cached_share` is of all prompt tokens, 0 to 1; `cost` is in USD.
    """

    run: str
    state: State
    turns: int
    actions: int
    cut_off: int
    repeated: int
    prompt_tokens: PromptTokens
    cached_share: float | None
    cost: float | None


async def run_figures(
    store: Store, run: str, *, own: OwnRequests | None = None, prices: Prices = known_prices
) -> RunFigures:
    """The figures of a run's whole life. Reads every entry once; memory holds the open epoch.

    With `own` the cached share and the cost are those of our requests by the cache model.
    Raises `UnknownRun`, and `Damaged` where an entry cannot be read or a prompt is not what was sent.
    """
    view, counted, reported = RunView(), PromptSizes(store, run, own), Reported(prices)
    async for entry in entries_of(store, run):
        fold(view, entry)
        reported.take(entry)
        await counted.take(entry)
    tokens, amount = counted.requests, reported.cost if own is None else own.cost
    return RunFigures(
        run=run,
        state=view.state,
        turns=view.answers,
        actions=view.finished,
        cut_off=view.cut_off,
        repeated=view.repeated,
        prompt_tokens={
            "median": median_low(tokens) if tokens else None,
            "max": max(tokens, default=None),
        },
        cached_share=reported.cached_share if own is None else own.cached_share,
        cost=None if amount is None else float(amount),
    )


class PromptSizes:
    """The tokens of each request by the exact meter, whichever meter the journal names for it.

    Where the journal holds only a bound, the prompt is made again and counted, each block once. Raises
    `Damaged` when a prompt is not what was sent.
    """

    def __init__(self, store: Store, run: str, own: OwnRequests | None = None) -> None:
        self.requests: list[int] = []
        self._own = own
        self._store, self._run = store, run
        self._prompts = Prompts(store, run)
        self._declaration = ""
        self._gauge = Gauge()
        self._epoch = -1
        self._blocks = 0
        self._tokens = 0

    async def take(self, entry: Entry) -> None:
        """The next entry; after a request's, its size is the last of `requests`."""
        faults = await self._prompts.take(entry)
        if faults:
            raise Damaged(
                f"Run {self._run}, entry {entry.position}: {faults[0].what}. "
                f"`shiftbook verify {self._run}` tells more."
            )
        prompt = self._prompts.prompt
        if self._own is not None and isinstance(entry.what, ModelAnswered):
            self._own.answered(entry.what.model, entry.what.parts)
        if isinstance(entry.what, ReportAsked) and entry.what.extends:
            self.requests.append(entry.what.tokens)
        if not isinstance(entry.what, ModelAsked) or prompt is None:
            return
        if self._own is not None:
            self._own.asked(prompt, (await self._measures(prompt)).fixed, entry.at_ms)
        if entry.what.meter != ByteMeter.name:
            self.requests.append(entry.what.tokens)
            return
        await self._count(prompt)
        self.requests.append(self._gauge.fixed + self._tokens)

    async def _measures(self, prompt: EpochPrompt) -> Gauge:
        if prompt.declaration != self._declaration:
            self._declaration = prompt.declaration
            agent = await declared(self._store, self._run, prompt.declaration)
            self._gauge = agent.gauge(BpeMeter.name)
        return self._gauge

    async def _count(self, prompt: EpochPrompt) -> None:
        await self._measures(prompt)
        if prompt.epoch != self._epoch:
            self._epoch, self._blocks, self._tokens = prompt.epoch, 0, 0
        self._tokens += sum(map(self._gauge.measure, prompt.blocks[self._blocks :]))
        self._blocks = len(prompt.blocks)

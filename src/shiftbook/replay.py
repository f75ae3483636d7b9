"""One recorded session through every policy, each by the live engine in a journal of its own in memory.

What differs between the policies is the prompts alone: replies, results and people's words are those of the
recording. So the figures say what each policy would have sent and what that costs, not what a model would
have answered: turns that a forgetful prompt makes necessary are not in them.

The policy `transcript` drops nothing and has no cap here: where its prompts pass the window of a real model,
`over_window` counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median_low
from typing import TypedDict, TypeVar

from shiftbook import rerun
from shiftbook.entries import MODEL_VISIBLE, Entry, EpochOpened, ModelAnswered, ModelAsked
from shiftbook.journal.open import MEMORY, open_store
from shiftbook.journal.promises import Store
from shiftbook.messages import Block, Call
from shiftbook.prompt.render import render_entry
from shiftbook.sessions import Session
from shiftbook.studies.identifiers import KINDS, Identifier, identifiers
from shiftbook.studies.survival import texts_of
from shiftbook.verify.prompts import Prompts
from shiftbook.views import OwnRequests, entries_of, run_figures
from shiftbook.views.figures import PromptTokens
from shiftbook.views.own_requests import Life, OwnPrices

CAP_DEFAULT, MARK_DEFAULT = 40_000, 16_000
"""Tokens, without the fixed part: the sizes at which the design and decision 0016 state their figures."""

FIXED_DEFAULT = (0, 20_000)
NO_CAP = 1_000_000_000
UNCAPPED = "transcript"
Number = TypeVar("Number", int, float)
TEXTS_KEPT = 8_192
"""Texts whose identifiers are remembered: more than a long session has."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens of cap, mark and fixed part; the first two include the third."""

    cap: int
    mark: int
    fixed: int


class Survival(TypedDict):
    """Identifiers of one kind: used by calls, held by the prompts, the share; None when none was used."""

    of: int
    held: int
    share: float | None


class PolicyFigures(TypedDict):
    """What one policy sent. None is "not known"; `rebuilds` counts prompts begun anew after the first.

    `survival` has the kinds of identifiers: of those that a call used and that had stood in the run before,
    how many stood in the very prompt that was answered. What is lacking was known from elsewhere, guessed, or
    would have had to be looked for.
    `sizes` are the tokens of each request's prompt, in order. `over_window` is None without a window.
    """

    requests: int
    prompt_tokens: PromptTokens
    cached_share: float | None
    cost: float | None
    rebuilds: int
    state: str
    survival: dict[str, Survival]
    over_window: int | None
    sizes: list[int]


class PolicySums(TypedDict):
    """What one policy sent for several sessions; None where it is not known of every one of them.

    `prompt_tokens` has the median over the sessions of their medians, and the largest prompt of all.
    `cached_share` is pooled over tokens. `unfinished` counts sessions that did not rest as finished.
    """

    sessions: int
    requests: int
    prompt_tokens: PromptTokens
    cached_share: float | None
    cost: float | None
    rebuilds: int
    unfinished: int
    survival: dict[str, Survival]
    over_window: int | None


async def replay(
    session: Session,
    policy: str,
    sizes: Sizes,
    *,
    ttl: Life = "own",
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
        opened, held = 0, _Held(store, "replay")
        async for entry in entries_of(store, "replay", 0):
            opened += isinstance(entry.what, EpochOpened)
            await held.take(entry)
    finally:
        await store.close()
    return PolicyFigures(
        requests=figures["turns"],
        prompt_tokens=figures["prompt_tokens"],
        cached_share=figures["cached_share"],
        cost=figures["cost"],
        rebuilds=max(0, opened - 1),
        state=done.summary.state,
        survival=held.told(),
        over_window=None if window is None else sum(size > window for size in own.sizes),
        sizes=list(own.sizes),
    )


class _Held:
    """Identifiers of a run in progress: which have stood anywhere, which stand in the open prompt."""

    def __init__(self, store: Store, run: str) -> None:
        self._prompts = Prompts(store, run)
        self._epoch, self._blocks = -1, 0
        self._shown: set[Identifier] = set()
        self._stood: set[Identifier] = set()
        self._of = dict.fromkeys(KINDS, 0)
        self._held = dict.fromkeys(KINDS, 0)

    async def take(self, entry: Entry) -> None:
        """The next entry of the run."""
        await self._prompts.take(entry)
        if isinstance(entry.what, ModelAsked):
            self._show()
        elif isinstance(entry.what, ModelAnswered):
            self._use(entry.what)
        if type(entry.what) in MODEL_VISIBLE:
            for block in render_entry(entry):
                self._stood |= _identifiers(block)

    def told(self) -> dict[str, Survival]:
        """The figures so far."""
        return {
            kind: Survival(of=of, held=self._held[kind], share=self._held[kind] / of if of else None)
            for kind, of in self._of.items()
        }

    def _show(self) -> None:
        prompt = self._prompts.prompt
        if prompt is None:
            return
        if prompt.epoch != self._epoch:
            self._epoch, self._blocks, self._shown = prompt.epoch, 0, set()
        for block in prompt.blocks[self._blocks :]:
            self._shown |= _identifiers(block)
        self._blocks = len(prompt.blocks)

    def _use(self, answered: ModelAnswered) -> None:
        calls = tuple(part for part in answered.parts if isinstance(part, Call))
        for each in _identifiers(Block("assistant", calls)) & self._stood:
            self._of[each[0]] += 1
            self._held[each[0]] += each in self._shown


def _identifiers(block: Block) -> set[Identifier]:
    return {each for text in texts_of(block) for each in _identifiers_of(text)}


@lru_cache(maxsize=TEXTS_KEPT)
def _identifiers_of(text: str) -> frozenset[Identifier]:
    """Each text stands in the journal, in prompts, and again in the next policy's: it is looked at once."""
    return frozenset(identifiers(text))


def sums(played: Sequence[PolicyFigures]) -> PolicySums:
    """The figures of one policy over several sessions, of which there is at least one."""
    medians = _all_known(each["prompt_tokens"]["median"] for each in played)
    largest = _all_known(each["prompt_tokens"]["max"] for each in played)
    costs = _all_known(each["cost"] for each in played)
    over = _all_known(each["over_window"] for each in played)
    return PolicySums(
        sessions=len(played),
        requests=sum(each["requests"] for each in played),
        prompt_tokens=PromptTokens(
            median=None if medians is None else median_low(medians),
            max=None if largest is None else max(largest),
        ),
        cached_share=_pooled(played),
        cost=None if costs is None else sum(costs),
        rebuilds=sum(each["rebuilds"] for each in played),
        unfinished=sum(each["state"] != "finished" for each in played),
        survival={kind: _survived([each["survival"][kind] for each in played]) for kind in KINDS},
        over_window=None if over is None else sum(over),
    )


def _all_known(values: Iterable[Number | None]) -> list[Number] | None:
    """The values, or None when one of them is not known: a sum over the rest would be too small."""
    given = list(values)
    known = [each for each in given if each is not None]
    return known if len(known) == len(given) else None


def _pooled(played: Sequence[PolicyFigures]) -> float | None:
    shares = _all_known(each["cached_share"] for each in played)
    tokens = [sum(each["sizes"]) for each in played]
    if shares is None or not sum(tokens):
        return None
    return sum(share * of for share, of in zip(shares, tokens, strict=True)) / sum(tokens)


def _survived(found: Sequence[Survival]) -> Survival:
    of, held = sum(each["of"] for each in found), sum(each["held"] for each in found)
    return Survival(of=of, held=held, share=held / of if of else None)


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

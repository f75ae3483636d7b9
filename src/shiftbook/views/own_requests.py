"""What share of a run's own prompts a vendor's cache would have served: for runs that no vendor billed.

A rerun's replies are recorded and their figures are of other prompts. Here each request of ours goes through
the cache model of `shiftbook.economics` under Anthropic's rules: one block a part of the prompt, sized by our
exact meter, with the markers that our Anthropic wire sets (end of the fixed part, of the epoch's first
request, of the request before, of this one), at the time that the entry bears. Another vendor's model can be
asked for instead: its rule then sees the same blocks and markers.

With prices they have a cost, too: input as the cache served it, and output as our meter counts what is to be
seen of the reply. What a model thought and the recording left out is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from shiftbook.economics.cache import Serving
from shiftbook.economics.cache_request import CacheBlock, CacheCount, CacheRequest, Ttl, four_markers
from shiftbook.economics.cache_rules import CacheRule, MarkerRule
from shiftbook.economics.cache_vendors import CLAUDE_LARGEST_MINIMUM, cache_rule
from shiftbook.economics.cost import PriceList, cost
from shiftbook.errors import BadInput
from shiftbook.messages import AssistantPart, Block, Reasoning
from shiftbook.prompt.digest import block_digest
from shiftbook.prompt.epoch import EpochPrompt
from shiftbook.prompt.measure import BLOCK_TOKENS, block_tokens
from shiftbook.tokens import BpeMeter

Life = Ttl | Literal["own"] | None

OwnPrices = Callable[[str, int], PriceList | None]
"""The price list of a model at a moment (Unix milliseconds); None: not known."""


@dataclass(frozen=True, slots=True)
class _Asked:
    at_s: float
    blocks: tuple[CacheBlock, ...]
    ends: tuple[int | None, int | None, int | None]
    at_ms: int


class OwnRequests:
    """The cache in progress. `ttl` None: nothing that was kept is ever lost; "own": the life that the rule
    has by itself (five minutes for markers, what the vendor promises for the others).

    The rule is of `model` if given (`BadInput` when none is known), else of the first model that answered, if
    that is a Claude model, else the most cautious of them. `prices` finds the price list of `model`, or of
    the model that answered, at a moment in milliseconds.
    """

    def __init__(
        self, ttl: Life = "5m", *, model: str | None = None, prices: OwnPrices | None = None
    ) -> None:
        self.ttl = ttl
        self._meter = BpeMeter()
        self._model, self._prices = model, prices
        self._amount: Decimal | None = Decimal(0)
        self.sizes: list[int] = []
        """Tokens of each request's prompt."""
        self._serving: Serving | None = None
        self._rule: CacheRule = MarkerRule(CLAUDE_LARGEST_MINIMUM)
        if model is not None:
            rule = cache_rule(model)
            if rule is None:
                raise BadInput(f"No cache rule is known for the model {model!r}: name a Claude or GPT model.")
            self._rule = rule
        self._asked: _Asked | None = None
        self._output = 0
        self._epoch = -1
        self._parts: list[CacheBlock] = []
        self._markable: list[int] = []
        """For each block of the prompt, the last part up to its end that may bear a marker, -1 if none."""
        self._sizes: dict[str, int] = {}
        self._sizes_before: dict[str, int] = {}

    @property
    def minimum(self) -> int:
        """Tokens of the shortest prefix that the rule in use keeps."""
        return self._rule.minimum

    @property
    def counted(self) -> CacheCount:
        """Where the tokens of all requests so far came from."""
        self._serve(None)
        return CacheCount() if self._serving is None else self._serving.shares.count

    @property
    def cached_share(self) -> float | None:
        """Pooled over the tokens of all requests; None when there were none."""
        self._serve(None)
        return None if self._serving is None else self._serving.shares.share

    @property
    def cost(self) -> Decimal | None:
        """USD of all requests; None when there were none or any has no price."""
        self._serve(None)
        return None if self._serving is None or self._prices is None else self._amount

    def asked(self, prompt: EpochPrompt, fixed: int, at_ms: int) -> None:
        """The next request; `fixed` are the tokens before its first block, by the exact meter."""
        self._serve(None)
        if prompt.epoch != self._epoch:
            self._epoch = prompt.epoch
            self._sizes_before, self._sizes = self._sizes, {}
            self._parts = [CacheBlock(prompt.declaration, fixed, "system")]
            self._markable = []
        for block in prompt.blocks[len(self._markable) :]:
            self._take(block)
        ends = (self._end(prompt.first_end), self._end(prompt.last_end), self._end(len(prompt.blocks)))
        self._asked = _Asked(at_ms / 1000, tuple(self._parts), ends, at_ms)

    def answered(self, model: str | None, parts: Sequence[AssistantPart] = ()) -> None:
        """The reply to that request came: the model that gave it, and what it said."""
        if self._asked is not None and self._prices is not None and parts:
            self._output = block_tokens(Block("assistant", tuple(parts)), self._meter)
        self._serve(model)

    def _take(self, block: Block) -> None:
        last = self._markable[-1] if self._markable else -1
        for number, part in enumerate(block.parts):
            alone = Block(block.side, (part,))
            digest = block_digest(alone)
            size = self._sizes.get(digest) or self._sizes_before.get(digest)
            if size is None:
                size = block_tokens(alone, self._meter) - BLOCK_TOKENS
            self._sizes[digest] = size
            anchor = block.side == "user" and number == len(block.parts) - 1
            self._parts.append(CacheBlock(digest, size + (0 if number else BLOCK_TOKENS), anchor=anchor))
            if not isinstance(part, Reasoning):
                last = len(self._parts) - 1
        self._markable.append(last)

    def _end(self, blocks: int) -> int | None:
        last = self._markable[blocks - 1] if blocks else -1
        return last if last >= 0 else None

    def _serve(self, model: str | None) -> None:
        asked, self._asked = self._asked, None
        if asked is None:
            return
        if self._serving is None:
            rule = cache_rule(model or "")
            if self._model is None and isinstance(rule, MarkerRule):
                self._rule = rule
            self._serving = Serving(self._rule, self.ttl)
            self._at_s = asked.at_s
        # Stamps are a writer's clock, which may have been set back; a cache only knows what came before.
        self._at_s = max(self._at_s, asked.at_s)
        first, previous, end = asked.ends
        markers = four_markers(
            fixed_end=0, brief_end=first, previous_end=previous, end=end if end is not None else 0
        )
        self.sizes.append(sum(block.tokens for block in asked.blocks))
        served = self._serving.take(CacheRequest(self._at_s, asked.blocks, markers))
        self._pay(served, self._model or model, asked.at_ms)

    def _pay(self, served: CacheCount, model: str | None, at_ms: int) -> None:
        output, self._output = self._output, 0
        if self._amount is None or self._prices is None:
            return
        prices = None if model is None else self._prices(model, at_ms)
        amount = None if prices is None else cost(served.usage(output), prices)
        self._amount = None if amount is None else self._amount + amount

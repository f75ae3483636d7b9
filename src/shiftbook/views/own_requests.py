"""What share of a run's own prompts a vendor's cache would have served: for runs that no vendor billed.

A rerun's replies are recorded and their figures are of other prompts. Here each request of ours goes through
the cache model of `shiftbook.economics` under Anthropic's rules: one block a part of the prompt, sized by our
exact meter, with the markers that our Anthropic wire sets (end of the fixed part, of the epoch's first
request, of the request before, of this one), at the time that the entry bears.
"""

from __future__ import annotations

from dataclasses import dataclass

from shiftbook.economics.cache import Serving
from shiftbook.economics.cache_request import CacheBlock, CacheCount, CacheRequest, Ttl, four_markers
from shiftbook.economics.cache_rules import MarkerRule
from shiftbook.economics.cache_vendors import CLAUDE_LARGEST_MINIMUM, cache_rule
from shiftbook.messages import Block, Reasoning
from shiftbook.prompt.digest import block_digest
from shiftbook.prompt.epoch import EpochPrompt
from shiftbook.prompt.measure import BLOCK_TOKENS, block_tokens
from shiftbook.tokens import BpeMeter


@dataclass(frozen=True, slots=True)
class _Asked:
    at_s: float
    blocks: tuple[CacheBlock, ...]
    ends: tuple[int | None, int | None, int | None]


class OwnRequests:
    """The cache in progress. `ttl` None: nothing that was kept is ever lost.

    The rule is of the first model that answered, if that is a Claude model, else the most cautious of them.
    """

    def __init__(self, ttl: Ttl | None = "5m") -> None:
        self.ttl = ttl
        self._meter = BpeMeter()
        self._serving: Serving | None = None
        self._rule = MarkerRule(CLAUDE_LARGEST_MINIMUM)
        self._asked: _Asked | None = None
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
        self._asked = _Asked(at_ms / 1000, tuple(self._parts), ends)

    def answered(self, model: str | None) -> None:
        """The reply to that request came, and this is the model that gave it."""
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
            self._parts.append(CacheBlock(digest, size + (0 if number else BLOCK_TOKENS)))
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
            self._rule = rule if isinstance(rule, MarkerRule) else self._rule
            self._serving = Serving(self._rule, self.ttl)
            self._at_s = asked.at_s
        # Stamps are a writer's clock, which may have been set back; a cache only knows what came before.
        self._at_s = max(self._at_s, asked.at_s)
        first, previous, end = asked.ends
        markers = four_markers(
            fixed_end=0, brief_end=first, previous_end=previous, end=end if end is not None else 0
        )
        self._serving.take(CacheRequest(self._at_s, asked.blocks, markers))

"""The size of a prompt in tokens: its texts by a meter, and a flat sum for what stands around them.

A gauge has two meters. The first needs no tables and never counts too little; while a prompt fits the cap by
it, the second is never loaded. As soon as something would have to be cut or dropped, the gauge turns to the
second, measures the epoch's blocks anew, once, and stays there: the sizes of a prompt are all of one meter,
which `ModelAsked` names. No vendor's count is claimed; the sums around the text are stated below.
"""

from __future__ import annotations

from collections.abc import Sequence

from shiftbook import canonical
from shiftbook.errors import CapTooSmall
from shiftbook.messages import Block, Call, Media, Missing, Part, Reasoning, Result, Text, ToolSchema
from shiftbook.prompt.cut import arguments_text
from shiftbook.prompt.epoch import Budget, EpochPrompt
from shiftbook.tokens import BpeMeter, ByteMeter, Meter, Remembering

BLOCK_TOKENS = 4
"""Around each block: who speaks, and the turn's delimiters."""
PART_TOKENS = 2
CALL_TOKENS = 32
"""Around a call: the wire's own names, and the provider's id in place of ours."""
RESULT_TOKENS = 24
MEDIA_TOKENS = 1_600
"""An image: Anthropic's documented w*h/750 at the 1.15 megapixels that larger ones are scaled down to."""
FILE_BYTES_PER_TOKEN = 32
"""Files other than images, on top of the flat sum: a PDF page of 50 to 100 kB is 1,500 to 3,000 tokens."""
TOOLS_TOKENS = 350
"""Once, when there are tools: Anthropic documents a system prompt of up to 346 tokens for tool use."""
TOOL_TOKENS = 16


def block_tokens(block: Block, meter: Meter) -> int:
    """Tokens of a block, everything around its text included."""
    texts: list[str] = []
    flat = BLOCK_TOKENS
    for part in block.parts:
        flat += _weigh(part, texts)
    return flat + meter.count("\n".join(texts))


def _weigh(part: Part, texts: list[str]) -> int:
    """The flat sum of a part; what it says is added to `texts`."""
    match part:
        case Text(text):
            texts.append(text)
        case Call(_, tool, arguments, raw):
            texts += (tool, raw if raw is not None else arguments_text(arguments or {}))
            return CALL_TOKENS
        case Result(content=content):
            flat = RESULT_TOKENS
            for each in content:
                flat += _weigh(each, texts)
            return flat
        case Media(media_type=media_type, size=size):
            is_image = media_type.startswith("image/")
            return PART_TOKENS + MEDIA_TOKENS + (0 if is_image else size // FILE_BYTES_PER_TOKEN)
        case Missing(what):
            texts.append(what)
        case Reasoning(text, opaque):
            texts.append(text)
            if opaque is not None:
                texts.append(canonical.encode(opaque))
    return PART_TOKENS


def fixed_tokens(instructions: str, tools: Sequence[ToolSchema], meter: Meter) -> int:
    """Tokens of what stands before the first block: instructions and tool schemas."""
    flat = BLOCK_TOKENS + (TOOLS_TOKENS if tools else 0) + TOOL_TOKENS * len(tools)
    texts = [instructions]
    for tool in tools:
        texts += [tool.name, tool.description, canonical.encode(dict(tool.parameters))]
    return flat + meter.count("\n".join(texts))


class Gauge:
    """Measures the prompts of one agent: by the bound while that fits, else by the meter."""

    def __init__(
        self,
        instructions: str = "",
        tools: Sequence[ToolSchema] = (),
        *,
        filler: int = 0,
        meter: Meter | None = None,
        bound: Meter | None = None,
    ) -> None:
        """`filler` tokens are added to the fixed part; `meter` is the exact one, o200k unless named."""
        self._instructions = instructions
        self._schemas = tuple(tools)
        self._filler = filler
        self._bound = bound if bound is not None else ByteMeter()
        self._exact = Remembering(meter if meter is not None else BpeMeter())
        self._meter = self._bound
        self._fixed: dict[str, int] = {}
        self.tools = frozenset(tool.name for tool in tools)

    @property
    def meter_in_use(self) -> str:
        """The name of the meter that measures now."""
        return self._meter.name

    @property
    def is_bound(self) -> bool:
        """Whether the bound is in use, and an exact meter could still be turned to."""
        return self._meter is self._bound and self._exact.name != self._bound.name

    @property
    def fixed(self) -> int:
        """Tokens of the fixed part, filler included."""
        name = self._meter.name
        if name not in self._fixed:
            tokens = fixed_tokens(self._instructions, self._schemas, self._meter)
            self._fixed[name] = tokens + self._filler
        return self._fixed[name]

    def measure(self, block: Block) -> int:
        """Tokens of a block by the meter in use."""
        return block_tokens(block, self._meter)

    def budget(self, cap: int, mark: int) -> Budget:
        """What a policy may spend."""
        return Budget(cap, mark, self.measure, self.tools)

    def use(self, name: str) -> None:
        """Go on with the meter that a journal names: the bound if it is that one, else the exact one."""
        self._meter = self._bound if name == self._bound.name else self._exact

    def turn_exact(self, prompt: EpochPrompt) -> None:
        """Turn to the exact meter for good, and measure by it what the prompt holds."""
        self._meter = self._exact
        self.measure_again(prompt)

    def measure_again(self, prompt: EpochPrompt) -> None:
        """Make all sizes of the prompt sizes by the meter in use."""
        prompt.fixed = self.fixed
        prompt.sizes = [self.measure(block) for block in prompt.blocks]
        prompt.tokens = prompt.fixed + sum(prompt.sizes)
        prompt.meter = self.meter_in_use

    def check(self, cap: int) -> None:
        """Raise `CapTooSmall` when the fixed part alone passes the cap, by whichever meter says less."""
        if self.fixed > cap:
            if self._meter is self._bound:
                exact = fixed_tokens(self._instructions, self._schemas, self._exact) + self._filler
                if exact <= cap:
                    return
                raise CapTooSmall(exact, cap)
            raise CapTooSmall(self.fixed, cap)

"""What an agent was declared to be, read back from its blob: no agent code is needed."""

from __future__ import annotations

from dataclasses import dataclass

from shiftbook import canonical
from shiftbook.errors import Damaged, NotCanonical
from shiftbook.journal.promises import Store
from shiftbook.messages import Json, ToolSchema
from shiftbook.prompt.measure import Gauge


@dataclass(frozen=True, slots=True)
class Declared:
    """The parts of a declaration that a prompt is made of; `fixed` are the filler tokens of `--fixed`."""

    instructions: str = ""
    tools: tuple[ToolSchema, ...] = ()
    fixed: int = 0

    def gauge(self, meter: str) -> Gauge:
        """Measures prompts of this agent by the meter that a journal names."""
        gauge = Gauge(self.instructions, self.tools, filler=self.fixed)
        gauge.use(meter)
        return gauge


async def declared(store: Store, run: str, name: str) -> Declared:
    """The declaration in blob `name`; `Damaged` when there is none in it."""
    text = (await store.blobs.get(run, name)).decode("utf-8", "replace")
    try:
        plain: Json = canonical.decode(text)
        tools = tuple(
            ToolSchema(str(tool["name"]), str(tool["description"]), dict(tool["parameters"]))
            for tool in plain["tools"]
        )
        return Declared(str(plain["instructions"]), tools, int(plain["fixed"]))
    except (NotCanonical, KeyError, TypeError, ValueError) as error:
        raise Damaged(
            f"Blob {name[:12]!a} of run {run} is no declaration of an agent ({type(error).__name__}); "
            "`shiftbook verify` tells more."
        ) from None

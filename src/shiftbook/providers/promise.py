"""What a provider promises: one async method.

`reply` sends exactly one request (its own retries are off; ours are recorded), calls `emit` with the events
of the reply while it streams, and returns the whole reply with its usage in the one normal form. It raises
`ProviderFault` for everything that goes wrong on the provider's side and lets cancellation through; what
it had emitted by then is the part that came. It may be called again with the same request.

A provider that can answer only so many turns, as a recording can, has `turns: int` too; the run then rests
as finished where it would ask for one more. One whose requests say more than the prompt has `settings`, a
plain mapping of all that, which is written down with the agent; one that may be unable to work has `check()`,
which raises `AgentUnusable` before anything is written; one whose account has limits has `pace`, the gate
that its requests wait at (`providers.pace`).
"""

from __future__ import annotations

from typing import Protocol

from shiftbook.messages import Emit, Reply, Request


class Provider(Protocol):
    """Answers model requests. `name` is the model's reference as it stands in `AgentDeclared`."""

    @property
    def name(self) -> str: ...

    async def reply(self, request: Request, emit: Emit) -> Reply:
        """Ask once. See the module's docstring for the promise."""
        ...

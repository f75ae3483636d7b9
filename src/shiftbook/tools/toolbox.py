"""Tools that somebody else keeps, and that may change while a run goes on.

An agent's own tools are the same for its whole life; those of a server come and go. A run opens its toolboxes
before it begins, looks at them before each turn and each dispatch, and closes them when it is closed. What
it finds changed is declared anew and starts an epoch; calls that were made of a tool that is not the same any
more are not given to it. A toolbox does not run anything: its tools do.
"""

from __future__ import annotations

from typing import Protocol

from shiftbook.tools.contract import Tool


class Toolbox(Protocol):
    """Where a run gets tools that may change. One toolbox may serve several runs at a time."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools as they were last found; the same objects for as long as nothing has changed."""
        ...

    @property
    def stale(self) -> bool:
        """Whether there is reason to look again. Cheap: it is asked before each turn."""
        ...

    async def open(self) -> None:
        """Get hold of the tools; once for each `close`. Raises `AgentUnusable` when they cannot be had."""
        ...

    async def close(self) -> None:
        """Let go of them. After the last one nothing of the toolbox goes on."""
        ...

    async def refresh(self) -> None:
        """Look again. What cannot be had now stays as it was; nothing is raised for it."""
        ...

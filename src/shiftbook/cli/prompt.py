"""`shiftbook prompt`: what the model saw in a turn, made again from the journal and checked by its digest."""

from __future__ import annotations

import asyncio

from shiftbook import canonical
from shiftbook.cli.options import Db, Json, Last, RunId, Turn, Verbose
from shiftbook.cli.output import data, line, note
from shiftbook.cli.places import journal, run_meant
from shiftbook.messages import Json as JsonValue
from shiftbook.views import PromptView, prompt_view


def command(
    run: RunId = None,
    turn: Turn = None,
    last: Last = False,
    db: Db = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show the prompt of a turn as it was sent: instructions, then every message."""
    view = asyncio.run(_prompt(run, last, turn, db))
    if json:
        data(view)
    else:
        _tell(view)


async def _prompt(run: str | None, last: bool, turn: int | None, db: str | None) -> PromptView:
    async with journal(db, read_only=True) as store:
        return await prompt_view(store, await run_meant(store, run, last), turn)


def _tell(view: PromptView) -> None:
    bound = "at most " if view["meter"] == "bytes" else ""
    turn, tokens, cap, policy = view["turn"], view["tokens"], view["cap"], view["policy"]
    note(
        f"turn {turn}: {bound}{tokens:,} tokens of {cap:,}, policy {policy}, epoch {view['epoch']}, "
        f"{len(view['blocks'])} blocks, digest {view['digest']}"
    )
    if view["instructions"]:
        line("[instructions]")
        _tell_text(view["instructions"])
    if view["tools"]:
        line("[tools] " + ", ".join(view["tools"]))
    for message in view["messages"]:
        line(f"[{message['side']}]")
        for part in message["parts"]:
            _tell_part(part)


def _tell_part(part: dict[str, JsonValue]) -> None:
    match part:
        case {"text": str(text), **rest} if not rest:
            _tell_text(text)
        case {"result": call, "content": content}:
            line(f"-> {call}{' (error)' if part.get('error') else ''}")
            for each in content:
                _tell_part(each)
        case _:
            line(canonical.encode(part))


def _tell_text(text: str) -> None:
    for each in text.splitlines():
        line(each)

"""Agents that the tests of the program run: written into the folder of a test as `agent.py`.

`slow` signals by pipes: its tool writes a line into `in` when it is in the middle, and goes on when it can
read one from `out`. So a test knows where the process is, and nobody sleeps.
"""

from __future__ import annotations

import os
from pathlib import Path

PLAIN = '''
from pathlib import Path
from shiftbook import Agent, Context, Scripted, tool
from shiftbook.messages import TextDelta
from shiftbook.providers.scripted import call, fails, say


@tool(repeat="safe")
def look(what: str) -> str:
    """Look something up."""
    return f"{what}: 17"


@tool(repeat="keyed")
def wait(context: Context) -> str:
    """Be in the middle of something until the test lets go."""
    with open("log", "a") as log:
        log.write(f"{context.key} {context.attempt}\\n")
    with open("in", "w") as cue:
        cue.write("in the middle\\n")
    with open("out") as cue:
        return cue.readline().strip()


class HalfSaid:
    name = "half said"

    async def reply(self, request, emit):
        import asyncio
        emit(TextDelta("I was just say"))
        Path("said").touch()
        with open("in", "w") as cue:
            cue.write("half said\\n")
        await asyncio.get_running_loop().create_future()


shop = Agent(name="shop", model=Scripted([call("look", {"what": "tea"}), say("17 boxes.")] * 5), tools=[look])
slow = Agent(name="slow", model=Scripted([call("wait"), say("Done."), say("Hello too.")]), tools=[wait])
half = Agent(name="half", model=HalfSaid())
broken = Agent(name="broken", model=Scripted([fails(times=None, retryable=False, message="no such model")]))
talk = Agent(name="talk", model=Scripted([say("Hello.")] * 5), conversational=True)
hostile = Agent(name="hostile", model=Scripted([say("\\x1b[2J\\u202ewiped \\ud800")]))
wordy = Agent(name="wordy", model=Scripted([say("Hi.")]), instructions="word " * 500)
not_an_agent = 17
'''


def write(folder: Path, text: str = PLAIN) -> None:
    """Put `agent.py` and the two pipes into a folder."""
    (folder / "agent.py").write_text(text, encoding="utf-8")
    for name in ("in", "out"):
        os.mkfifo(folder / name)


def heard(folder: Path) -> str:
    """Wait for the cue that the other process is in the middle."""
    with (folder / "in").open() as cue:
        return cue.readline().strip()


def let_go(folder: Path, word: str = "through") -> None:
    """Let the other process go on."""
    with (folder / "out").open("w") as cue:
        cue.write(word + "\n")

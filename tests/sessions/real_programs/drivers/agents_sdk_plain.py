"""OpenAI Agents SDK: the plain session, which stores no usage."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from agents import Agent, OpenAIResponsesModel, Runner, SQLiteSession, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

URL, OUT = sys.argv[1], Path(sys.argv[2])


@function_tool
def sound(pier: str) -> str:
    """The depth at a pier."""
    return f"9 m at {pier}"


async def main() -> None:
    set_tracing_disabled(True)
    model = OpenAIResponsesModel("gpt-5.1", AsyncOpenAI(base_url=URL, max_retries=0))
    agent = Agent(name="harbour", instructions="Answer in one line.", model=model, tools=[sound])
    session = SQLiteSession("plain", OUT / "plain.db")
    for words in ("How deep is it at both piers?", "And now?"):
        await Runner.run(agent, words, session=session)
    session.close()


asyncio.run(main())

"""OpenAI Agents SDK: the advanced session, which stores usage; parallel calls, a handoff."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from agents.extensions.memory import AdvancedSQLiteSession
from openai import AsyncOpenAI

URL, OUT = sys.argv[1], Path(sys.argv[2])
RULES = "The harbour master answers in one line. " * 200


@function_tool
def sound(pier: str) -> str:
    """The depth at a pier."""
    return f"9 m at {pier}"


async def main() -> None:
    set_tracing_disabled(True)
    model = OpenAIResponsesModel("gpt-5.1", AsyncOpenAI(base_url=URL, max_retries=0))
    clerk = Agent(name="clerk", instructions="You file. " + RULES, model=model)
    agent = Agent(name="harbour", instructions=RULES, model=model, tools=[sound], handoffs=[clerk])
    session = AdvancedSQLiteSession(session_id="advanced", db_path=OUT / "advanced.db", create_tables=True)
    for words in ("How deep is it at both piers?", "And now?", "File it."):
        ran = await Runner.run(agent, words, session=session)
        await session.store_run_usage(ran)
    session.close()


asyncio.run(main())

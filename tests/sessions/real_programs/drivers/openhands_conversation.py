"""OpenHands: a conversation of its SDK that is kept on disk: a terminal, a sub-agent, a condenser."""

from __future__ import annotations

import sys
from pathlib import Path

from openhands.sdk import LLM, Agent, Conversation, Tool, register_agent
from openhands.sdk.context.condenser import LLMSummarizingCondenser
from openhands.tools.task import TaskToolSet
from openhands.tools.terminal import TerminalTool
from pydantic import SecretStr

URL, OUT = sys.argv[1], Path(sys.argv[2])


def model(usage: str) -> LLM:
    """The same model under another name in the accounts."""
    return LLM(model="openai/gpt-5.1", base_url=URL, api_key=SecretStr("any"), usage_id=usage, num_retries=0)


def main() -> None:
    work = OUT.parent / f"{OUT.name}.work"
    work.mkdir(exist_ok=True)
    register_agent(
        name="diver",
        factory_func=lambda llm: Agent(llm=llm, tools=[Tool(name=TerminalTool.name)]),
        description="Looks at the ground.",
    )
    agent = Agent(
        llm=model("agent"),
        tools=[Tool(name=TerminalTool.name), Tool(name=TaskToolSet.name)],
        condenser=LLMSummarizingCondenser(llm=model("condenser"), max_size=12, keep_first=2),
    )
    conversation = Conversation(
        agent=agent, workspace=work, persistence_dir=OUT, visualizer=None, delete_on_close=False
    )
    for words in ("How deep is it?", "And the ground?", "And now?", "So?"):
        conversation.send_message(words)
        conversation.run()
    conversation.close()


main()

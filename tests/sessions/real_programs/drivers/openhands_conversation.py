"""OpenHands: a conversation of its SDK that is kept on disk, with a terminal."""

from __future__ import annotations

import sys
from pathlib import Path

from openhands.sdk import LLM, Agent, Conversation, Tool
from openhands.tools.terminal import TerminalTool
from pydantic import SecretStr

URL, OUT = sys.argv[1], Path(sys.argv[2])


def main() -> None:
    work = OUT.parent / f"{OUT.name}.work"
    work.mkdir(exist_ok=True)
    llm = LLM(model="openai/gpt-5.1", base_url=URL, api_key=SecretStr("any"), usage_id="agent", num_retries=0)
    agent = Agent(llm=llm, tools=[Tool(name=TerminalTool.name)])
    conversation = Conversation(
        agent=agent, workspace=work, persistence_dir=OUT, visualizer=None, delete_on_close=False
    )
    for words in ("How deep is it?", "And now?"):
        conversation.send_message(words)
        conversation.run()
    conversation.close()


main()

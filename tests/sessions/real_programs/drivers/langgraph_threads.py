"""LangGraph: an agent with a sub-graph over the Chat wire and one over Anthropic's, checkpoints in SQLite."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

URL, OUT = sys.argv[1], Path(sys.argv[2])
RULES = "The harbour master answers in one line. " * 200


@tool
def sound(pier: str) -> str:
    """The depth at a pier."""
    return f"9 m at {pier}"


def agent(model: Any, name: str) -> StateGraph:
    """A model and its tools in a circle."""
    asked = model.bind_tools([sound])
    # A marker on the rules makes Anthropic's cache work; the Chat wire is given the words alone.
    marked = [{"type": "text", "text": RULES, "cache_control": {"type": "ephemeral"}}]
    rules = SystemMessage(RULES if isinstance(model, ChatOpenAI) else marked)

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [asked.invoke([rules, *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node(name, ask)
    graph.add_node("tools", ToolNode([sound]))
    graph.add_edge(START, name)
    graph.add_conditional_edges(name, tools_condition)
    graph.add_edge("tools", name)
    return graph


def main() -> None:
    chat = ChatOpenAI(model="gpt-5.1", base_url=URL, max_retries=0)
    claude = ChatAnthropic(
        model_name="claude-sonnet-4-5",
        base_url=URL.removesuffix("/v1"),
        max_retries=0,
        max_tokens_to_sample=900,
    )
    with SqliteSaver.from_conn_string(str(OUT / "checkpoints.db")) as saver:
        for name, model in (("chat", chat), ("claude", claude)):
            graph = agent(model, "ask").compile(checkpointer=saver)
            for words in ("How deep is it at both piers?", "And now?"):
                graph.invoke({"messages": [("user", words)]}, {"configurable": {"thread_id": name}})
        outer = StateGraph(MessagesState)
        outer.add_node("clerk", agent(chat, "file").compile(checkpointer=True))
        outer.add_edge(START, "clerk")
        outer.add_edge("clerk", END)
        parent = outer.compile(checkpointer=saver)
        parent.invoke({"messages": [("user", "File it.")]}, {"configurable": {"thread_id": "nested"}})


main()

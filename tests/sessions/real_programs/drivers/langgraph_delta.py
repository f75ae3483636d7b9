"""LangGraph: messages in a channel that stores differences and a snapshot now and then."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage, SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition

URL, OUT = sys.argv[1], Path(sys.argv[2])
RULES = "The harbour master answers in one line. " * 200


def added(state: list[AnyMessage], writes: list[Any]) -> list[AnyMessage]:
    """All writes behind the state."""
    for write in writes:
        state = add_messages(state, write)
    return state


class Kept(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(added, snapshot_frequency=3)]


@tool
def sound(pier: str) -> str:
    """The depth at a pier."""
    return f"9 m at {pier}"


def main() -> None:
    asked = ChatOpenAI(model="gpt-5.1", base_url=URL, max_retries=0).bind_tools([sound])

    def ask(state: Kept) -> dict[str, Any]:
        return {"messages": [asked.invoke([SystemMessage(RULES), *state["messages"]])]}

    graph = StateGraph(Kept)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode([sound]))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", tools_condition)
    graph.add_edge("tools", "ask")
    with SqliteSaver.from_conn_string(str(OUT / "checkpoints.db")) as saver:
        kept = graph.compile(checkpointer=saver)
        for words in ("How deep is it at both piers?", "And now?"):
            kept.invoke({"messages": [("user", words)]}, {"configurable": {"thread_id": "delta"}})


main()

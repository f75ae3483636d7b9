"""What the server says to each program: replies in a row, or a function where the program asks on its own."""

from __future__ import annotations

import json

from shiftbook.messages import Reply
from shiftbook.providers.scripted import call, calls, say
from shiftbook.testing.server import Exchange, Turn, think, vendor_block
from tests.sessions.real_programs.program import Script


def piers() -> list[Reply]:
    """Two calls side by side, words, one call, words."""
    return [
        think(
            "Both.", calls(call("sound", {"pier": "north"}), call("sound", {"pier": "south"})), redacted=True
        ),
        say("Nine metres at both."),
        call("sound", {"pier": "north"}, text="Once more."),
        say("Still nine metres."),
    ]


def piers_and_clerk() -> Script:
    return [*piers(), call("transfer_to_clerk", {}), say("Filed.")]


def threads() -> Script:
    return [*piers(), *piers(), call("sound", {"pier": "north"}), say("Filed.")]


def graded() -> list[Reply]:
    """Two samples: calls, a sub-agent that calls and ends, the end, the grade."""
    sample = [
        piers()[0],
        call("diver", {"input": "Look at the ground."}),
        call("sound", {"pier": "south"}),
        call("submit", {"answer": "Sand."}),
        call("submit", {"answer": "Nine metres."}),
        say("GRADE: C"),
    ]
    return [*sample, *sample]


def probed() -> Script:
    """The same behind a request by which Inspect tries whether the wire is there at all."""
    return [say("Here."), *graded()]


def three() -> Script:
    return [say("Nine metres."), call("sound", {"pier": "north"}), say("Still nine.")]


def _codex_agents(name: str, **arguments: object) -> Reply:
    """A call of Codex's tools for sub-agents, which stand in a namespace."""
    block = {
        "type": "function_call",
        "id": f"fc_{name}",
        "call_id": f"call_{name}",
        "namespace": "multi_agent_v1",
        "name": name,
        "arguments": json.dumps(arguments),
        "status": "completed",
    }
    return Reply((vendor_block(block),), "calls")


def codex() -> Script:
    """Two commands, a compaction before the next words, a sub-agent that is waited for."""

    def turn(exchange: Exchange) -> Turn:
        last = exchange.said["input"][-1]
        words = json.dumps(last)
        if last.get("call_id") == "call_spawn_agent":
            return _codex_agents("wait_agent", targets=[json.loads(last["output"])["agent_id"]])
        if "Sound the south pier." in words:
            return say("Eight metres.")
        if "CONTEXT CHECKPOINT" in words:
            return say("Piers were sounded.")
        if "How deep" in words:
            return calls(call("exec_command", {"cmd": "echo 9 m"}), call("exec_command", {"cmd": "seq 400"}))
        if "And now" in words:
            return _codex_agents("spawn_agent", message="Sound the south pier.", agent_type="default")
        return say("So it is.")

    return turn


def codex_old() -> Script:
    """The same for a version whose shell takes a list and which has no sub-agents."""

    def turn(exchange: Exchange) -> Turn:
        words = json.dumps(exchange.said["input"][-1])
        if "CONTEXT CHECKPOINT" in words:
            return say("Piers were sounded.")
        if "How deep" in words:
            return calls(
                call("shell", {"command": ["echo", "9 m"]}), call("shell", {"command": ["seq", "900"]})
            )
        return say("So it is.")

    return turn


def compacts(exchange: Exchange) -> bool:
    """Claude Code's request for a summary, which its file does not tell of."""
    return "Respond with TEXT ONLY" in json.dumps(exchange.said["messages"][-1])


def claude() -> Script:
    """Reasoning and two commands, a sub-agent that runs one, a compaction, words behind it."""

    def turn(exchange: Exchange) -> Turn:
        words = json.dumps(exchange.said["messages"][-1])
        if "tool_result" in words:
            return say("So it is.")
        if compacts(exchange):
            return say("<summary>Piers were sounded.</summary>")
        if "Sound the south pier." in words:
            return call("Bash", {"command": "echo 8 m", "description": "Sound"})
        if "How deep" in words:
            north, south = (call("Bash", {"command": f"echo {n} m", "description": "Sound"}) for n in (8, 9))
            return calls(north, south, text="Both.")
        if "And now" in words:
            return call("Agent", {"description": "Sound", "prompt": "Sound the south pier."})
        return say("So it was.")

    return turn


def openhands() -> Script:
    """Two commands, a sub-agent that runs one, more words until older ones are condensed."""

    def turn(exchange: Exchange) -> Turn:
        said = exchange.said
        words = json.dumps(said.get("input", said.get("messages"))[-1])
        if not said.get("tools"):
            return say("Piers were sounded.")
        if "Look at the ground." in words and "tool" not in words:
            return call("terminal", {"command": "echo sand"})
        if "How deep" in words:
            return calls(call("terminal", {"command": "echo 9 m"}), call("terminal", {"command": "echo 8 m"}))
        if "And the ground" in words:
            task = {"description": "Look", "prompt": "Look at the ground.", "subagent_type": "diver"}
            return call("task", task)
        return say("So it is.")

    return turn


def shell() -> Script:
    """A call, words without one (which it complains about), a call, the command that ends it."""
    return [
        call("bash", {"command": "echo 9 m"}, text="Both."),
        say("No command."),
        call("bash", {"command": "echo 8 m"}, text="Once more."),
        call("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}, text="Done."),
    ]


def probes(exchange: Exchange) -> bool:
    """Inspect's request by which it tries whether the wire is there at all."""
    return isinstance(exchange.said["input"], str)

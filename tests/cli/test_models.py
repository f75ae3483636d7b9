"""A model that cannot be had: one clear sentence, exit code 3, and the run goes on when that is mended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shiftbook.providers.scripted import call, say
from shiftbook.testing.server import Exchange, Fails, ProviderServer, Turn
from tests.cli.program import Ran, run

AGENTS = '''
import os
from shiftbook import Agent, tool
from shiftbook.providers.anthropic_provider import Anthropic
from shiftbook.providers.openai_provider import OpenAIChat, OpenAIResponses


@tool(repeat="safe")
def look(what: str) -> str:
    """Look something up."""
    return f"{what}: 17"


def agent(wire, model):
    base = os.environ["PLACE"] + ("" if wire is Anthropic else "/v1")
    made = wire(os.environ.get("MODEL", model), base_url=base, key_env="KEY")
    return Agent(name="shop", model=made, tools=[look])


anthropic = agent(Anthropic, "claude-sonnet-5-5")
chat = agent(OpenAIChat, "gpt-6-sol")
responses = agent(OpenAIResponses, "gpt-6-sol")
'''
EACH = pytest.mark.parametrize("wire", ["anthropic", "chat", "responses"])
KEY = "sk-right-1234567890"
GOOD = {"anthropic": "claude-sonnet-5-5", "chat": "gpt-6-sol", "responses": "gpt-6-sol"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(AGENTS, encoding="utf-8")
    return tmp_path


def script(refuses: Callable[[Exchange], Fails | None] = lambda exchange: None) -> Callable[[Exchange], Turn]:
    """A look, and words; where `refuses` gives a failure, that."""

    def answer(exchange: Exchange) -> Turn:
        refusal = refuses(exchange)
        if refusal is not None:
            return refusal
        return say("17 boxes.") if "17" in exchange.raw.decode() else call("look", {"what": "tea"})

    return answer


def failed(ran: Ran, *said: str) -> str:
    """Exit code 3, a state for scripts, and one sentence for people that holds these words."""
    assert ran.code == 3, ran.err
    assert ran.json["state"] == "failed"
    [line] = [each for each in ran.err.splitlines() if "model request failed" in each]
    assert "(attempt 1), not tried again: " in line
    assert line.endswith((".", ")")), line
    for each in said:
        assert each in line
    assert "shiftbook resume" in ran.err
    return line


def goes_on(folder: Path, server: ProviderServer, **place: str) -> None:
    """The run is taken up, finishes, and its record is without fault."""
    ran = run(folder, "resume", "r1", "--json", PLACE=server.anthropic_url, **({"KEY": KEY} | place))
    assert ran.code == 0, ran.err
    assert ran.json["state"] == "finished"
    assert ran.json["actions"] == 1
    assert run(folder, "verify", "r1").code == 0


def begin(folder: Path, wire: str, server: ProviderServer, **place: str) -> Ran:
    words = ("run", f"agent.py:{wire}", "How much tea?", "--run-id", "r1", "--json")
    return run(folder, *words, PLACE=server.anthropic_url, **({"KEY": KEY} | place))


@EACH
def test_no_key(folder: Path, wire: str) -> None:
    with ProviderServer(script(), keys=[KEY]) as server:
        ran = begin(folder, wire, server, KEY="")
        assert ran.code == 3
        assert ran.out == ""
        [line] = ran.err.splitlines()
        assert line.startswith("shiftbook: ")
        assert "needs a key: set KEY in the environment, or give api_key=." in line
        assert server.exchanges == ()
        assert begin(folder, wire, server).code == 0, "nothing was written, so the id is free"
        before = len(server.exchanges)
        ran = run(folder, "resume", "r1", "--message", "And now?", PLACE=server.anthropic_url, KEY="")
        assert ran.code == 3
        assert "needs a key" in ran.err
        assert len(server.exchanges) == before


@EACH
def test_a_wrong_key(folder: Path, wire: str) -> None:
    with ProviderServer(script(), keys=[KEY]) as server:
        wrong = "sk-wrong-0987654321"
        ran = begin(folder, wire, server, KEY=wrong)
        failed(ran, " answered 401: ", "The key was not accepted; set a valid one.")
        assert len(server.exchanges) == 1
        assert wrong not in ran.err + ran.out
        assert wrong not in run(folder, "export", "r1").out
        goes_on(folder, server)


@EACH
def test_an_unknown_model(folder: Path, wire: str) -> None:
    with ProviderServer(script(), models=list(GOOD.values())) as server:
        line = failed(
            begin(folder, wire, server, MODEL="claude-sonet-55"), " answered 404: ", "claude-sonet-55"
        )
        assert "Check the model's name and the address." in line
        assert len(server.exchanges) == 1
        goes_on(folder, server)


@EACH
def test_a_model_without_tools(folder: Path, wire: str) -> None:
    def refuses(exchange: Exchange) -> Fails | None:
        is_small = exchange.said["model"] == "tiny-1"
        message = "`tools` is not supported with this model"
        return Fails(400, message) if is_small and exchange.said.get("tools") else None

    with ProviderServer(script(refuses)) as server:
        failed(
            begin(folder, wire, server, MODEL="tiny-1"),
            " answered 400: ",
            "`tools` is not supported with this model.",
        )
        assert len(server.exchanges) == 1
        goes_on(folder, server, MODEL=GOOD[wire])


@EACH
def test_a_schema_that_the_vendor_refuses(folder: Path, wire: str) -> None:
    def refuses(exchange: Exchange) -> Fails | None:
        named = any("pattern" in str(tool) for tool in exchange.said["tools"])
        return Fails(400, "Invalid schema for function 'look': 'pattern' is not permitted") if named else None

    odd = AGENTS.replace("def look(what: str)", "def look(what: Annotated[str, Field(pattern='^[a-z]+$')])")
    odd = odd.replace(
        "import os\n", "import os\nfrom typing import Annotated\nfrom pydantic import Field\n", 1
    )
    (folder / "agent.py").write_text(odd, encoding="utf-8")
    with ProviderServer(script(refuses)) as server:
        failed(
            begin(folder, wire, server), " answered 400: ", "Invalid schema for function 'look'", "'pattern'"
        )
        assert len(server.exchanges) == 1
        (folder / "agent.py").write_text(AGENTS, encoding="utf-8")
        goes_on(folder, server)


@EACH
def test_nobody_there_is_tried_again_and_then_told(folder: Path, wire: str) -> None:
    patient = AGENTS.replace("tools=[look])", "tools=[look], limits=Limits(retries=1, retry_ms_min=0))")
    patient = patient.replace("import Agent, tool", "import Agent, Limits, tool")
    (folder / "agent.py").write_text(patient, encoding="utf-8")
    with ProviderServer(script()) as server:
        with server.refusing():
            ran = begin(folder, wire, server)
        assert ran.code == 3
        lines: list[Any] = [each for each in ran.err.splitlines() if "model request failed" in each]
        assert [each.partition(": ")[0] for each in lines] == [
            "model request failed (attempt 1), trying again",
            "model request failed (attempt 2), not tried again",
        ]
        assert all("the connection failed" in each for each in lines)
        goes_on(folder, server)

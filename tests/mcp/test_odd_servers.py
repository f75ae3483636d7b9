"""Servers that are not as they should be: hostile answers, programs that cannot start, clashing names, lists
that grow past the cap; and nothing of a server left behind."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from shiftbook.entries import (
    ActionFinished,
    AgentDeclared,
    LimitReached,
)
from shiftbook.errors import AgentMistake, AgentUnusable, ShiftbookError
from shiftbook.mcp import McpTools, StdioServer
from shiftbook.mcp.servers import Server
from shiftbook.messages import Missing, Request, Text
from shiftbook.prompt.measure import fixed_tokens
from shiftbook.providers.scripted import call, calls, say
from shiftbook.run.limits import Limits
from shiftbook.tokens import BpeMeter
from shiftbook.tools.function import tool
from tests.mcp.ground import PLACE, RUN, answers, arrived, bought, http_shop, raw, shop
from tests.run.desk import Desk, run_async

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("way", "size"), [("stdio", 5_000_000), ("http", 20_000_000)])
def test_e8_a_huge_result_is_recorded_up_to_the_limit(way: str, size: int, tmp_path: Path) -> None:
    async def main(ground: Desk, server: Server) -> None:
        script = [call("huge", {"place": "A", "amount": size}), say("Done.")]
        summary = await bought(ground, script, McpTools(server), policy="window")
        assert summary.state == "finished"
        (finished,) = await ground.whats(RUN, ActionFinished)
        kept = sum(len(part.text) for part in finished.content if isinstance(part, Text))
        assert kept == min(size, Limits().result_bytes) or any(
            isinstance(part, Missing) for part in finished.content
        )
        assert kept > 4_999_999
        await ground.check(RUN)

    with ExitStack() as stack:
        server = shop(tmp_path) if way == "stdio" else stack.enter_context(http_shop(tmp_path))[0]
        run_async(lambda ground: main(ground, server))


@pytest.mark.parametrize(
    ("result", "holds"),
    [
        (r'{"content":[{"type":"text","text":"a\udc88b"}]}', "a\udc88b"),
        ('{"content":[{"type":"text","text":"a\\u0000b"}]}', "a\x00b"),
        ('{"content":[],"structuredContent":{"n":NaN,"m":1e999}}', "nan"),
        ('{"content":[],"structuredContent":{"n":"not what the schema says"}}', "not what the schema says"),
        ('{"content":"no list"}', "no list"),
        ('{"content":[{"type":"text"}]}', "text"),
        ('{"surprise":123456789012345678901234567890}', "content"),
        ("[1,2]", "1"),
        ("null", "null"),
    ],
)
def test_f1_f3_f5_whatever_a_server_answers_is_recorded_and_the_run_goes_on(result: str, holds: str) -> None:
    async def main(ground: Desk) -> None:
        box = McpTools(raw(result, '{"content":[{"type":"text","text":"next"}]}', stray=True))
        summary = await bought(ground, [call("say"), call("say"), say("Done.")], box)
        assert summary.state == "finished"
        finished, after = await ground.whats(RUN, ActionFinished)
        assert holds in repr(finished.content).encode("utf-8", "surrogatepass").decode(
            "unicode_escape"
        ) or any(holds in getattr(part, "text", getattr(part, "what", "")) for part in finished.content)
        assert after.content[0] == Text("next")
        assert [*(await ground.whats(RUN, AgentDeclared))[0].contracts] == ["say"]
        await ground.check(RUN)

    run_async(main)


@pytest.mark.parametrize(
    ("server", "says"),
    [
        (StdioServer("x", "/no/such/program"), "FileNotFoundError"),
        (StdioServer("x", "sh", ["-c", "echo the licence has run out >&2; exit 3"]), "licence has run out"),
    ],
)
def test_a_server_that_cannot_be_had_is_refused_before_anything_is_written(
    server: StdioServer, says: str
) -> None:
    async def main(ground: Desk) -> None:
        with pytest.raises(AgentUnusable, match=says):
            await bought(ground, [say("Done.")], McpTools(server))
        with pytest.raises(ShiftbookError):
            await ground.entries(RUN)

    run_async(main)


def test_two_tools_of_one_name_are_refused_unless_the_toolbox_knows_which_are_taken(tmp_path: Path) -> None:
    @tool(repeat="safe")
    def count(place: str) -> str:
        """Our own."""
        return f"counted {place} here"

    async def main(ground: Desk) -> None:
        with pytest.raises(AgentMistake, match="'count', one of them from a toolbox"):
            await bought(ground, [say("Done.")], McpTools(shop(tmp_path)), tools=[count])
        box = McpTools(shop(tmp_path), taken=["count"])
        script = [calls(call("count", PLACE), call("shop_count", PLACE)), say("Done.")]
        await bought(ground, script, box, tools=[count])
        # Side by side, the two may end in either order.
        assert {words for _, words in await answers(ground)} == {"counted A here", '{"place": "A"}'}

    run_async(main)


def test_p2_a_list_that_grows_past_the_cap_is_a_limit_and_not_a_crash(tmp_path: Path) -> None:
    async def main(ground: Desk) -> None:
        (tmp_path / "extra").touch()
        async with McpTools(shop(tmp_path)) as box:
            cap = fixed_tokens("", [tool.schema for tool in box.tools], BpeMeter()) - 1
        (tmp_path / "extra").unlink()

        def script(request: Request) -> Any:
            return call("grow", PLACE) if request.turn == 1 else call("count", PLACE)

        summary = await bought(ground, script, McpTools(shop(tmp_path)), cap=cap, policy="window")
        assert (summary.state, summary.why) == ("limited", "cap")
        (reached,) = await ground.whats(RUN, LimitReached)
        assert reached.value > reached.allowed == cap
        await ground.check(RUN)

    run_async(main)


def test_after_the_last_user_has_closed_it_no_program_is_left(tmp_path: Path) -> None:
    async def main(ground: Desk) -> None:
        box = McpTools(shop(tmp_path))
        async with box:
            await bought(ground, [call("count", PLACE), say("Done.")], box)
            (came,) = arrived(tmp_path)
            assert (Path("/proc") / str(came["pid"])).exists()
        assert not (Path("/proc") / str(came["pid"])).exists()

    run_async(main)

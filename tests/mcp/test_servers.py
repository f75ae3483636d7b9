"""Runs that use servers of the MCP SDK, in processes of their own: over standard streams and over HTTP, as of
2026-07-28 and as before it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from shiftbook.entries import (
    ActionFinished,
    ActionStarted,
    AgentDeclared,
    EpochOpened,
)
from shiftbook.mcp import KEY_META, McpTools
from shiftbook.mcp.servers import Server
from shiftbook.mcp.tool import ToolChanged
from shiftbook.messages import Media, Request, Result, Text
from shiftbook.providers.scripted import call, calls, say
from shiftbook.run.desk import NoWatcher
from shiftbook.run.loop import resume, start
from shiftbook.testing.crash import Crash, Dies, Seams
from shiftbook.tools.contract import Context, OutcomeUnknown
from tests.mcp.ground import PLACE, RUN, answers, arrived, bought, buyer, http_shop, shop
from tests.run.desk import LEASE_MS, Desk, run_async

pytestmark = pytest.mark.slow

Reach = Callable[..., Server]


@pytest.fixture(params=["stdio", "stdio old", "http", "http old"])
def reach(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reach]:
    """How the shop is reached: each way that there is."""
    way, *flags = request.param.split()
    with ExitStack() as stack:

        def reached(*more: str) -> Server:
            if way == "stdio":
                return shop(tmp_path, *flags, *more)
            return stack.enter_context(http_shop(tmp_path, *flags, *more))[0]

        yield reached


def test_a2_a_run_uses_a_servers_tools_and_the_key_of_each_call_arrives(reach: Reach, tmp_path: Path) -> None:
    async def main(ground: Desk) -> None:
        box = McpTools(reach())
        script = [
            calls(call("count", PLACE), call("count", PLACE)),
            call("refuse", PLACE),
            call("fault", PLACE),
            say("Done."),
        ]
        summary = await bought(ground, script, box)
        assert (summary.state, summary.actions) == ("finished", 4)
        assert await answers(ground) == [
            ("done", '{"place": "A"}'),
            ("done", '{"place": "A"}'),
            ("failed", '{"place": "A"}'),
            ("failed", "Refused: MCP server 'shop' answered with error -32602: no such shelf"),
        ]
        started = await ground.whats(RUN, ActionStarted)
        sent = [item["meta"][KEY_META] for item in arrived(tmp_path)]
        assert sorted(sent) == sorted(what.key for what in started)
        assert len(set(sent)) == 4
        await ground.check(RUN)

    run_async(main)


def test_p7_a_list_that_changes_is_declared_and_starts_an_epoch(reach: Reach, tmp_path: Path) -> None:
    async def main(ground: Desk) -> None:
        seen: list[bool] = []

        def script(request: Request) -> Any:
            seen.append(any(tool.name == "extra" for tool in request.tools))
            if request.turn == 1:
                return call("grow", PLACE)
            # The news of the change is on its way by itself: look until it has come.
            return (
                call("count", PLACE)
                if not seen[-1] and request.turn < 200
                else (call("extra", PLACE) if seen.count(True) == 1 else say("Done."))
            )

        summary = await bought(ground, script, McpTools(reach()))
        assert summary.state == "finished"
        assert seen[-2:] == [True, True]
        assert (await answers(ground))[-1] == ("done", '{"place": "A"}')
        first, second = await ground.whats(RUN, AgentDeclared)
        assert {*second.contracts} - {*first.contracts} == {"extra"}
        assert [(what.epoch, what.reason) for what in await ground.whats(RUN, EpochOpened)] == [
            (1, "start"),
            (2, "the agent changed"),
        ]
        await ground.check(RUN)

    run_async(main)


@pytest.mark.parametrize("flags", [(), ("old",)])
def test_a_server_that_dies_in_a_call_does_not_take_the_run_along(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    async def main(ground: Desk) -> None:
        script = [
            call("die_once", PLACE),  # may be repeated: it is, under the same key, by the server's successor
            call("die", PLACE),  # dies each time
            call("count", PLACE),
            say("Done."),
        ]
        summary = await bought(ground, script, McpTools(shop(tmp_path, *flags), clock=ground.clock))
        assert summary.state == "finished"
        (done, _), (unknown, words), (after, _) = await answers(ground)
        assert (done, unknown, after) == ("done", "unknown", "done")
        assert "ended during the call" in words
        tries = [(what.call, what.attempt) for what in await ground.whats(RUN, ActionStarted)]
        assert tries == [("1.1", 1), ("1.1", 2), ("2.1", 1), ("2.1", 2), ("3.1", 1)]
        came = arrived(tmp_path)
        assert [item["call"] for item in came] == ["die_once", "die_once", "die", "die", "count"]
        assert came[0]["meta"][KEY_META] == came[1]["meta"][KEY_META]
        assert [item["meta"]["shiftbook/attempt"] for item in came[:2]] == [1, 2]
        # It came back with the same tools: nothing was declared anew.
        assert len(await ground.whats(RUN, AgentDeclared)) == 1
        await ground.check(RUN)

    run_async(main)


def test_b5_a_call_that_may_not_be_repeated_is_not(tmp_path: Path) -> None:
    async def main(ground: Desk) -> None:
        summary = await bought(ground, [call("die_at_order", PLACE), say("Done.")], McpTools(shop(tmp_path)))
        assert summary.state == "finished"
        assert [outcome for outcome, _ in await answers(ground)] == ["unknown"]
        assert len(arrived(tmp_path)) == 1

    run_async(main)


def test_a_server_over_http_that_is_gone_is_told_and_one_that_returns_is_found_again(tmp_path: Path) -> None:
    async def main(ground: Desk) -> None:
        with ExitStack() as first, ExitStack() as second:
            server, port, _ = first.enter_context(http_shop(tmp_path, "old"))

            def script(request: Request) -> Any:
                if request.turn == 2:
                    first.close()
                if request.turn == 3:
                    second.enter_context(http_shop(tmp_path, "old", port=port))
                return call("order", PLACE) if request.turn < 4 else say("Done.")

            summary = await bought(ground, script, McpTools(server, clock=ground.clock))
        assert summary.state == "finished"
        (one, _), (two, words), (three, _) = await answers(ground)
        assert (one, two, three) == ("done", "failed", "done")
        assert "nothing was done" in words
        assert len(arrived(tmp_path)) == 2
        await ground.check(RUN)

    run_async(main)


def test_a_session_that_a_restarted_server_forgot_is_opened_anew(tmp_path: Path) -> None:
    async def main(ground: Desk) -> None:
        with ExitStack() as first, ExitStack() as second:
            server, port, _ = first.enter_context(http_shop(tmp_path, "old"))

            def script(request: Request) -> Any:
                if request.turn == 2:
                    first.close()
                    second.enter_context(http_shop(tmp_path, "old", port=port))
                return call("order", PLACE) if request.turn < 3 else say("Done.")

            await bought(ground, script, McpTools(server, clock=ground.clock))
        assert [outcome for outcome, _ in await answers(ground)] == ["done", "done"]
        assert len(arrived(tmp_path)) == 2

    run_async(main)


def test_e10_images_and_files_are_blobs_and_the_prompt_has_them_as_media(
    reach: Reach, tmp_path: Path
) -> None:
    async def main(ground: Desk) -> None:
        shown: list[Any] = []

        def script(request: Request) -> Any:
            if request.turn == 1:
                return call("show", PLACE)
            (result,) = request.blocks[-1].parts
            assert isinstance(result, Result)
            shown.extend(result.content)
            return say("Seen.")

        await bought(ground, script, McpTools(reach()))
        (finished,) = await ground.whats(RUN, ActionFinished)
        media = [part for part in finished.content if isinstance(part, Media)]
        assert [part.media_type for part in media] == ["image/png", "audio/wav", "x/y"]
        for part in media:
            assert len(await ground.store.blobs.get(RUN, part.blob)) == part.size
        assert [part for part in shown if isinstance(part, Media)] == media
        assert [part.text for part in finished.content if isinstance(part, Text)][-1].startswith(
            '{"crates":12'
        )
        await ground.check(RUN)

    run_async(main)


class Impatient(NoWatcher):
    """Does something as soon as a tool tells of progress."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.then = then
        self.heard: list[str] = []

    def progress(self, call: str, message: str) -> None:
        self.heard.append(message)
        self.then()


@pytest.mark.parametrize("flags", [(), ("old",)])
@pytest.mark.parametrize("how", ["time", "person"])
def test_a_call_that_is_given_up_is_told_to_the_server_and_its_outcome_is_unknown(
    how: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    async def main(ground: Desk) -> None:
        watcher = Impatient()
        box = McpTools(shop(tmp_path, *flags), timeout_ms=400 if how == "time" else None, attempts=1)
        agent = buyer([call("wait", PLACE), call("count", PLACE), say("Done.")], box)
        async with await start(
            ground.store, agent, "Buy.", run=RUN, clock=ground.clock, watcher=watcher
        ) as run:
            if how == "person":
                watcher.then = run.cancel
            await run.finish()
            await run.say("Go on.")
            await run.finish()
        outcomes = [outcome for outcome, _ in await answers(ground)]
        assert outcomes == ["unknown", "done"] if how == "time" else outcomes[:1] == ["unknown"]
        assert watcher.heard == ["begun (1 of 3)"]
        assert [item.get("cancelled") for item in arrived(tmp_path)][:2] == [None, "wait"]
        await ground.check(RUN)

    run_async(main)


def test_i6_a_resume_with_a_shuffling_server_declares_nothing_anew(tmp_path: Path) -> None:
    async def main(ground: Desk) -> None:
        for turn in range(4):
            agent = buyer([call("count", PLACE), *[say("Done.")] * 8], McpTools(shop(tmp_path, "shuffled")))
            opened = (
                resume(ground.store, RUN, agent, "More.", clock=ground.clock)
                if turn
                else start(ground.store, agent, "Buy.", run=RUN, clock=ground.clock)
            )
            async with await opened as run:
                assert (await run.finish()).state == "finished"
        assert len(await ground.whats(RUN, AgentDeclared)) == 1
        assert len(await ground.whats(RUN, EpochOpened)) == 1
        await ground.check(RUN)

    run_async(main)


def test_a3_a_pending_call_of_a_changed_tool_is_never_given_to_it(tmp_path: Path) -> None:
    async def main(ground: Desk) -> None:
        script = [calls(call("count", PLACE), call("show", PLACE)), say("Done."), say("Done.")]
        # Death once the calls are announced: before the model's second request nothing else is committed.
        seams = Seams(Dies(3, "after", "entries.append"))
        dying = seams.agent(buyer(script, McpTools(shop(tmp_path))))
        with pytest.raises(Crash):
            async with await start(
                seams.store(ground.store), dying, "Buy.", run=RUN, clock=ground.clock, lease_ms=LEASE_MS
            ) as run:
                await run.finish()
        ground.expire()
        assert arrived(tmp_path) == []
        (tmp_path / "changed").touch()
        agent = buyer(script, McpTools(shop(tmp_path)))
        async with await resume(ground.store, RUN, agent, clock=ground.clock) as run:
            assert (await run.finish()).state == "finished"
        assert [item["call"] for item in arrived(tmp_path)] == ["show"]
        outcomes = {what.call: what.outcome for what in await ground.whats(RUN, ActionFinished)}
        assert outcomes == {"1.1": "unknown", "1.2": "done"}
        await ground.check(RUN)

    run_async(main)


def test_a3_a_tool_that_changed_while_its_server_was_away_is_not_called(tmp_path: Path) -> None:
    def context(call: str) -> Context:
        return Context(RUN, call, "", f"{RUN}-{call}", 1, lambda: 0, lambda _: None, threading.Event())

    async def main(ground: Desk) -> None:
        async with McpTools(shop(tmp_path), clock=ground.clock) as box:
            tools = {tool.name: tool for tool in box.tools}
            (tmp_path / "changed").touch()
            with pytest.raises(OutcomeUnknown):
                await tools["die_at_order"].run(PLACE, context("1.1"))
            with pytest.raises(ToolChanged, match="nothing was done"):
                await tools["count"].run(PLACE, context("1.2"))
            await tools["show"].run(PLACE, context("1.3"))
            assert [item["call"] for item in arrived(tmp_path)] == ["die_at_order", "show"]
            assert box.stale
            await box.refresh()
            new = {tool.name: tool for tool in box.tools}
            assert {name for name in tools if new[name] is not tools[name]} == {"count"}

    run_async(main)


def test_whoever_opens_a_toolbox_that_another_is_opening_gets_its_tools_too(tmp_path: Path) -> None:
    """A worker's runs share their agent's toolbox, and open it in the same moment."""

    async def main(ground: Desk) -> None:
        box = McpTools(shop(tmp_path))

        async def found() -> list[str]:
            await box.open()
            return [tool.name for tool in box.tools]

        first, second = await asyncio.gather(found(), found())
        assert first == second != []
        await box.close()
        await box.close()

    run_async(main)


def test_a_toolbox_that_its_first_user_gave_up_opening_is_opened_by_the_next(tmp_path: Path) -> None:
    async def main(ground: Desk) -> None:
        box = McpTools(shop(tmp_path))
        first = asyncio.create_task(box.open())
        await asyncio.sleep(0)
        second = asyncio.create_task(box.open())
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait({first, second})
        assert first.cancelled()
        assert second.exception() is None
        assert box.tools
        await box.close()

    run_async(main)

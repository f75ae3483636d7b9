"""Runs that use servers of the MCP SDK, in processes of their own: over standard streams and over HTTP, as of
2026-07-28 and as before it."""

from __future__ import annotations

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
    LimitReached,
)
from shiftbook.errors import AgentMistake, AgentUnusable, ShiftbookError
from shiftbook.mcp import KEY_META, McpTools, StdioServer
from shiftbook.mcp.servers import Server
from shiftbook.messages import Media, Missing, Request, Text
from shiftbook.prompt.measure import fixed_tokens
from shiftbook.providers.scripted import call, calls, say
from shiftbook.run.desk import NoWatcher
from shiftbook.run.limits import Limits
from shiftbook.run.loop import resume, start
from shiftbook.run.summary import Summary
from shiftbook.testing.crash import Crash, Dies, Seams
from shiftbook.tokens import BpeMeter
from shiftbook.tools.function import tool
from tests.mcp.ground import arrived, buyer, http_shop, raw, shop
from tests.run.desk import LEASE_MS, Desk, run_async

pytestmark = pytest.mark.slow

RUN = "buying"
PLACE = {"place": "A"}
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


async def bought(ground: Desk, script: Any, box: McpTools, **changes: Any) -> Summary:
    """A run of one message, to its rest."""
    async with await start(
        ground.store, buyer(script, box, **changes), "Buy.", run=RUN, clock=ground.clock
    ) as run:
        return await run.finish()


async def answers(ground: Desk) -> list[tuple[str, str]]:
    """The outcome and the words of each answer, in order."""
    return [
        (what.outcome, "".join(part.text for part in what.content if isinstance(part, Text)))
        for what in await ground.whats(RUN, ActionFinished)
    ]


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
            shown.extend(request.blocks[-1].parts[0].content)
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
        assert [words for _, words in await answers(ground)] == ["counted A here", '{"place": "A"}']

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

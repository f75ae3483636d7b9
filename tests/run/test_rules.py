"""Rules in a run: of the author with the agent, of a person through the inbox."""

from __future__ import annotations

from typing import Any

import pytest

from shiftbook.entries import (
    AgentDeclared,
    EpochOpened,
    RuleSet,
)
from shiftbook.errors import BadInput
from shiftbook.providers.scripted import say
from shiftbook.run.loop import resume
from shiftbook.run.mail import post_rule
from tests.run.book import RUN, again, go
from tests.run.desk import Desk, agent, run_async, said


def test_rules_are_written_at_the_start_and_when_they_change_or_are_withdrawn() -> None:
    async def main(ground: Desk) -> None:
        asked: list[Any] = []

        def script(request: Any) -> Any:
            asked.append(request)
            return say("Yes.")

        await go(ground, script, rules={"units": "Boxes.", "tone": "Short."})
        await again(ground, script, "More.", rules={"units": "Boxes.", "tone": "Short."})
        assert len(await ground.whats(RUN, RuleSet)) == 2
        await again(ground, script, "More.", rules={"units": "Crates."})
        assert [(w.key, w.text, w.withdrawn) for w in (await ground.whats(RUN, RuleSet))[2:]] == [
            ("tone", "Short.", True),
            ("units", "Crates.", False),
        ]
        assert said(asked[0])[0].startswith("[Rule units, set by the author of this agent, entry 3;")
        assert len(await ground.whats(RUN, AgentDeclared, EpochOpened)) == 2
        assert "Crates." in said(asked[-1])[-1]
        await ground.check(RUN)

    run_async(main)


def test_an_authors_rule_alone_asks_no_model() -> None:
    async def main(ground: Desk) -> None:
        summary = await go(ground, [say("never said")], None, rules={"units": "Boxes."})
        assert (summary.state, summary.turns) == ("waiting", 0)
        await go_on(ground)

    async def go_on(ground: Desk) -> None:
        await again(ground, [say("Yes.")], "Hello.", rules={"units": "Boxes."})
        assert len(await ground.whats(RUN, RuleSet)) == 1
        await ground.check(RUN)

    run_async(main)


def test_a_persons_rule_comes_through_the_inbox_and_is_the_persons() -> None:
    async def main(ground: Desk) -> None:
        asked: list[Any] = []

        def script(request: Any) -> Any:
            asked.append(request)
            return say("Yes.")

        await go(ground, script)
        await post_rule(ground.store, RUN, "tone", "Short.", clock=ground.clock)
        await again(ground, script)
        async with await resume(ground.store, RUN, agent(script, book_tools=True), clock=ground.clock) as run:
            await run.rule("tone", "", withdrawn=True)
            await run.finish()
        rules = await ground.whats(RUN, RuleSet)
        assert [(rule.author, rule.withdrawn, rule.item is None) for rule in rules] == [
            ("person", False, False),
            ("person", True, False),
        ]
        assert said(asked[1])[-1].startswith("[Rule tone, set by a person, entry ")
        assert len(asked) == 3
        await ground.check(RUN)
        for key, text in (("", "x"), ("a\nb", "x"), ("k", " ")):
            with pytest.raises(BadInput, match="A rule cannot be set"):
                await post_rule(ground.store, RUN, key, text)

    run_async(main)

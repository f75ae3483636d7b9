"""Why a prompt is what it is: every block's entries, and every entry that is not there with a reason."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from shiftbook.entries import MODEL_VISIBLE, EpochOpened, ModelAsked, ReportWritten
from shiftbook.messages import Request, Usage
from shiftbook.providers.scripted import Step, say
from shiftbook.views import explain_view, prompt_view
from tests.run.book import RUN, go
from tests.run.desk import Desk, run_async
from tests.run.reports import SMALL as BY_MODEL
from tests.run.reports import pages, read, report, writes
from tests.run.reports import script as reading
from tests.run.test_journal_prompt import SMALL, script


async def explained(ground: Desk) -> tuple[Any, Any]:
    turn = (await ground.whats(RUN, ModelAsked))[-1].turn
    return await explain_view(ground.store, RUN, turn), await prompt_view(ground.store, RUN, turn)


def test_every_visible_entry_is_in_a_block_or_left_out_with_a_reason() -> None:
    async def main(ground: Desk) -> None:
        await go(ground, script(60), **SMALL)
        view, prompt = await explained(ground)
        entries = await ground.entries(RUN)
        asked_at = max(entry.position for entry in entries if isinstance(entry.what, ModelAsked))
        visible = {e.position for e in entries if type(e.what) in MODEL_VISIBLE and e.position < asked_at}
        shown = {at for block in view["blocks"] for at in block["entries"]}
        assert visible - shown, "something left"
        for at in visible - shown:
            assert any(left["first"] <= at <= left["last"] for left in view["left_out"])
        assert sum(left["entries"] for left in view["left_out"]) == len(visible - shown)
        report = max(e.position for e in entries if isinstance(e.what, ReportWritten) and e.position in shown)
        reasons = {left["why"] for left in view["left_out"]}
        assert f"left the prompt; told by the report of entry {report}" in reasons
        assert not any("in no block" in why for why in reasons)
        assert [block["tokens"] for block in view["blocks"]] == [each["tokens"] for each in prompt["blocks"]]

    run_async(main)


def test_the_epochs_reason_and_figures_are_those_of_the_journal() -> None:
    async def main(ground: Desk) -> None:
        await go(ground, script(60), **SMALL)
        view, _ = await explained(ground)
        opened = (await ground.whats(RUN, EpochOpened))[-1]
        assert (view["epoch"], view["reason"]) == (opened.epoch, opened.reason)
        assert view["numbers"] == dict(opened.numbers)
        assert json.loads(json.dumps(view)) == view
        kinds = [(block["kind"], block["form"]) for block in view["blocks"]]
        assert kinds[:3] == [("tallies", "tallies"), ("pending", "pending"), ("ReportWritten", "kept")]
        assert kinds[3] == ("PersonSaid", "kept")
        assert view["numbers"]["pending"] == view["blocks"][1]["tokens"]
        assert ("ActionFinished", "whole") in kinds

    run_async(main)


def test_a_first_epoch_leaves_nothing_out_and_a_warning_is_told_with_its_turn() -> None:
    async def main(ground: Desk) -> None:
        await go(ground, script(3), "word " * 40_000, **SMALL)
        first = await explain_view(ground.store, RUN, 1)
        assert first["left_out"] == []
        assert len(first["warnings"]) == 1
        assert "a person's own words" in first["warnings"][0]
        assert first["blocks"][0]["form"] == "cut"
        assert (await explain_view(ground.store, RUN, 2))["warnings"] == []

    run_async(main)


def test_who_wrote_the_report_from_what_and_what_was_struck_is_told_for_all_of_its_epoch() -> None:
    async def main(ground: Desk) -> None:
        def writer(request: Request) -> Step:
            ((at, page), *_) = pages(request)
            made = report((f"Page {page} was read.", [at]), (f"Page {page} holds 123456 lines.", [at]))
            return replace(made, usage=Usage(uncached=10, cache_read=90, output=5))

        await go(ground, writes(writer, reading(24)), tools=(read,), **BY_MODEL)
        view, _ = await explained(ground)
        told = view["report"]
        assert (told["writer"], told["requests"], told["read"]) == ("scripted", 1, 0.9)
        assert told["tokens"] > 3_000
        assert view["warnings"] == []
        assert len(view["struck"]) == 1
        assert "123456 is in none of the entries" in view["struck"][0]
        assert json.loads(json.dumps(view)) == view

    run_async(main)


def test_why_a_rule_had_to_help_out_is_told_for_all_of_the_epoch() -> None:
    async def main(ground: Desk) -> None:
        await go(ground, writes(lambda request: say("No."), reading(24)), tools=(read,), **BY_MODEL)
        view, _ = await explained(ground)
        assert view["report"]["writer"] == "mechanical"
        assert view["warnings"] == ["What leaves the prompt is told by rule: the model's reply was no JSON."]

    run_async(main)

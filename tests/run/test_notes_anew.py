"""Notes by a model: the account before is an input, and the new one takes its place whole."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest

from shiftbook.entries import LineStruck, ReportAsked, ReportWritten
from shiftbook.messages import Request
from shiftbook.prompt.overreach import is_persons
from shiftbook.providers.scripted import Scripted, Step
from tests.run.book import RUN, go
from tests.run.desk import Desk, run_async, said
from tests.run.reports import SMALL, asked_for, lines_of, pages, read, report, script, writes
from tests.run.test_model_report import Writer

NOTES: dict[str, Any] = {**SMALL, "policy": "notes", "tools": (read,)}
TOLD = re.compile(r"- Page (\d+) holds (\d+) lines\. \[(\d+)\]")
NAMED = re.compile(r"^(\d+): the report$", re.MULTILINE)


def rewriting(request: Request) -> Step:
    """The newest pages, an older one rightly and wrongly, and a line that rests on the account before."""
    words = asked_for(request)
    lines = [(f"Page {page} holds {lines_of(page)} lines.", [at]) for at, page in pages(request)[:3]]
    if told := TOLD.findall("\n".join(said(request))):
        page, count, at = told[0]
        lines.append((f"Of old: page {page} holds {count} lines.", [int(at)]))
        lines.append((f"Of old: page {page} holds {int(count) + 1} lines.", [int(at)]))
    if named := NAMED.search(words):
        lines.append(("An account was written before.", [int(named[1])]))
    return report(*lines)


@pytest.mark.parametrize("own", [True, False])
def test_what_a_model_wrote_before_stands_only_if_it_writes_it_again(own: bool) -> None:
    """The lines are of the newest reply alone, and are held against what the account before was made from."""

    async def main(ground: Desk) -> None:
        writer = Writer(rewriting)
        if own:
            await go(ground, writes(writer, script(60)), **NOTES)
        else:
            other = Scripted(writer, name="notekeeper")
            await go(
                ground, writes(rewriting, script(60)), **{**NOTES, "report": other, "report_window": 6_000}
            )
        written = await ground.whats(RUN, ReportWritten)
        asked = await ground.whats(RUN, ReportAsked)
        assert len(written) > 4
        entries = await ground.entries(RUN)
        reports = {entry.position for entry in entries if isinstance(entry.what, ReportWritten)}
        assert sum(any(at in reports for at in each.entries) for each in asked) == len(written) - 1
        for before, each in pairwise(written):
            model = {line for line in each.lines if not is_persons(line)}
            assert model
            assert not model & set(before.lines), "nothing is carried"
            assert any(line.text.startswith("Of old: page") for line in model), "but it may be written again"
        struck = {line.line.text for line in await ground.whats(RUN, LineStruck)}
        true = {f"Of old: page {page} holds {lines_of(page)} lines." for page in range(60)}
        assert any(text.startswith("Of old: page") for text in struck)
        assert not struck & true
        if own:
            assert "An account was written before." in struck, "an account is no source"
        await ground.check(RUN)

    run_async(main)

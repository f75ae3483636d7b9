"""What a report by a model is asked for with, and when no more is asked: bounds that cost money to pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shiftbook.entries import ReportAsked, ReportWritten, Warned
from shiftbook.messages import Request
from shiftbook.prompt.report import CHARS_PER_TOKEN, MECHANICAL
from shiftbook.providers.scripted import Scripted, Step, fails, say
from shiftbook.run import report
from shiftbook.testing.validator import check_request
from tests.run.book import RUN, go
from tests.run.desk import Desk, run_async
from tests.run.reports import SMALL, faithful, read, script, writes

WINDOW = 1_200
"""So small that what leaves takes several requests."""


def told(
    answer: Callable[[Request], Step], window: int = WINDOW, turns: int = 24, **changes: Any
) -> tuple[list[list[ReportAsked]], list[ReportWritten], list[str]]:
    """The requests of each report, the reports, and why each fell back on the rule, by a model of its own."""
    found: tuple[list[list[ReportAsked]], list[ReportWritten], list[str]] = ([[]], [], [])

    async def main(ground: Desk) -> None:
        scribe = Scripted(answer, "scribe", check=check_request)
        values = {**SMALL, "tools": (read,), "report": scribe, "report_window": window, **changes}
        await go(ground, script(turns), **values)
        for what in await ground.whats(RUN, ReportAsked, ReportWritten, Warned):
            if isinstance(what, ReportAsked):
                found[0][-1].append(what)
            elif isinstance(what, ReportWritten):
                found[0].append([])
                found[1].append(what)
            elif what.what == report.FELL_BACK:
                found[2].append(what.detail)
        await ground.check(RUN)

    run_async(main)
    return found[0][:-1], found[1], found[2]


def test_a_request_and_its_answer_fit_the_window_of_the_model_together() -> None:
    asked, _, _ = told(faithful)
    assert max(map(len, asked)) > 1
    for each in (each for parts in asked for each in parts):
        assert each.tokens + each.chars // CHARS_PER_TOKEN <= WINDOW


def test_who_could_not_be_asked_for_one_part_is_not_asked_for_the_next() -> None:
    asked, written, reasons = told(lambda request: fails(status=403, retryable=False, times=None))
    assert written
    assert [len(each) for each in asked] == [1] * len(written)
    assert {each.writer for each in written} == {MECHANICAL}
    assert len(reasons) == len(written)


def test_the_parts_of_a_report_are_bounded_and_the_rest_is_told_by_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(report, "PARTS_MAX", 2)
    asked, written, reasons = told(faithful)
    assert max(map(len, asked)) == 2
    assert any("2 requests did not hold all" in why for why in reasons)
    assert {each.writer for each in written} == {"scribe"}


def test_parts_that_fail_alike_are_warned_of_once() -> None:
    asked, written, reasons = told(lambda request: say("I would rather not."))
    assert max(map(len, asked)) > 1
    assert len(reasons) == len(written)
    assert all("no JSON" in why for why in reasons)


def test_who_writes_the_account_anew_may_fill_more_of_it() -> None:
    """Nothing is carried beside it then but people's words."""
    found: list[ReportAsked] = []

    async def main(ground: Desk) -> None:
        await go(ground, writes(faithful, script(40)), **{**SMALL, "policy": "notes", "tools": (read,)})
        found.extend(await ground.whats(RUN, ReportAsked))

    run_async(main)
    first, *later = found
    assert len(later) > 1
    ratio = report.REWRITTEN_SHARE / report.WRITTEN_SHARE
    assert all(abs(each.chars / first.chars - ratio) < 0.01 for each in later)

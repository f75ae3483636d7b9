"""Writing the report that a policy wants before it opens a new epoch.

It is written by rule, from the entries alone: it costs nothing, never fails, and is the same on every
machine. It is only staged, so that it is committed with the epoch that shows it; where mail keeps that back,
the report stands in the journal first, and the policy finds it there.
"""

from __future__ import annotations

from shiftbook.prompt.epoch import WantReport
from shiftbook.prompt.report import by_rule
from shiftbook.run.desk import Desk


def write_report(desk: Desk, want: WantReport) -> None:
    """Stage the report and what was struck from it."""
    keys = {key for key, _ in desk.knowledge.tallies}
    for what in by_rule(want, desk.gauge.measure, sorted(keys)):
        desk.note(what)

"""What holds for every prompt of a run, whatever happened in it: one small check for each promise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from shiftbook.entries import MODEL_VISIBLE, ReportWritten
from shiftbook.messages import Block, Call, Reasoning, Result, Text
from shiftbook.policies.sections import is_briefed_kind
from shiftbook.policies.units import is_briefed, is_by_code
from shiftbook.prompt.epoch import Rebuild
from shiftbook.prompt.rederive import cursor, cursor_ranges, from_cursor, rederive
from shiftbook.prompt.render import render_pick
from shiftbook.testing.validator import check_request
from tests.prompt.shift import Shift

HANDLE = re.compile(
    r"\[(?:\.\.\. \d+ characters left out; the whole is entry|Entr(?:y|ies)) (\d+)(?: to (\d+))?"
)


def texts_of(block: Block) -> Iterator[str]:
    for part in block.parts:
        for each in part.content if isinstance(part, Result) else (part,):
            if isinstance(each, Text):
                yield each.text


def cap_is_hard(shift: Shift) -> None:
    """P2, by the sizes of what is really sent and not only by the sum that was kept."""
    for asked in shift.asked:
        assert asked.tokens <= shift.cap
        if asked.meter == shift.gauge.meter_in_use and asked.tools == tuple(shift.tools):
            assert asked.tokens == shift.gauge.fixed + sum(map(shift.gauge.measure, asked.blocks))
    if shift.full is not None:
        assert shift.full.tokens > shift.cap


def request_is_sound(shift: Shift) -> None:
    """P4: every build could be sent to any vendor."""
    for asked in shift.asked:
        check_request(shift.request(asked))


def prompt_only_grows(shift: Shift) -> None:
    """P3: between rebuilds a prompt is a prefix of the next."""
    for before, after in pairwise(shift.asked):
        if before.epoch == after.epoch:
            assert after.blocks[: len(before.blocks)] == before.blocks
        else:
            assert after.epoch == before.epoch + 1


def journal_gives_prompts_again(shift: Shift) -> None:
    """P1, P7: re-derived from the entries, every digest is the one that was journaled."""
    fold = rederive(shift.journal)
    assert fold.faults == []
    assert fold.prompts == len(shift.asked)
    assert fold.fresh == shift.fresh
    if shift.asked:
        assert fold.prompt is not None
        assert fold.prompt.blocks == shift.prompt.blocks
        assert (fold.prompt.digest, fold.prompt.tokens) == (shift.prompt.digest, shift.asked[-1].tokens)
        assert list(fold.prompt.shown) == list(shift.prompt.shown)
        assert fold.prompt.picks == shift.prompt.picks


def cursor_gives_prompt_again(shift: Shift) -> None:
    """A resume by snapshot is the same prompt as a resume by all entries, measured the same."""
    if not shift.asked or shift.full is not None:
        return  # Before it gave up, the policy had the prompt measured by the exact meter.
    plain = cursor(shift.prompt, shift.fresh)
    needed = [shift.journal[p - 1] for first, last in cursor_ranges(plain) for p in range(first, last + 1)]
    for fold in (from_cursor(plain, needed, shift.gauge), rederive(shift.journal, shift.gauge)):
        assert fold.faults == []
        assert fold.fresh == shift.fresh
        assert fold.prompt == shift.prompt


def merged_picks_say_the_same(shift: Shift) -> None:
    """The merged recipe renders to the grown blocks; neighbours are merged but for the rebuilds' seams."""
    known = {entry.position: entry for entry in shift.journal}
    assert [block for pick in shift.prompt.picks for block in render_pick(pick, known)] == shift.prompt.blocks
    seams = 0
    for before, after in pairwise(shift.prompt.picks):
        if before.form == after.form in ("whole", "kept") and before.last < after.first:
            between = range(before.last + 1, after.first)
            seams += not any(type(known[position].what) in MODEL_VISIBLE for position in between)
    # Behind a brief, what is carried is named entry by entry.
    if not is_briefed(shift.prompt):
        assert seams <= sum(isinstance(asked.choice, Rebuild) for asked in shift.asked)


def handles_resolve(shift: Shift) -> None:
    """H4: what a prompt points to is an entry that exists and that a model may see."""
    for asked in shift.asked:
        for block in asked.blocks:
            for text in texts_of(block):
                for first, last in HANDLE.findall(text):
                    assert 1 <= int(first) <= int(last or first) <= len(shift.journal)
                    assert type(shift.journal[int(first) - 1].what) in MODEL_VISIBLE


def nothing_of_a_provider_crosses_a_rebuild(shift: Shift) -> None:
    """J1, J2, J4: reasoning and item ids are bound to the prefix that they came in."""
    opened: dict[int, int] = {}
    for asked in shift.asked:
        newest = max((position for block in asked.blocks for position in block.entries), default=0)
        since = opened.setdefault(asked.epoch, newest)
        for block in asked.blocks:
            if asked.epoch > 1 and block.entries[-1] <= since:
                for part in block.parts:
                    assert not isinstance(part, Reasoning)
                    assert not (isinstance(part, Call) and (part.vendor or part.raw))


def nothing_is_lost_in_silence(shift: Shift) -> None:
    """W3: each visible entry is shown, or in a range said not to be; a batch not shown is warned of."""
    known = {entry.position: entry for entry in shift.journal}
    for asked in shift.asked:
        dropped = [block.entries for block in asked.blocks if block.kind == "dropped"]
        reports = [
            (report.first, report.last)
            for block in asked.blocks
            if block.kind == "ReportWritten"
            and isinstance(report := known[block.entries[0]].what, ReportWritten)
        ]
        assert len(reports) <= 1, "one report"
        assert len(dropped) <= 1, "one notice"
        assert all(block.kind != "dropped" for block in asked.blocks[1:]), "and it stands in front"
        newest = max(asked.batch, default=0)
        for entry in shift.journal[:newest]:
            if type(entry.what) in MODEL_VISIBLE:
                is_told = any(first <= entry.position <= last for first, last in dropped)
                is_reported = any(first <= entry.position <= last for first, last in reports)
                is_shown = entry.position in asked.shown
                is_standing = is_briefed_kind(entry) or isinstance(entry.what, ReportWritten)
                # The line of a recall is nothing without what it brought back.
                is_standing = is_standing or is_by_code(entry)
                assert is_told != is_shown or (is_reported and not is_told) or is_standing
        for position in set(asked.batch) - asked.shown:
            if not (is_briefed_kind(known[position]) or is_by_code(known[position])):
                assert f"Entry {position} " in asked.warned


def nothing_is_shown_twice(shift: Shift) -> None:
    """What is brought back stands nowhere else in the prompt, and once."""
    for asked in shift.asked:
        back = [at for block in asked.blocks if block.kind == "recalled" for at in block.entries]
        assert len(back) == len(set(back))
        assert not set(back) & asked.shown


INVARIANTS = (
    nothing_is_shown_twice,
    cap_is_hard,
    request_is_sound,
    prompt_only_grows,
    journal_gives_prompts_again,
    cursor_gives_prompt_again,
    merged_picks_say_the_same,
    handles_resolve,
    nothing_of_a_provider_crosses_a_rebuild,
    nothing_is_lost_in_silence,
)

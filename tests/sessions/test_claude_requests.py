"""The rows of Claude Code files against counts by hand, trap by trap (fixtures/requests/claude_*).

The sums that a plain addition over lines gives stand beside ours, since that is the error people make.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from shiftbook.sessions import RecordedRequests, Unmeasured, requests_of, walk_requests
from tests.measure.files import reply, said, write
from tests.sessions.foreign import REQUESTS

PROJECT = REQUESTS / "claude_project"


def one(path: Path) -> RecordedRequests:
    (found,) = requests_of(path)
    return found


def told(found: RecordedRequests) -> list[tuple[object, ...]]:
    return [
        (row.request, row.branch, row.kind, row.usage.uncached, row.usage.cache_write, row.usage.cache_read)
        for row in found.rows
    ]


def walked(*paths: Path) -> list[RecordedRequests]:
    found = list(walk_requests(paths))
    assert not [each for each in found if isinstance(each, Unmeasured)]
    return [each for each in found if isinstance(each, RecordedRequests)]


def test_a_request_is_one_row_with_its_last_usage_on_its_branch() -> None:
    found = one(PROJECT / "5f0c.jsonl")
    assert told(found) == [
        ("req_1", "", "main", 10, 2000, 0),
        ("req_2", "", "main", 5, 300, 2000),
        ("req_3", "", "main", 4, 400, 2300),
        ("req_4", "rewind-1", "main", 3, 100, 2700),
        ("req_s1", "a1", "subagent", 2, 900, 0),
        ("req_s2", "a1", "subagent", 2, 50, 900),
        ("req_5", "", "main", 3, 110, 2700),
        ("msg_6", "", "main", 6, 700, 500),
        ("req_7", "", "main", None, None, 1200),
        ("req_8", "", "main", 1, 20, 1200),
    ]
    assert [row.usage.output for row in found.rows] == [40, 55, 20, 25, 5, 6, 26, 18, None, 2]
    assert found.name == "5f0c"
    assert found.copies == 0


def test_what_is_broken_is_told_by_its_line_and_the_rest_counts() -> None:
    found = one(PROJECT / "5f0c.jsonl")
    assert [(fault.line, fault.what.split(",")[0]) for fault in found.broken] == [
        (8, "is cut off in the middle of a JSON value"),
        (24, "holds NUL bytes"),
        (25, "is cut off in the middle of a JSON value"),
    ]


def test_marks_say_what_was_rewound_and_compacted() -> None:
    marks = one(PROJECT / "5f0c.jsonl").marks
    assert [(mark.what, mark.branch, mark.line, mark.tokens, mark.by) for mark in marks] == [
        ("compaction", "", 19, 2839, "auto"),
        ("rewind", "rewind-1", 14, None, None),
    ]


def test_a_count_of_the_wrong_type_is_missing_and_never_zero() -> None:
    row = one(PROJECT / "5f0c.jsonl").rows[8]
    assert (row.usage.uncached, row.usage.cache_write, row.usage.output) == (None, None, None)
    assert row.usage.prompt is None
    assert row.source == "reported"


def test_a_split_of_the_writes_that_is_not_told_is_not_made_up() -> None:
    split, bare = (one(PROJECT / "5f0c.jsonl").rows[at].usage for at in (0, 7))
    assert (split.cache_write_5m, split.cache_write_1h) == (2000, 0)
    assert (bare.cache_write, bare.cache_write_5m, bare.cache_write_1h) == (700, None, None)


def test_over_a_walk_each_request_counts_once() -> None:
    main, resumed, agent = walked(PROJECT)
    assert [row.request for row in resumed.rows] == ["req_r2"]
    assert [(mark.what, mark.tokens) for mark in resumed.marks] == [("resume", 2305)]
    assert [(row.request, row.branch, row.kind) for row in agent.rows] == [("req_s3", "a1", "subagent")]
    assert (main.copies, resumed.copies, agent.copies) == (0, 2, 2)


def test_plain_sums_over_lines_are_two_to_three_times_too_high() -> None:
    ours = sum(row.usage.output or 0 for found in walked(PROJECT) for row in found.rows)
    assert ours == 40 + 55 + 20 + 25 + 5 + 6 + 26 + 18 + 2 + 8 + 7
    prompt = sum(row.usage.prompt or 0 for found in walked(PROJECT) for row in found.rows)
    assert prompt == 2010 + 2305 + 2704 + 2803 + 902 + 952 + 2813 + 1206 + 1221 + 2603 + 1012
    naive = 0
    for path in PROJECT.rglob("*.jsonl"):
        for line in path.read_bytes().split(b"\n"):
            try:
                usage = json.loads(line.strip(b"\x00"))["message"]["usage"]
                naive += usage["input_tokens"] + usage["cache_creation_input_tokens"]
                naive += usage["cache_read_input_tokens"]
            except (ValueError, KeyError, TypeError):
                continue
    assert 2 < naive / prompt < 3


def test_older_side_chains_are_branches_and_a_summary_inside_a_request_is_billed_besides() -> None:
    found = one(REQUESTS / "claude_old_sides.jsonl")
    assert told(found) == [
        ("q1", "", "main", 1, 100, 0),
        ("q2", "side-1", "subagent", 1, 200, 0),
        ("q3", "side-1", "subagent", 1, 20, 200),
        ("q4", "side-2", "subagent", 1, 300, 0),
        (None, "", "compaction", 180, 0, 0),
        ("q5", "", "main", 23, 0, 100),
    ]


@pytest.mark.parametrize("fork", ["a.jsonl", "c.jsonl"])
def test_what_a_fork_preserved_with_zeros_counts_in_the_file_that_has_its_counts(
    tmp_path: Path, fork: str
) -> None:
    """Claude Code 2.1 forks a compacted session so; the fork may come first by name."""
    first, second, third = (reply(n, 20_000 + 1_000 * n, 20_000, n) for n in (1, 2, 3))
    write(tmp_path / "b.jsonl", [said(), first, second])
    blank = json.loads(json.dumps(second))
    blank["message"]["usage"] = {key: 0 for key in blank["message"]["usage"] if key.endswith("_tokens")}
    kept = {"uuids": [second["uuid"]], "allUuids": [second["uuid"]], "anchorUuid": "s1"}
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b1",
        "compactMetadata": {"trigger": "manual", "preTokens": 22_000, "preservedMessages": kept},
    }
    write(
        tmp_path / fork, [boundary, said("So far: one bed.", uuid="s1", isCompactSummary=True), blank, third]
    )
    found = walked(tmp_path)
    rows = sorted((row.request or "", row.usage.prompt or 0) for each in found for row in each.rows)
    assert rows == [("req1", 21_000), ("req2", 22_000), ("req3", 23_000)]
    assert sum(each.copies for each in found) == 1
    (alone,) = walked(tmp_path / fork)
    assert ([row.request for row in alone.rows], alone.copies) == (["req3"], 1)


def test_a_usage_of_nothing_but_zeros_is_missing(tmp_path: Path) -> None:
    """A proxy that counts nothing writes zeros; no request has a prompt of no tokens."""
    blank = reply(1, 0, 0, 1, output=0)
    (row,) = one(write(tmp_path / "a.jsonl", [said(), blank])).rows
    assert (row.request, row.source, row.usage.prompt, row.usage.output) == ("req1", "missing", None, None)


def test_rows_are_in_the_order_of_time_not_of_the_file(tmp_path: Path) -> None:
    lines = (REQUESTS / "claude_old_sides.jsonl").read_bytes().splitlines()
    path = tmp_path / "moved.jsonl"
    path.write_bytes(b"\n".join([*lines[4:], *lines[:4]]))
    assert sorted(one(path).rows, key=lambda row: row.at_ms or 0) == list(one(path).rows)
    assert {row.request for row in one(path).rows} == {"q1", "q2", "q3", "q4", "q5", None}


def test_a_packed_file_and_a_plain_one_are_the_same(tmp_path: Path) -> None:
    plain = PROJECT / "5f0c.jsonl"
    packed = tmp_path / "5f0c"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert one(packed).rows == one(plain).rows


def test_a_packed_file_that_breaks_off_keeps_what_came(tmp_path: Path) -> None:
    lines = (PROJECT / "5f0c.jsonl").read_bytes().splitlines()[1:7] * 400
    numbered = [line.replace(b"req_", b"req_%d_" % at) for at, line in enumerate(lines)]
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(gzip.compress(b"\n".join(numbered))[:-2000])
    found = one(torn)
    assert found.rows
    assert found.broken[-1].what == "the gzip data is broken or cut off here"


def test_a_named_file_of_no_format_is_told_and_the_walk_goes_on(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Dear reader\n")
    (tmp_path / "b.jsonl").write_bytes((REQUESTS / "claude_old_sides.jsonl").read_bytes())
    letter, session = walk_requests([tmp_path])
    assert isinstance(letter, Unmeasured)
    assert not letter.named
    assert "is no session of a known format" in letter.what
    assert isinstance(session, RecordedRequests)
    (missing,) = walk_requests([tmp_path / "nowhere"])
    assert isinstance(missing, Unmeasured)
    assert missing.named


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jsonl").write_bytes((REQUESTS / "claude_old_sides.jsonl").read_bytes())
    closed = tmp_path / "closed"
    closed.mkdir()
    scandir = os.scandir

    def refused(path: str) -> Any:
        if os.fspath(path) == str(closed):
            # Permissions do not stop the superuser, under whom tests may run.
            raise PermissionError(13, "Permission denied", str(closed))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    session, told_of = walk_requests([tmp_path])
    assert isinstance(session, RecordedRequests)
    assert isinstance(told_of, Unmeasured)
    assert (told_of.path, told_of.what) == (
        str(closed),
        "is a folder that cannot be read; check its permissions",
    )

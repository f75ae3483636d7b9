"""What the files of the real programs taught, on invented ones (`real_programs` reads the real ones)."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from shiftbook.sessions import requests_of
from tests.sessions import foreign
from tests.sessions.foreign import REQUESTS
from tests.sessions.test_request_formats import told, walked


def test_an_archive_compressed_with_zstandard_reads_as_any_other(tmp_path: Path) -> None:
    plain_rows = [told(each) for each in requests_of(foreign.eval_archive(tmp_path / "plain"))]
    packed = list(requests_of(foreign.zstandard_archive(tmp_path / "packed")))
    assert [told(each) for each in packed] == plain_rows
    assert not any(each.broken for each in packed)


def test_without_the_package_each_member_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    (found,) = requests_of(foreign.zstandard_archive(tmp_path / "packed"))
    assert not found.rows
    assert len(found.broken) == 3
    assert all("pip install 'shiftbook[zstd]'" in fault.what for fault in found.broken)


def test_a_member_of_zstandard_is_held_to_its_checksum_and_to_the_limit_of_a_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = foreign.zstandard_archive(tmp_path / "packed")
    with zipfile.ZipFile(path, "a") as archive:
        archive.filelist[-1].CRC ^= 1
        archive.writestr("samples/new.json", "{}")
    assert [
        "its checksum is another" in fault.what for each in requests_of(path) for fault in each.broken
    ] == [True]
    monkeypatch.setattr("shiftbook.sessions.archive.DOCUMENT_BYTES_MAX", 600)
    found = [fault.what for each in requests_of(path) for fault in each.broken]
    assert any("is larger than" in what for what in found)


def test_a_codex_session_tells_its_sub_agent_and_its_compaction_apart() -> None:
    first, side = walked(REQUESTS / "codex_agents")
    assert [(mark.what, mark.branch) for mark in first.marks] == [("compaction", "")]
    assert [row.request for row in first.rows] == ["resp_a", "resp_b", "resp_c", "resp_d", None]
    assert [row.kind for row in side.rows] == ["subagent"]


def test_an_older_codex_compaction_is_the_request_without_words() -> None:
    (found,) = requests_of(REQUESTS / "codex_silent.jsonl")
    assert [(row.kind, row.usage.prompt) for row in found.rows] == [
        ("main", 800),
        ("compaction", 850),
        ("main", 350),
    ]


def test_a_fork_of_claude_code_repeats_no_compaction_and_no_request() -> None:
    first, fork = walked(REQUESTS / "claude_fork")
    assert [row.usage.prompt for row in first.rows] == [500, 90]
    assert [mark.tokens for mark in first.marks] == [504]
    assert [row.usage.prompt for row in fork.rows] == [120]
    assert fork.copies == 2
    assert [mark.what for mark in fork.marks if mark.what == "compaction"] == []


def test_an_openhands_sub_agent_is_counted_once_though_two_states_tell_of_it() -> None:
    parent, child = walked(REQUESTS / "openhands_tasks")
    assert [(row.branch, row.kind, row.usage.prompt) for row in parent.rows] == [
        ("", "main", 3000),
        ("task:task_01", "subagent", 900),
        ("task:task_01", "subagent", 1000),
    ]
    assert (child.rows, child.copies) == ((), 2)


def test_spans_of_one_call_count_once_and_the_others_are_copies() -> None:
    trace, watch = requests_of(REQUESTS / "otel_twins.json")
    assert (trace.copies, watch.copies) == (2, 0)


def test_a_total_that_the_messages_do_not_show_is_told() -> None:
    (found,) = requests_of(REQUESTS / "mini_swe_agent_responses.json")
    assert [fault.what for fault in found.broken] == ["its totals count 4 requests and its messages show 2"]


def test_checkpoints_are_data_and_what_is_unknown_is_named(tmp_path: Path) -> None:
    first, second, third = requests_of(foreign.checkpoints(tmp_path / "graph"))
    assert [fault.what for fault in first.broken] == ["an extension of the type 42 was passed over"]
    assert [fault.what for fault in second.broken] == ["a value of the type 'pickle' was passed over"]
    assert third.broken == ()
    assert (third.rows[0].usage.cache_write_5m, third.rows[0].usage.cache_write_1h) == (800, 500)


def test_a_total_that_the_history_does_not_show_is_told() -> None:
    (found,) = requests_of(REQUESTS / "swe_agent.traj")
    assert [fault.what for fault in found.broken] == ["its totals count 3 requests and its history shows 2"]

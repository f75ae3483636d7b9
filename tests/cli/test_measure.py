"""`shiftbook measure` as a person and a script call it, on sessions whose answers are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import run
from tests.measure.files import growing, reply, said, write

FIXTURES = Path(__file__).parents[1] / "sessions" / "fixtures" / "requests"

SESSION = {
    "path", "format", "requests", "prompt_tokens", "fixed", "growth", "window_at", "cost", "t_star",
}  # fmt: skip


def test_json_holds_what_scripts_rely_on(tmp_path: Path) -> None:
    write(tmp_path / "garden.jsonl", growing(40))
    ran = run(tmp_path, "measure", "garden.jsonl", "--json", "--window", "100000")
    assert ran.code == 0
    assert {"sessions", "usage_share"} <= ran.json.keys()
    (told,) = ran.json["sessions"]
    assert told.keys() >= SESSION
    assert (told["format"], told["requests"]) == ("claude-code", 40)
    assert told["prompt_tokens"] == {"median": 40_000, "max": 60_000, "sum": 40 * 20_000 + 1_000 * 820}
    assert (told["fixed"], told["growth"], told["window_at"]) == (20_000, 1_000, 80)
    assert ran.json["usage_share"] == {"reported": 1.0, "differenced": 0.0, "estimated": 0.0, "missing": 0.0}


def test_the_cost_is_the_sum_by_hand_split_by_kind(tmp_path: Path) -> None:
    write(tmp_path / "garden.jsonl", growing(2))
    cost = run(tmp_path, "measure", "garden.jsonl", "--json").json["sessions"][0]["cost"]
    # Opus 4.5, USD a million: 6.25 written for 5 minutes, 0.50 read, 25 out.
    assert cost["cache_write"] == pytest.approx(22_000 * 6.25e-6)
    assert cost["cache_read"] == pytest.approx(21_000 * 0.5e-6)
    assert cost["output"] == pytest.approx(400 * 25e-6)
    assert cost["total"] == pytest.approx(0.1375 + 0.0105 + 0.01)
    other = run(tmp_path, "measure", "garden.jsonl", "--json", "--model", "claude-haiku-4-5")
    assert other.json["sessions"][0]["cost"]["total"] == pytest.approx((0.1375 + 0.0105 + 0.01) / 5)


def test_the_verdict_turns_at_t_star(tmp_path: Path) -> None:
    write(tmp_path / "short.jsonl", growing(30))
    write(tmp_path / "middling.jsonl", growing(45))  # past m* = 35.2, not yet at T*
    write(tmp_path / "long.jsonl", growing(120))
    # a = 20, w/rho - 1 = 11.5: T* = 20 + 2 sqrt(11.5 x 20) = 50.3
    short, long = (run(tmp_path, "measure", f"{name}.jsonl").out for name in ("short", "long"))
    assert "Your session is shorter than T* (30 requests, T* 50.3): the transcript is cheaper." in short
    assert "Your session is shorter than T* (45" in run(tmp_path, "measure", "middling.jsonl").out
    assert "Your session is longer than T* (120 requests, T* 50.3)" in long
    assert "% less." in long
    forced = run(tmp_path, "measure", "short.jsonl", "--r", "2000").out
    assert "longer than T*" in forced


def test_a_folder_is_a_table_and_a_file_a_chart(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for name in ("one", "two"):
        lines = growing(5)
        for each in lines[1:]:
            each["requestId"] += name
            each["message"]["id"] += name
        write(folder / f"{name}.jsonl", lines)
    (folder / "notes.txt").write_text("Water the beans.\n", encoding="utf-8")
    ran = run(tmp_path, "measure", "many")
    assert (ran.code, "2 sessions, 10 requests" in ran.out) == (0, True)
    assert "1 file in the folders that is no session" in ran.err
    alone = run(tmp_path, "measure", "many/one.jsonl").out
    assert "prompt tokens, request by request" in alone
    assert "█" in alone


def test_broken_lines_are_told_and_the_rest_counts(tmp_path: Path) -> None:
    lines = growing(4)
    write(tmp_path / "torn.jsonl", [*lines[:3], '{"type": "assistant", "message": {"us', *lines[3:]])
    ran = run(tmp_path, "measure", "torn.jsonl", "--json")
    assert (ran.code, ran.json["sessions"][0]["requests"]) == (0, 4)
    assert [each["line"] for each in ran.json["sessions"][0]["broken"]] == [4]
    assert "torn.jsonl, line 4" in ran.err


@pytest.mark.parametrize(
    "words", [("nowhere",), ("empty",), ("notes.txt",), ("ok.jsonl", "--ttl", "9m"), ("ok.jsonl", "--r", "0")]
)
def test_bad_input_gets_one_sentence(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("Water the beans.\n", encoding="utf-8")
    write(tmp_path / "ok.jsonl", growing(2))
    ran = run(tmp_path, "measure", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("shiftbook: ")
    assert ran.err.count("\n") == 1


def test_an_unknown_model_has_no_price_and_no_zero(tmp_path: Path) -> None:
    lines = [said(), *(reply(n, 20_000 + 1_000 * n, 0, n, model="nobody-1") for n in range(1, 4))]
    write(tmp_path / "odd.jsonl", lines)
    ran = run(tmp_path, "measure", "odd.jsonl", "--json")
    told = ran.json["sessions"][0]
    assert (told["cost"]["total"], told["t_star"]) == (None, None)
    assert told["cost"]["unpriced"] == {"no price known for nobody-1": 3}
    shown = run(tmp_path, "measure", "odd.jsonl").out
    assert "cost: not known (3 x no price known for nobody-1)" in shown
    refused = run(tmp_path, "measure", "odd.jsonl", "--model", "nobody-2")
    assert (refused.code, refused.out) == (2, "")


def test_one_request_says_little_and_nothing_false(tmp_path: Path) -> None:
    write(tmp_path / "one.jsonl", growing(1))
    told = run(tmp_path, "measure", "one.jsonl", "--json").json["sessions"][0]
    assert (told["fixed"], told["growth"], told["window_at"], told["t_star"]) == (None, None, None, None)
    assert told["cold_share"] is None
    assert "does not grow" in run(tmp_path, "measure", "one.jsonl").out


def test_the_cache_is_checked_against_the_recording(tmp_path: Path) -> None:
    lines = growing(10)
    lines.append(reply(11, 31_000, 0, 30))  # twenty minutes later: expired
    lines.append(reply(12, 32_000, 16_000, 31))  # a minute later: lost all the same
    write(tmp_path / "garden.jsonl", lines)
    ran = run(tmp_path, "measure", "garden.jsonl", "--check-cache", "--json")
    (told,) = ran.json["sessions"]
    assert (told["hits"], told["false"], told["unseen"]) == (1, 0, 1)
    assert ran.json["all"] == {
        "sessions": 1,
        "near": 0,
        "misses": 2,
        "precision": 1.0,
        "recall": 0.5,
        "not_foreseen": {"unknown": 1},
        "false_alarms": {},
    }
    shown = run(tmp_path, "measure", "garden.jsonl", "--check-cache").out
    assert "Recorded misses: 2; predicted with precision 1.000 and recall 0.500." in shown
    assert "garden.jsonl: 1 miss not foreseen: of which the file tells nothing." in shown


def test_the_page_is_written_and_says_the_same(tmp_path: Path) -> None:
    write(tmp_path / "<b>garden.jsonl", growing(120))
    ran = run(tmp_path, "measure", "<b>garden.jsonl", "--html", "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "page written to page.html" in ran.err
    assert "longer than T*" in page
    assert "&lt;b&gt;garden.jsonl" in page
    assert "<b>" not in page
    assert page.count("<svg") >= 2
    again = run(tmp_path, "measure", "<b>garden.jsonl", "--html", "page.html")
    assert (again.code, (tmp_path / "page.html").read_text(encoding="utf-8")) == (0, page)
    refused = run(tmp_path, "measure", "<b>garden.jsonl", "--html", "no/where.html")
    assert refused.code == 2


def test_every_format_that_is_read_is_measured(tmp_path: Path) -> None:
    ran = run(tmp_path, "measure", str(FIXTURES), "--json")
    assert ran.code == 0
    formats = {each["format"] for each in ran.json["sessions"]}
    assert len(formats) >= 10
    assert all(each["requests"] > 0 for each in ran.json["sessions"])
    shares = ran.json["usage_share"]
    assert all(value > 0 for value in shares.values())
    assert sum(shares.values()) == pytest.approx(1)
    shown = run(tmp_path, "measure", str(FIXTURES))
    assert (shown.code, "No session has a T*" in shown.out) == (0, True)
    page = run(tmp_path, "measure", str(FIXTURES), "--html", "page.html", "--model", "claude-opus-4-5")
    assert (page.code, (tmp_path / "page.html").stat().st_size > 10_000) == (0, True)


def test_sub_agents_beside_a_named_file_are_told_of_until_they_are_named(tmp_path: Path) -> None:
    write(tmp_path / "garden.jsonl", growing(3))
    beside = tmp_path / "garden" / "subagents"
    beside.mkdir(parents=True)
    side = [{**each, "isSidechain": True, "agentId": "a1"} for each in growing(2)]
    for each in side[1:]:
        each["requestId"] = f"side-{each['requestId']}"
    write(beside / "agent-a1.jsonl", side)
    alone = run(tmp_path, "measure", "garden.jsonl")
    assert alone.code == 0
    assert "garden.jsonl: 1 sub-agent file in garden/subagents not counted: name that folder too" in alone.err
    for named in (("garden.jsonl", "garden"), (".",)):
        both = run(tmp_path, "measure", *named)
        assert (both.code, "not counted" in both.err) == (0, False)
        assert "2 sessions, 5 requests" in both.out


def test_a_folder_without_a_session_says_what_to_name(tmp_path: Path) -> None:
    (tmp_path / "hollow").mkdir()
    (tmp_path / "hollow" / "itself").symlink_to(tmp_path / "hollow")
    ran = run(tmp_path, "measure", "hollow")
    assert ran.code == 2
    assert "Name files of recorded sessions, or a folder that holds some." in ran.err

"""Bad input: one line that says what to do, the right exit code, nothing on stdout, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from shiftbook.journal.sqlite import open_sqlite
from shiftbook.journal.sqlite_database import SCHEMA
from tests.cli.agents import PLAIN
from tests.cli.program import Ran, run
from tests.rerun import recordings


def refused(ran: Ran, code: int, *said: str) -> None:
    """One line on stderr, with these words in it."""
    assert ran.code == code, ran.err
    assert ran.out == ""
    [line] = ran.err.splitlines()
    assert line.startswith("shiftbook: ")
    assert line.endswith("."), line
    for each in said:
        assert each in line


@pytest.fixture
def kept(shop: Path) -> Path:
    """A folder with one finished run in its journal."""
    assert run(shop, "run", "agent.py:shop", "How much tea?", "--run-id", "tea1").code == 0
    return shop


def contents(folder: Path) -> str:
    return run(folder, "export", "tea1").out


@pytest.mark.parametrize(
    "words",
    [
        ["show", "nobody"],
        ["resume", "nobody"],
        ["send", "nobody", "Hi"],
        ["verify", "nobody"],
        ["tail", "nobody"],
    ],
)
def test_an_unknown_run(kept: Path, words: list[str]) -> None:
    before = contents(kept)
    refused(run(kept, *words), 2, "no run 'nobody'", "`shiftbook runs`")
    assert contents(kept) == before


def test_a_missing_agent_is_answered_with_what_the_verb_can_do(kept: Path) -> None:
    (kept / "torn.py").write_text("raise OSError('no shelf')", encoding="utf-8")
    for reference, advice in (
        ("none.py:shop", "(`resume` takes that by --agent)"),
        ("torn.py:shop", "Mend it"),
    ):
        told = run(kept, "run", reference, "Hi")
        refused(told, 3, advice)
        assert "--agent" not in told.err.replace("(`resume` takes that by --agent)", "")


def test_a_prefix_that_fits_two_runs(kept: Path) -> None:
    run(kept, "run", "agent.py:shop", "How much tea?", "--run-id", "tea2")
    refused(run(kept, "show", "tea"), 2, "tea")


def test_no_run_named_or_two_ways_at_once(kept: Path) -> None:
    refused(run(kept, "show"), 2, "--last")
    refused(run(kept, "show", "tea1", "--last"), 2, "--last")
    refused(run(kept, "verify", "tea1", "--all"), 2, "--all")


def test_a_journal_that_is_not_there_is_not_made_by_reading(tmp_path: Path) -> None:
    refused(run(tmp_path, "runs"), 2, "shiftbook.db")
    refused(run(tmp_path, "resume", "--last"), 2, "shiftbook.db")
    assert list(tmp_path.iterdir()) == []


def test_a_locked_file(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(kept)
    monkeypatch.setitem(open_sqlite.__kwdefaults__ or {}, "busy_ms", 50)
    with closing(apsw.Connection(str(kept / "shiftbook.db"))) as other:
        other.execute("BEGIN EXCLUSIVE")
        refused(run(kept, "run", "agent.py:shop", "Hi"), 2, "shiftbook.db")
        other.execute("ROLLBACK")
    assert contents(kept) == before
    assert run(kept, "run", "agent.py:shop", "Hi").code == 0


def test_a_journal_by_a_newer_release(kept: Path) -> None:
    with closing(apsw.Connection(str(kept / "shiftbook.db"))) as book:
        book.execute("PRAGMA user_version = 9999")
    for words in (["runs"], ["show", "tea1"], ["run", "agent.py:shop", "Hi"]):
        refused(run(kept, *words), 2, "newer")
    with closing(apsw.Connection(str(kept / "shiftbook.db"))) as book:
        book.execute(f"PRAGMA user_version = {SCHEMA}")
    assert run(kept, "verify", "tea1").code == 0


def test_an_entry_by_a_newer_release(kept: Path) -> None:
    with closing(apsw.Connection(str(kept / "shiftbook.db"))) as book:
        book.execute("UPDATE entries SET version = 99 WHERE rowid = (SELECT max(rowid) FROM entries)")
    refused(run(kept, "verify", "tea1"), 2, "Update Shiftbook")
    refused(run(kept, "resume", "tea1"), 2, "Update Shiftbook")


def test_a_folder_that_cannot_be_written(kept: Path, tmp_path: Path) -> None:
    place = tmp_path / "sealed"
    place.mkdir(mode=0o500)
    if os.access(place, os.W_OK):  # a superuser may write anywhere that the kernel itself does not refuse
        place = Path("/proc")
    refused(run(kept, "run", "agent.py:shop", "Hi", "--db", str(place / "book.db")), 2, str(place))
    refused(run(kept, "init", str(place / "new")), 2, str(place))
    refused(run(kept, "export", "tea1", "-o", str(place / "tea.jsonl")), 2, str(place))


def test_a_file_that_is_no_journal(kept: Path) -> None:
    (kept / "notes.txt").write_text("These are notes and no database at all.\n" * 100)
    refused(run(kept, "runs", "--db", "notes.txt"), 2, "notes.txt")
    refused(run(kept, "run", "agent.py:shop", "Hi", "--db", "notes.txt"), 2, "notes.txt")
    assert "These are notes" in (kept / "notes.txt").read_text()


def test_a_tool_with_no_repeat_policy(kept: Path) -> None:
    (kept / "mail.py").write_text(PLAIN.replace('@tool(repeat="safe")', "@tool"), encoding="utf-8")
    before = contents(kept)
    refused(run(kept, "run", "mail.py:shop", "Hi"), 2, "repeat=", "look")
    refused(run(kept, "resume", "tea1", "--agent", "mail.py:shop"), 2, "repeat=")
    assert contents(kept) == before


def test_a_cap_below_the_fixed_part(kept: Path) -> None:
    before = contents(kept)
    refused(run(kept, "run", "agent.py:wordy", "Hi", "--cap", "300"), 2, "cap of 300 tokens", "--cap")
    refused(run(kept, "run", "agent.py:shop", "Hi", "--cap", "0"), 2, "at least 1")
    refused(run(kept, "run", "agent.py:shop", "Hi", "--cap", "900", "--mark", "901"), 2, "mark")
    refused(run(kept, "run", "agent.py:shop", "Hi", "--policy", "guess"), 2, "transcript", "window")
    assert len(run(kept, "runs", "--json").json) == 1
    assert contents(kept) == before


def test_a_broken_session_names_its_line(kept: Path) -> None:
    whole = recordings.tangled().write(kept / "tape.jsonl").read_text().splitlines(keepends=True)
    (kept / "torn.jsonl").write_text("".join(whole[:6]) + whole[6][:40])
    refused(run(kept, "rerun", "torn.jsonl"), 2, "torn.jsonl, line 7")
    (kept / "odd.jsonl").write_text("".join(whole[:2]) + "{]\n" + "".join(whole[3:]))
    refused(run(kept, "rerun", "odd.jsonl"), 2, "odd.jsonl, line 3")
    refused(run(kept, "rerun", "agent.py"), 2, "agent.py")
    refused(run(kept, "rerun", "nowhere.jsonl"), 2, "nowhere.jsonl")
    refused(run(kept, "rerun", "tape.jsonl", "--only", "2"), 2, "--only")
    refused(run(kept, "rerun", "tape.jsonl", "--resume", "tea1"), 2, "no rerun")
    assert len(run(kept, "runs", "--json").json) == 1


def test_a_broken_export_is_taken_in_whole_or_not_at_all(kept: Path) -> None:
    whole = contents(kept).splitlines(keepends=True)
    (kept / "cut.jsonl").write_text("".join(whole[:-2]))
    refused(run(kept, "import", "cut.jsonl", "--db", "new.db"), 2)
    (kept / "odd.jsonl").write_text("".join(whole).replace("How much", "How many", 1))
    refused(run(kept, "import", "odd.jsonl", "--db", "new.db"), 2, "Line 5")
    refused(run(kept, "import", "nowhere.jsonl", "--db", "new.db"), 2, "nowhere.jsonl")
    refused(run(kept, "import", "agent.py", "--db", "new.db"), 2, "no Shiftbook export")
    assert run(kept, "runs", "--json", "--db", "new.db").json == []


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("agent.py", "agent.py:NAME"),
        ("nowhere.py:shop", "no file nowhere.py"),
        ("agent.py:nobody", "no 'nobody' in agent.py"),
        ("agent.py:not_an_agent", "an int, not an Agent"),
        ("no_such_module:shop", "No module named 'no_such_module'"),
        ("wrong.py:shop", "wrong.py, line 2"),
        ("fails.py:shop", "ZeroDivisionError"),
        ("ends.py:shop", "SystemExit"),
    ],
)
def test_an_agent_that_cannot_be_had(kept: Path, reference: str, said: str) -> None:
    (kept / "wrong.py").write_text("x = 1\nx = = 2\n")
    (kept / "fails.py").write_text("x = 1 / 0\n")
    (kept / "ends.py").write_text("raise SystemExit(0)\n")
    before = contents(kept)
    refused(run(kept, "run", reference, "Hi", "--db", "new.db"), 3, said)
    refused(run(kept, "resume", "tea1", "--agent", reference), 3, said)
    assert not (kept / "new.db").exists()
    assert contents(kept) == before


def test_a_message_that_is_not_there_or_is_there_twice(kept: Path) -> None:
    refused(run(kept, "run", "agent.py:shop"), 2, "message")
    refused(run(kept, "run", "agent.py:shop", "  "), 2, "message")
    refused(run(kept, "run", "agent.py:shop", "Hi", "--message", "Ho"), 2, "Two messages")
    refused(run(kept, "send", "tea1"), 2, "message")
    refused(run(kept, "send", "tea1", "two", "words"), 2, "quotes")
    refused(run(kept, "send", "tea1", "--rule", "tone"), 2, "message")
    refused(run(kept, "send", "tea1", "Short.", "--rule", ""), 2, "A rule cannot be set")
    refused(run(kept, "send", "tea1", "Short.", "--rule", "a", "--withdraw", "b"), 2, "one of --rule")
    refused(run(kept, "send", "tea1", "Short.", "--withdraw", "b"), 2, "without words")


def test_a_run_id_that_is_taken_or_cannot_be_one(kept: Path) -> None:
    before = contents(kept)
    refused(run(kept, "run", "agent.py:shop", "Hi", "--run-id", "tea1"), 2, "tea1")
    refused(run(kept, "run", "agent.py:shop", "Hi", "--run-id", "a b"), 2)
    assert contents(kept) == before


def test_what_is_not_in_the_run(kept: Path) -> None:
    last = run(kept, "show", "tea1", "--json").lines[-1]["position"]
    refused(run(kept, "show", "tea1", "--entry", "99"), 2, f"1 to {last}")
    refused(run(kept, "show", "tea1", "--entry", "0"), 2, f"1 to {last}")
    refused(run(kept, "prompt", "tea1", "--turn", "3"), 2, "turns 1 to 2")
    refused(run(kept, "runs", "--state", "asleep"), 2, "finished")
    refused(run(kept, "runs", "--limit", "0"), 2, "--limit")


@pytest.mark.parametrize("flag", [[], ["-v"]])
@pytest.mark.parametrize("address", ["postgresql://jo:s3cret@127.0.0.1:1/books", "mysql://jo:s3cret@h/b"])
def test_f9_the_password_of_an_address_is_never_printed(kept: Path, address: str, flag: list[str]) -> None:
    (kept / "pyproject.toml").write_text(f'[tool.shiftbook]\ndb = "{address}"\n')
    every = [run(kept, "runs", "--db", address, *flag), run(kept, "runs", *flag)]
    every.append(run(kept, "runs", *flag, SHIFTBOOK_DB=address))
    every.append(run(kept, "run", "agent.py:shop", "Hi", "--db", address, *flag))
    for each in every:
        assert each.code == 2
        assert "s3cret" not in each.out + each.err
    for each in every if not flag else []:
        refused(each, 2, "SQLite" if address.startswith("mysql") else "nothing listens there")


def test_an_export_into_a_folder_is_refused_and_leaves_nothing_there(kept: Path) -> None:
    before = sorted(kept.parent.iterdir())
    refused(run(kept, "export", "tea1", "-o", str(kept)), 2, "is a folder")
    assert sorted(kept.parent.iterdir()) == before


def test_an_export_of_a_damaged_run_leaves_no_part_of_itself(kept: Path) -> None:
    with closing(apsw.Connection(str(kept / "shiftbook.db"))) as connection:
        connection.execute("UPDATE entries SET payload = '{}' WHERE id & 4294967295 = 3")
    assert run(kept, "export", "tea1", "-o", "tea.jsonl").code == 1
    assert not list(kept.glob("tea.jsonl*"))


def test_an_import_of_a_run_that_is_there(kept: Path) -> None:
    assert run(kept, "export", "tea1", "-o", "tea.jsonl").code == 0
    refused(run(kept, "import", "tea.jsonl"), 2, "tea1", "import it into another database")


def test_a_bare_function_is_no_tool_and_nothing_is_no_model(shop: Path) -> None:
    (shop / "odd.py").write_text(
        "from shiftbook import Agent, Scripted\n\n\ndef count() -> int:\n    return 1\n\n\n"
        "def bare() -> Agent:\n    return Agent(name='a', model=Scripted([]), tools=[count])\n\n\n"
        "def mute() -> Agent:\n    return Agent(name='a', model=None)\n"
    )
    for made, said in (("bare", "@shiftbook.tool(repeat="), ("mute", "give a provider")):
        (shop / f"{made}.py").write_text(f"import odd\n\nagent = odd.{made}()\n")
        refused(run(shop, "run", f"{made}.py:agent", "Hi"), 2, said)


def test_a_closed_stdout_is_one_that_nobody_reads(kept: Path) -> None:
    words = f"{sys.executable} -m shiftbook show tea1 >&-"
    shown = subprocess.run(words, shell=True, check=False, cwd=kept, capture_output=True, text=True)
    assert (shown.returncode, shown.stderr) == (0, "")

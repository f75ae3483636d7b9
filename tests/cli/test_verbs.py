"""The verbs, each as a person or a script would call it: exit code, what is on stdout, what on stderr."""

from __future__ import annotations

import ast
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from tests.cli.program import run
from tests.rerun import recordings

FIGURES = [
    "run", "state", "turns", "actions", "cut_off", "repeated", "prompt_tokens", "cached_share", "cost",
]  # fmt: skip
ROOT = Path(__file__).parents[2]


def test_run_prints_the_words_on_stdout_and_the_rest_on_stderr(shop: Path) -> None:
    ran = run(shop, "run", "agent.py:shop", "How much tea?")
    assert (ran.code, ran.out) == (0, "17 boxes.\n")
    assert "1.1 look what=" in ran.err
    assert "prompt of" in ran.err
    assert "finished | 2 turns | 1 action" in ran.err
    assert "\x1b" not in ran.err


def test_run_with_json_prints_the_figures_alone(shop: Path) -> None:
    ran = run(shop, "run", "agent.py:shop", "How much tea?", "--run-id", "tea1", "--json")
    assert ran.code == 0
    assert list(ran.json) == FIGURES
    assert ran.json["run"] == "tea1"
    assert (ran.json["state"], ran.json["turns"], ran.json["actions"]) == ("finished", 2, 1)
    assert (ran.json["cached_share"], ran.json["cost"]) == (None, None)
    assert 0 < ran.json["prompt_tokens"]["median"] <= ran.json["prompt_tokens"]["max"]
    assert "17 boxes." in ran.err


def test_the_message_may_come_on_stdin(shop: Path) -> None:
    assert run(shop, "run", "agent.py:shop", "--message", "-", stdin="How much\ntea?\n").code == 0
    said = run(shop, "show", "--last", "--json").lines[2]
    assert said["kind"] == "PersonSaid"
    assert said["content"] == "How much\ntea?"
    assert run(shop, "run", "agent.py:shop", "--message", "-", stdin=b"\xff").code == 2


@pytest.mark.parametrize(
    ("agent", "code", "hint"),
    [
        ("agent.py:shop", 0, ""),
        ("agent.py:talk", 5, "shiftbook send "),
        ("agent.py:broken", 3, "shiftbook resume "),
    ],
)
def test_the_exit_code_tells_how_the_run_rests(shop: Path, agent: str, code: int, hint: str) -> None:
    ran = run(shop, "run", agent, "Hello.", "--db", "my book.db")
    assert ran.code == code
    if hint:
        assert hint in ran.err
        assert "--db 'my book.db'" in ran.err


def test_a_limit_ends_with_code_6_and_a_raised_one_goes_on(shop: Path) -> None:
    first = run(
        shop, "run", "agent.py:shop", "tea " * 400, "--policy", "transcript", "--cap", "500", "--json"
    )
    assert (first.code, first.json["state"]) == (6, "limited")
    assert "the cap by --cap" in first.err
    again = run(shop, "resume", "--last", "--cap", "50000", "--json")
    assert (again.code, again.json["state"]) == (0, "finished")


def test_overrides_hold_for_every_later_process(shop: Path) -> None:
    run(shop, "run", "agent.py:talk", "Hello.", "--policy", "window", "--cap", "7000", "--fixed", "100")
    run(shop, "resume", "--last", "--message", "Again.")
    declared = [row for row in run(shop, "show", "--last", "--json").lines if row["kind"] == "AgentDeclared"]
    assert [(row["policy"], row["cap"]) for row in declared] == [("window", 7000)]
    run(shop, "resume", "--last", "--message", "Again.", "--cap", "8000")
    declared = [row for row in run(shop, "show", "--last", "--json").lines if row["kind"] == "AgentDeclared"]
    assert [(row["policy"], row["cap"]) for row in declared][1:] == [("window", 8000)]


def test_an_agent_by_module_and_by_another_place(shop: Path) -> None:
    assert run(shop, "run", "agent:talk", "Hello.").code == 5
    (shop / "other.py").write_text((shop / "agent.py").read_text(), encoding="utf-8")
    (shop / "agent.py").unlink()
    assert run(shop, "resume", "--last", "--message", "Again.").code == 3
    assert run(shop, "resume", "--last", "--message", "Again.", "--agent", "other.py:talk").code == 5


def test_reading_never_loads_the_agent(shop: Path) -> None:
    run(shop, "run", "agent.py:shop", "How much tea?")
    (shop / "agent.py").write_text("raise SystemExit('loaded')", encoding="utf-8")
    for words in (
        ["runs"],
        ["show"],
        ["tail", "--until-rest"],
        ["prompt", "--turn", "1"],
        ["explain", "--turn", "1"],
        ["verify"],
        ["export"],
    ):
        more = [] if words == ["runs"] else ["--last"]
        assert run(shop, *words, *more).code == 0, words
    assert run(shop, "resume", "--last").code == 3


def test_runs_lists_the_newest_first(shop: Path) -> None:
    run(shop, "run", "agent.py:shop", "tea", "--run-id", "old1", "--tag", "a")
    run(shop, "run", "agent.py:talk", "tea", "--run-id", "new1", "--tag", "a", "--tag", "b")
    listed = run(shop, "runs", "--json").json
    assert [each["run"] for each in listed] == ["new1", "old1"]
    assert {"run", "agent", "state", "entries", "turns", "tokens", "cost"} <= set(listed[0])
    assert [each["run"] for each in run(shop, "runs", "--state", "waiting", "--json").json] == ["new1"]
    assert [each["run"] for each in run(shop, "runs", "--tag", "a", "--limit", "1", "--json").json] == [
        "new1"
    ]
    table = run(shop, "runs").out.splitlines()
    assert table[0].split()[:2] == ["run", "state"]
    assert table[1].split()[:2] == ["new1", "waiting"]


def test_show_counts_as_the_other_verbs_do(shop: Path) -> None:
    run(shop, "run", "agent.py:shop", "--cap", "20000", "--message", "tea " * 1_000)
    shown = run(shop, "show", "--last").out
    assert "cap 20,000, 1 tool\n" in shown
    asked = run(shop, "prompt", "--last", "--turn", "1").err
    assert asked.split(": ")[1].split(" of ")[0] in shown


def test_show_prints_an_entry_whole(shop: Path) -> None:
    run(shop, "run", "agent.py:shop", "line one\n" + "x" * 5_000 + " end")
    assert run(shop, "show", "--last", "--json").lines[2]["position"] == 3
    whole = run(shop, "show", "--last", "--entry", "3").out
    assert "line one\n" in whole
    assert "x" * 5_000 + " end" in whole
    assert run(shop, "show", "--last", "--entry", "3", "--json").json["content"].endswith(" end")
    assert (
        len(run(shop, "show", "--last", "--after", "5").out.splitlines())
        == len(run(shop, "show", "--last").out.splitlines()) - 5
    )


def test_prompt_prints_what_the_model_saw(shop: Path) -> None:
    run(shop, "run", "agent.py:shop", "How much tea?")
    told = run(shop, "prompt", "--last", "--turn", "2", "--json").json
    assert {"turn", "policy", "cap", "tokens", "digest", "blocks", "messages"} <= set(told)
    assert {"kind", "tokens", "entries"} == set(told["blocks"][0])
    shown = run(shop, "prompt", "--last", "--turn", "2").out
    assert shown.index("How much tea?") < shown.index("-> 1.1") < shown.index("tea: 17")


def test_explain_tells_what_each_block_was_made_of(shop: Path) -> None:
    run(shop, "run", "agent.py:shop", "Go")
    told = run(shop, "explain", "--last", "--turn", "2", "--json").json
    seen = run(shop, "prompt", "--last", "--turn", "2", "--json").json
    assert [block["entries"] for block in told["blocks"]] == [block["entries"] for block in seen["blocks"]]
    assert {block["form"] for block in told["blocks"]} == {"whole"}
    assert told["left_out"] == []
    shown = run(shop, "explain", "--last", "--turn", "2")
    assert f"opened by entry {told['opened']}: start" in shown.err
    assert f"{told['blocks'][0]['tokens']:,}  PersonSaid (whole) of entry 3" in shown.out


def test_without_a_turn_it_is_the_newest_one(shop: Path) -> None:
    run(shop, "run", "agent.py:shop", "How much tea?")
    for verb in ("prompt", "explain"):
        newest = run(shop, verb, "--last", "--json").json
        assert newest["turn"] == 2
        assert newest == run(shop, verb, "--last", "--turn", "2", "--json").json


def test_tail_ends_at_the_rest(shop: Path) -> None:
    run(shop, "run", "agent.py:shop", "How much tea?")
    every = run(shop, "show", "--last", "--json").lines
    assert run(shop, "tail", "--last", "--until-rest", "--before", "3", "--json").lines == every[-3:]
    assert run(shop, "tail", "--last", "--until-rest", "--before", "0").out == ""


def test_verify_tells_a_flipped_byte_by_code_1(shop: Path) -> None:
    run(shop, "run", "agent.py:shop", "How much tea?", "--run-id", "tea1")
    told = run(shop, "verify", "tea", "--json")
    assert told.code == 0
    assert list(told.json) == ["run", "ok", "entries", "prompts", "erased", "faults"]
    assert run(shop, "verify", "--all").out == f"run tea1: ok ({told.json['entries']} entries, 2 prompts)\n"
    with closing(apsw.Connection(str(shop / "shiftbook.db"))) as book:
        book.execute("UPDATE entries SET payload = replace(payload, 'How much', 'How many')")
    told = run(shop, "verify", "--last", "--json")
    assert (told.code, told.json["ok"]) == (1, False)
    assert told.json["faults"][0]["position"] == 3
    assert run(shop, "verify", "--all").code == 1


def test_export_and_import_keep_the_run(shop: Path) -> None:
    run(shop, "run", "agent.py:shop", "How much tea?", "--run-id", "tea1")
    assert run(shop, "export", "tea1", "-o", "tea.jsonl").code == 0
    assert run(shop, "export", "tea1").out == (shop / "tea.jsonl").read_text()
    assert run(shop, "import", "tea.jsonl", "--db", "other.db").code == 0
    both = [run(shop, "show", "tea1", "--json", "--db", db).out for db in ("shiftbook.db", "other.db")]
    assert both[0] == both[1]
    assert run(shop, "verify", "tea1", "--db", "other.db").code == 0
    assert run(shop, "import", "-", "--db", "third.db", stdin=(shop / "tea.jsonl").read_bytes()).code == 0
    again = run(shop, "import", "tea.jsonl", "--db", "other.db")
    assert (again.code, again.out) == (2, "")
    assert not (shop / "tea.jsonl.part").exists()


def test_send_to_a_run_that_rests_is_answered_when_it_is_taken_up(shop: Path) -> None:
    run(shop, "run", "agent.py:talk", "Hello.", "--run-id", "talk1")
    sent = run(shop, "send", "talk", "Are you there?", "--json")
    assert (sent.code, sent.json["run"]) == (0, "talk1")
    assert run(shop, "send", "--last", "And now?").code == 0
    assert run(shop, "resume", "talk1").code == 5
    rows = run(shop, "show", "talk1", "--json").lines
    said = [row["content"] for row in rows if row["kind"] == "PersonSaid"]
    assert said == ["Hello.", "Are you there?", "And now?"]
    assert rows[[row["kind"] for row in rows].index("RunRested") + 1]["item"] == sent.json["item"]


def test_rerun_tells_what_it_drove_and_what_was_dropped(tmp_path: Path) -> None:
    recordings.tangled().write(tmp_path / "tape.jsonl")
    first = run(
        tmp_path, "rerun", "tape.jsonl", "--cap", "9000", "--fixed", "50", "--stop-after-turn", "2", "--json"
    )
    assert (first.code, first.json["requests_driven"]) == (4, 2)
    done = run(tmp_path, "rerun", "tape.jsonl", "--resume", first.json["run"], "--json")
    assert done.code == 0
    assert list(done.json)[: len(FIGURES)] == FIGURES
    told = {
        name: done.json[name] for name in ("cap", "fixed", "requests_driven", "requests_in_file", "policy")
    }
    assert told == {"cap": 9000, "fixed": 50, "requests_driven": 5, "requests_in_file": 5, "policy": "window"}
    assert done.json["named"]["reasoning"] == 1
    people = run(tmp_path, "rerun", "tape.jsonl").out
    assert "requests driven 5 of 5 in the file" in people
    assert "reasoning 1" in people
    assert "--fixed 0" in people


def test_a_rerun_is_resumed_like_any_run_from_any_folder(tmp_path: Path) -> None:
    recordings.tangled().write(tmp_path / "tape.jsonl")
    run(tmp_path, "rerun", "tape.jsonl", "--cap", "9000", "--stop-after-turn", "1")
    (tmp_path / "elsewhere").mkdir()
    done = run(tmp_path / "elsewhere", "resume", "--last", "--db", "../shiftbook.db", "--json")
    assert (done.code, done.json["requests_driven"], done.json["cap"]) == (0, 5, 9000)
    assert run(tmp_path, "resume", "--last", "--message", "Hello").code == 2


def test_init_writes_an_agent_that_runs_and_passes_mypy_and_overwrites_nothing(tmp_path: Path) -> None:
    made = run(tmp_path, "init", "desk")
    assert (made.code, made.out) == (0, "desk/agent.py\n")
    assert run(tmp_path, "run", "desk/agent.py:shop", "Order 3 boxes of tea.", "--json").json["actions"] == 2
    policies = {
        node.value.value
        for node in ast.walk(ast.parse((tmp_path / "desk/agent.py").read_text()))
        if isinstance(node, ast.keyword) and node.arg == "repeat" and isinstance(node.value, ast.Constant)
    }
    assert policies == {"safe", "keyed"}
    check = [sys.executable, "-m", "mypy", "--strict", str(tmp_path / "desk/agent.py")]
    checked = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    (tmp_path / "desk/agent.py").write_text("mine", encoding="utf-8")
    assert run(tmp_path, "init", "desk").code == 2
    assert (tmp_path / "desk/agent.py").read_text() == "mine"


def test_what_steers_a_terminal_is_shown_and_not_done(shop: Path) -> None:
    ran = run(shop, "run", "agent.py:hostile", "Hello.\x07")
    assert ran.code == 0
    every = [ran, run(shop, "show", "--last"), run(shop, "show", "--last", "--entry", "6"), run(shop, "runs")]
    every += [run(shop, "prompt", "--last", "--turn", "1"), run(shop, "show", "--last", "--json")]
    for each in every:
        assert not {"\x1b", "\u202e", "\x07"} & set(each.out + each.err)
    assert "\\x1b[2J\\u202ewiped \\ud800" in ran.out


def test_version_names_program_format_and_sqlite(tmp_path: Path) -> None:
    told = run(tmp_path, "--version").out
    assert told.startswith("shiftbook 0.")
    assert ", entry format 1, SQLite 3." in told


def test_a_verb_is_loaded_when_it_is_called(tmp_path: Path) -> None:
    probe = (
        "import sys; from shiftbook.cli.app import app\n"
        "try: app(['--version'])\nexcept SystemExit: pass\n"
        "heavy = ('shiftbook.cli.', 'pydantic', 'rich.')\n"
        "print(*sorted(name for name in sys.modules if name.startswith(heavy)))"
    )
    told = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    loaded = told.splitlines()[-1].split()
    assert loaded == [f"shiftbook.cli.{name}" for name in ("app", "examples", "options", "output", "words")]


def test_v_shows_the_log_on_stderr(shop: Path) -> None:
    quiet = run(shop, "show", "nobody")
    loud = run(shop, "show", "nobody", "-v")
    assert "Traceback" not in quiet.err
    assert "Traceback" in loud.err
    assert loud.err.splitlines()[-1] == quiet.err.strip()


def test_completion_knows_the_verbs(tmp_path: Path) -> None:
    place = {"_SHIFTBOOK_COMPLETE": "complete_bash", "COMP_WORDS": "shiftbook re", "COMP_CWORD": "1"}
    assert set(run(tmp_path, **place).out.split()) == {"resume", "rerun", "replay"}

"""Whatever stands behind a verb or an option: one sentence that says what to do, no traceback, no password.

Every parameter of every verb gets values that no author thinks of. What is good for some of them is taken;
what is refused leaves the journal as it was.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from shiftbook.cli.app import VERBS, app
from tests.cli import agents
from tests.cli.program import Ran, run

TOO_LONG = "x" * 5_000
SECRET = "s3cret"
ADDRESS = f"postgresql://jo:{SECRET}@127.0.0.1:1/book"
NO_UTF8 = "\udcff"
"""The byte 0xff of a command line, as Python hands it on."""
VALUES = (TOO_LONG, ADDRESS, NO_UTF8, "-1", "9" * 25, "")

CHAT = '[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]'
USED: dict[str, list[str]] = {
    "init": ["there"],
    "run": ["agent.py:shop", "How much tea?"],
    "resume": ["tea1"],
    "send": ["tea1", "Thanks"],
    "worker": ["--db", "postgresql://127.0.0.1:1/book", "--once"],
    "workers": ["--db", "postgresql://127.0.0.1:1/book"],
    "rerun": ["chat.json"],
    "measure": ["chat.json"],
    "replay": ["chat.json", "--policy", "window", "--fixed", "0"],
    "runs": [],
    "show": ["tea1"],
    "prompt": ["tea1"],
    "explain": ["tea1"],
    "verify": ["tea1"],
    "study": ["recall", "empty"],
    "export": ["tea1"],
    "import": ["tea.jsonl", "--db", "other.db"],
    "copy": ["--from", "shiftbook.db", "--to", "another.db"],
}
"""A good use of each verb. Not of `demo`, which takes nothing, and of `tail`, which goes on for ever."""
OUTCOMES = frozenset({0, 1, 2, 3})


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("begun")
    agents.write(folder)
    assert run(folder, "run", "agent.py:shop", "How much tea?", "--run-id", "tea1").code == 0
    (folder / "tea.jsonl").write_text(run(folder, "export", "tea1").out)
    (folder / "chat.json").write_text(CHAT)
    (folder / "empty").mkdir()
    return folder


def uses(verb: str) -> Iterator[list[str]]:
    """Each parameter of the verb with each of the values in its place."""
    group = typer.main.get_command(app)
    with group.make_context("shiftbook", [], resilient_parsing=True) as ctx:
        command = group.get_command(ctx, verb)  # type: ignore[attr-defined]
    places = iter(range(len(USED[verb]) + 1))
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            at = next(places)
            for value in VALUES:
                yield [*USED[verb][:at], value, *USED[verb][at + 1 :]]
        elif not parameter.is_flag:
            for value in VALUES:
                yield [*USED[verb], parameter.opts[0], value]


def check(ran: Ran, words: list[str]) -> None:
    told = f"{[word[:40] for word in words]}: {ran.code} {ran.err[-500:]}"
    assert ran.code in OUTCOMES, told
    assert "Traceback" not in ran.err, told
    if ran.code == 2:
        last = ran.err.splitlines()[-1]
        assert last.startswith(("shiftbook: ", "Error: ")), told
        assert len(last) < 900, told
        assert SECRET not in ran.err + ran.out, told


@pytest.mark.parametrize("verb", sorted(USED))
def test_no_value_of_a_parameter_brings_a_traceback_or_tells_a_password(
    verb: str, begun: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    shutil.copytree(begun, folder, ignore=shutil.ignore_patterns("in", "out"))
    before = run(folder, "export", "tea1").out
    for words in uses(verb):
        check(run(folder, verb, *words), [verb, *words])
    if verb not in ("resume", "send", "copy"):  # The last has the run in hand while it copies.
        assert run(folder, "export", "tea1").out == before


def test_every_verb_is_used() -> None:
    assert set(USED) == set(VERBS) - {"demo", "tail"}

"""The commands of the README do what a reader expects of them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.cli.program import run

README = Path(__file__).parents[2] / "README.md"


def test_the_commands_of_the_readme_run_one_after_another(tmp_path: Path) -> None:
    [block] = re.findall(r"```sh\n(shiftbook init.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    commands = [shlex.split(line, comments=True)[1:] for line in block.splitlines()]
    assert [words[0] for words in commands][:2] == ["init", "run"]
    for words in commands:
        ran = run(tmp_path, *words)
        assert ran.code == 0, (words, ran.err)

"""The program `shiftbook` for tests: in this process, or as a real one that can be signalled."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shiftbook.cli import main


@dataclass(frozen=True)
class Ran:
    """What the program did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON value on stdout."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """Stdout as one JSON value a line."""
        return [json.loads(line) for line in self.out.splitlines()]


def run(folder: Path, *words: str, stdin: str | bytes = "", **place: str) -> Ran:
    """Run the program in a folder, to its end, in this process; of what it loaded nothing is kept."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    out, err, source = (io.TextIOWrapper(io.BytesIO(each), "utf-8") for each in (b"", b"", given))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(os, "environ", around(place))
        patch.setattr(sys, "argv", ["shiftbook", *words])
        patch.setattr(sys, "path", [*sys.path])
        for name, stream in (("stdin", source), ("stdout", out), ("stderr", err)):
            patch.setattr(sys, name, stream)
        code = _entry_point()
    for name, module in tuple(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(folder)):
            del sys.modules[name]
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.detach().getvalue().decode())
    return Ran(code, *texts)


def _entry_point() -> int:
    log = logging.getLogger("shiftbook")
    before = log.handlers[:]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    finally:
        log.handlers[:] = before
    return 0


@contextmanager
def running(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The program while it runs; killed at the end if it still does."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command(*words), cwd=folder, env=around({}), stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def command(*words: str) -> list[str]:
    """The command line."""
    return [sys.executable, "-m", "shiftbook", *words]


def around(place: dict[str, str]) -> dict[str, str]:
    """The environment, without what would tell the program where its journal is."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SHIFTBOOK")}
    return {**kept, **place}

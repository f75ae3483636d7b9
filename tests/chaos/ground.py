"""What the storm stands on: one PostgreSQL, the receiving service, and worker processes that can be hurt.

A worker may stand in a network namespace of its own, joined to this one by a pair of virtual cards: pulling
the plug of that is a partition in which nothing answers and nothing is refused.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import psycopg

from tests.chaos import desk, worker
from tests.chaos.worker import READY
from tests.crash.receiver import Receiver
from tests.postgres import Server

NET = "10.77.13"
OUTSIDE, INSIDE = f"{NET}.1", f"{NET}.2"
"""The two ends of the pair of cards."""


@dataclass
class Namespace:
    """A network namespace and the card that joins it to this one."""

    name: str
    card: str

    def plug(self, state: str) -> None:
        """ "down" partitions it from everything, "up" ends that."""
        _ip("link", "set", self.card, state)


def can_have_namespaces() -> bool:
    """Whether this machine lets us make network namespaces."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    probe = f"sbprobe{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False).returncode:
        return False
    _ip("netns", "del", probe)
    return True


@contextmanager
def namespace() -> Iterator[Namespace]:
    """A namespace of its own, from which this machine is reached as `OUTSIDE`; removed at the end."""
    made = Namespace(f"sbchaos{os.getpid()}", f"sbch{os.getpid() % 100_000}")
    inner = f"{made.card}i"
    _ip("netns", "add", made.name)
    try:
        _ip("link", "add", made.card, "type", "veth", "peer", "name", inner, "netns", made.name)
        _ip("addr", "add", f"{OUTSIDE}/24", "dev", made.card)
        made.plug("up")
        for words in (("addr", "add", f"{INSIDE}/24", "dev", inner), ("link", "set", inner, "up")):
            _ip("-n", made.name, *words)
        _ip("-n", made.name, "link", "set", "lo", "up")
        yield made
    finally:
        _ip("netns", "del", made.name)


def let_in(server: Server) -> None:
    """Let the namespace's end of the pair into the database."""
    assert server.data is not None
    with (server.data / "pg_hba.conf").open("a") as file:
        file.write(f"host all all {NET}.0/24 trust\n")
    server.sql(server.address, "SELECT pg_reload_conf()")


@dataclass
class Hand:
    """A worker process: which place it takes, and the process that stands there now."""

    number: int
    skew_ms: int = 0
    space: Namespace | None = None
    process: subprocess.Popen[bytes] | None = None
    lives: int = 0
    up_in: int = 0
    """The life in which it was last seen to have begun to work."""
    busy: bool = False
    """Something is being done to it."""

    @property
    def host(self) -> str:
        """The host that it believes to be on; another one in each life."""
        return f"host-{self.number}-{self.lives}"


@dataclass
class Crew:
    """All worker processes of a storm."""

    address: str
    receiver: Receiver
    folder: Path
    lease_ms: int
    concurrency: int
    pace_ms: int
    hands: list[Hand] = field(default_factory=list)
    _logs: list[IO[Any]] = field(default_factory=list)

    def start(self, hand: Hand) -> None:
        """Put a fresh process in the worker's place."""
        hand.lives += 1
        address, receiver = self.address, self.receiver.address
        words = [sys.executable, "-m", "tests.chaos.worker"]
        if hand.space is not None:
            address, receiver = (each.replace("127.0.0.1", OUTSIDE) for each in (address, receiver))
            words = ["ip", "netns", "exec", hand.space.name, *words]
        place = {
            worker.HOST: hand.host,
            worker.SKEW: str(hand.skew_ms),
            worker.LEASE: str(self.lease_ms),
            worker.CONCURRENCY: str(self.concurrency),
            desk.RECEIVER: receiver,
            desk.PACE: str(self.pace_ms),
        }
        log = self.log_of(hand).open("wb")
        self._logs.append(log)
        # `ip netns exec` becomes the program that it starts: the process id is the worker's.
        hand.process = subprocess.Popen(
            [*words, address], env={**os.environ, **place}, stdout=log, stderr=subprocess.STDOUT
        )

    def log_of(self, hand: Hand) -> Path:
        """Where what stands in a worker's place now writes to."""
        return self.folder / f"{hand.host}.log"

    def is_up(self, hand: Hand) -> bool:
        """Whether the worker has begun to work: a newborn one that still loads is nobody to take over."""
        if hand.up_in != hand.lives and READY in self.log_of(hand).read_text(errors="replace"):
            hand.up_in = hand.lives
        return hand.up_in == hand.lives

    def signal(self, hand: Hand, number: signal.Signals) -> None:
        """Send a signal to the process."""
        assert hand.process is not None
        hand.process.send_signal(number)

    def end(self) -> None:
        """Kill what is left, by its process id."""
        for hand in self.hands:
            if hand.process is not None and hand.process.poll() is None:
                hand.process.kill()
                hand.process.wait()
        for log in self._logs:
            log.close()

    def told(self, lines: int = 12) -> str:
        """The ends of the logs, for whoever looks into a failed storm."""
        parts = []
        for path in sorted(self.folder.glob("*.log")):
            text = path.read_text(errors="replace").splitlines()[-lines:]
            parts.append(f"--- {path.name}\n" + "\n".join(text))
        return "\n".join(parts)


def held_by(address: str, host: str) -> dict[str, int]:
    """The runs that a host holds by a lease that lives, and their lease epochs."""
    with psycopg.connect(address, autocommit=True) as connection:
        found = connection.execute(
            "SELECT run, epoch FROM shiftbook.leases WHERE host = %s AND until_ms > shiftbook.now_ms()",
            (host,),
        )
        return dict(found.fetchall())


def port_of(address: str) -> int:
    """The port in an address."""
    return urlsplit(address).port or 0


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)

"""An HTTP service on the loopback that acts on what is posted to it, and honours keys or ignores them.

It keeps what it did by case, the first part of the path, so that one service serves a whole sweep.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import urlsplit

from shiftbook.providers.scripted import call, calls
from shiftbook.run.limits import Limits
from shiftbook.tools.contract import Context
from shiftbook.tools.function import tool
from tests.crash.scenarios import Scenario
from tests.crash.world import WORLD

RECEIVER: ContextVar[str] = ContextVar("RECEIVER")
TIMEOUT_S = 30


class Receiver:
    """The service's books: how often it acted, by case and key."""

    def __init__(self, *, honours_keys: bool) -> None:
        self.honours_keys = honours_keys
        self.address = ""
        self.acted = 0
        """How often it acted in all."""
        self._effects: dict[str, Counter[str]] = defaultdict(Counter)
        self._answers: dict[tuple[str, str], str] = {}
        self._lock = Lock()

    def effects(self, case: str) -> Counter[str]:
        """How often it acted in a case, by key."""
        with self._lock:
            return Counter(self._effects[case])

    def receive(self, case: str, key: str, amount: int) -> str:
        """Act, unless a key that is honoured was seen before: then the first answer is given again."""
        with self._lock:
            if self.honours_keys and (case, key) in self._answers:
                return self._answers[case, key]
            self._effects[case][key] += 1
            self.acted += 1
            answer = f"charged {amount}"
            self._answers[case, key] = answer
            return answer


@contextmanager
def receiving(*, honours_keys: bool, host: str = "127.0.0.1") -> Iterator[Receiver]:
    """The service, on a free port, stopped in the end."""
    receiver = Receiver(honours_keys=honours_keys)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            key = self.headers["Idempotency-Key"]
            answer = receiver.receive(self.path.strip("/"), key, body["amount"]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def handle(self) -> None:
            # Whoever posts may be killed or cut from the network in the middle.
            with suppress(ConnectionError):
                super().handle()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name it is called by
            """Say nothing."""

    with ThreadingHTTPServer((host, 0), Handler) as server:
        server.daemon_threads = True
        receiver.address = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.01,), name="receiver")
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()


def post(address: str, amount: int, headers: dict[str, str]) -> str:
    """One request to the service, and its answer."""
    url = urlsplit(address)
    connection = HTTPConnection(url.hostname or "", url.port or 0, timeout=TIMEOUT_S)
    try:
        connection.request("POST", url.path, json.dumps({"amount": amount}), headers)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


@tool(repeat="keyed")
async def charge(amount: int, context: Context) -> str:
    """Charge a card through the service."""
    world = WORLD.get()
    world.begin(context)
    await asyncio.sleep(0)
    answer = post(RECEIVER.get(), amount, context.headers())
    if not world.happened(context.key):
        world.act(context)
    await asyncio.sleep(0)
    return answer


CHARGES = Scenario(
    "charges",
    {
        1: calls(call("charge", {"amount": 5}), call("charge", {"amount": 5}), call("charge", {"amount": 7})),
        2: call("charge", {"amount": 5}),
    },
    policy="transcript",
    cap=100_000,
    tools=(charge,),
    limits=Limits(parallel=2, snapshot_every=4),
)

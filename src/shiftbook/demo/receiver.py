"""The demo's other side: a small HTTP service, in a process of its own, that charges accounts.

It honours `Idempotency-Key`: a key that it has seen gets its first answer again and no second effect, and it
counts the effects of each key. At the requests named on its command line it stands still, before or after the
effect, and says so on stdout; so whoever listens can kill the client in the middle of an action. Lines on
stdin: `go` lets a held request end, `count` asks for the ledger; the end of stdin ends the service.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BEFORE, AFTER = "before", "after"


class Ledger:
    """What was charged, by key, and where to stand still: request number -> before or after the effect."""

    def __init__(self, holds: Mapping[int, str]) -> None:
        self._holds = holds
        self._lock = threading.Lock()
        self._answers: dict[str, dict[str, object]] = {}
        self._released = threading.Semaphore(0)
        self.requests = 0
        self.effects: dict[str, int] = {}

    def charge(self, key: str, order: Mapping[str, object]) -> dict[str, object]:
        """Charge an order once a key."""
        with self._lock:
            self.requests += 1
            hold = self._holds.get(self.requests)
        if hold == BEFORE:
            self._hold(hold, key)
        with self._lock:
            if key not in self._answers:
                self.effects[key] = self.effects.get(key, 0) + 1
                self._answers[key] = {"charged": order, "receipt": f"R-{len(self._answers) + 1:04}"}
            answer = self._answers[key]
        if hold == AFTER:
            self._hold(hold, key)
        return answer

    def release(self) -> None:
        """Let the held request end."""
        self._released.release()

    def _hold(self, moment: str, key: str) -> None:
        tell({"holding": moment, "key": key})
        self._released.acquire()
        tell({"released": key})


def tell(value: object) -> None:
    """A line for whoever started the service."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def serve(holds: Mapping[int, str]) -> None:
    """Serve on a free port of the loopback interface until stdin ends."""
    ledger = Ledger(holds)

    class Charges(BaseHTTPRequestHandler):
        """POST /charge."""

        def do_POST(self) -> None:
            """Charge what the body says under the request's key."""
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = json.dumps(ledger.charge(self.headers["Idempotency-Key"], body)).encode()
            try:
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
            except ConnectionError:
                self.close_connection = True  # The client was killed; what it asked for was done.

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Stdout is for cues."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Charges)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    tell({"port": server.server_address[1]})
    for line in sys.stdin:
        if line.strip() == "go":
            ledger.release()
        elif line.strip() == "count":
            tell({"effects": ledger.effects, "requests": ledger.requests})


if __name__ == "__main__":
    serve({int(at): moment for at, _, moment in (word.partition(":") for word in sys.argv[1:])})

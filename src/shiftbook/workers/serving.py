"""What a worker tells over HTTP: `/health` for whoever restarts it, `/metrics` for Prometheus.

It answers two paths, to GET, in a few lines over the standard library, and holds no connection open. It
listens on the loopback unless another address is named, since it asks nobody who they are; what it tells
are counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict

from shiftbook.errors import BadInput, ShiftbookError
from shiftbook.journal.postgres import PostgresStore
from shiftbook.workers.board import waiting
from shiftbook.workers.worker import Worker

LOOPBACK = "127.0.0.1"
REQUEST_S = 5.0
"""A request has to be there within this time, in seconds."""

_HELP = {
    "taken": "Runs resumed.",
    "rested": "Runs that came to rest.",
    "handed_over": "Runs left at a boundary to another worker.",
    "held": "Runs put off because somebody else held them.",
    "full": "Runs put off because a share was used up.",
    "fenced": "Runs cut off because their lease was lost.",
    "faults": "Runs put off because of a fault.",
    "outages": "Times that the queue could not be reached.",
    "entries": "Entries committed.",
}

_WAITING = "Wakes of the whole queue that are ready or at work; runs due later, or parked for a share."


def parse_listen(text: str) -> tuple[str, int]:
    """ "9100" or "HOST:9100" as host and port; the host is the loopback unless named. `BadInput`."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 <= int(port) <= 65_535:
        raise BadInput(f"--listen {text!r:.60} is no port: give PORT, or HOST:PORT, such as 9100.")
    return host.strip("[]") or LOOPBACK, int(port)


@asynccontextmanager
async def serving(worker: Worker, store: PostgresStore, host: str, port: int) -> AsyncIterator[int]:
    """Serve a worker's health and metrics; yields the port. `BadInput` when it cannot be listened to."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(REQUEST_S):
                line = (await reader.readline()).decode("latin-1").split()
                while (await reader.readline()).strip():
                    pass
            status, body = await _answer(worker, store, *line[:2])
            head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            data = body.encode()
            writer.write(f"{head}Content-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode() + data)
            await writer.drain()
        writer.close()

    try:
        server = await asyncio.start_server(answer, host, port)
    except OSError as fault:
        raise BadInput(
            f"{host}:{port} cannot be listened to ({fault.strerror}): name another by --listen."
        ) from None
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _answer(worker: Worker, store: PostgresStore, method: str = "", path: str = "") -> tuple[str, str]:
    if method != "GET":
        return "405 Method Not Allowed", "Only GET is answered.\n"
    match path.partition("?")[0]:
        case "/health":
            ready = worker.is_ready
            return ("200 OK", "ok\n") if ready else ("503 Service Unavailable", "no queue, or stopping\n")
        case "/metrics":
            return "200 OK", await metrics(worker, store)
    return "404 Not Found", "There are /health and /metrics.\n"


async def metrics(worker: Worker, store: PostgresStore) -> str:
    """The worker's counts and the queue's length, in the text format of Prometheus.

    The queue's length is left out when the database does not answer: missing is not zero.
    """
    lines: list[str] = []
    for name, value in asdict(worker.counts).items():
        lines += _metric(f"shiftbook_worker_{name}_total", "counter", _HELP[name], {"": value})
    lines += _metric("shiftbook_worker_runs", "gauge", "Runs in hand.", {"": worker.at_work})
    lines += _metric(
        "shiftbook_worker_ready", "gauge", "1 when the worker takes runs.", {"": int(worker.is_ready)}
    )
    with suppress(ShiftbookError, TimeoutError):
        async with asyncio.timeout(REQUEST_S):
            length = await store.connections.run(waiting, again=waiting)
        values = {f'{{state="{state}"}}': int(str(value)) for state, value in length.items()}
        lines += _metric("shiftbook_queue_wakes", "gauge", _WAITING, values)
    return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, told: str, values: dict[str, int]) -> list[str]:
    return [
        f"# HELP {name} {told}",
        f"# TYPE {name} {kind}",
        *(f"{name}{label} {value}" for label, value in values.items()),
    ]

"""A model provider on this machine: the vendors' own clients talk to it unchanged, a script answers.

    with ProviderServer([call("lookup", {"id": 7}), say("It is seven.")]) as server:
        client = anthropic.Anthropic(base_url=server.anthropic_url, api_key="any", max_retries=0)
        ...
    assert [exchange.rule for exchange in server.exchanges] == [None, None]

It speaks Anthropic Messages, OpenAI Chat Completions and OpenAI Responses, plain and streamed. It refuses
what the vendors refuse, verifies reasoning, earns its cache figures, fails on cue, and keeps every request.
It listens on 127.0.0.1 alone, on a free port, in a thread of its own, so that blocking and asynchronous
clients are served alike; several may run at once.

It is no model: nothing is understood, nothing is made up. Not played: batches, files, token counting, audio,
several choices, anything that a vendor stores between requests.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Collection, Coroutine, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from shiftbook.clock import Clock, SystemClock
from shiftbook.economics.cache_rules import CacheRule
from shiftbook.ending import end
from shiftbook.errors import BadInput
from shiftbook.testing.server.accounts import Accounts
from shiftbook.testing.server.delivery import Delivery
from shiftbook.testing.server.exchange import Exchange
from shiftbook.testing.server.signatures import SECRET
from shiftbook.testing.server.transport import HEAD_BYTES_MAX, Connection
from shiftbook.testing.server.vendor import Script, Stance, Terms, Vendor
from shiftbook.testing.server.wires import ANTHROPIC, WIRES
from shiftbook.tokens import ByteMeter, Meter

HOST = "127.0.0.1"


class ProviderServer:
    """A scripted provider; use it with `with` or `async with`.

    `script` is a list of turns, one for each request that passes the vendor's checks, or a function from the
    exchange to a turn, called in the server's thread. What such a function raises is answered with status 400
    and raised again when the server stops.

    `clock` gives the cache its time and answers their dates; `meter` counts tokens (bytes unless given);
    `rule` replaces the cache rule of the model; `models` and `keys` are those that exist, None for all;
    `stale_reasoning` says whether reasoning on another prefix or of another model fails the request or is
    withheld from the model (edited reasoning always fails it); `waived` names rules that are not checked, for
    programs that send what the vendors' references do not list; `secret` is what reasoning is signed with.
    """

    def __init__(
        self,
        script: Script,
        *,
        clock: Clock | None = None,
        meter: Meter | None = None,
        rule: CacheRule | None = None,
        models: Collection[str] | None = None,
        keys: Collection[str] | None = None,
        stale_reasoning: Stance = "refused",
        waived: Collection[str] = (),
        secret: bytes = SECRET,
    ) -> None:
        terms = Terms(clock or SystemClock(), models, keys, rule, stale_reasoning, frozenset(waived), secret)
        self._vendor = Vendor(script, Accounts(meter or ByteMeter()), terms)
        self._exchanges: list[Exchange] = []
        self._port = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._listener: socket.socket | None = None
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Every HTTP request so far, refused ones included, in the order in which they were read."""
        return tuple(self._exchanges)

    @property
    def failures(self) -> tuple[Exception, ...]:
        """What the script itself did wrong."""
        return tuple(self._vendor.failures)

    @property
    def anthropic_url(self) -> str:
        """`base_url` for Anthropic's client."""
        return f"http://{HOST}:{self._port}"

    @property
    def openai_url(self) -> str:
        """`base_url` for OpenAI's client."""
        return f"http://{HOST}:{self._port}/v1"

    def start(self) -> None:
        """Listen on a free port; returns when a client can connect."""
        if self._thread is not None:
            raise BadInput("This server runs already; make another one for another port.")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._run, args=(self._loop,), name="provider server", daemon=True
        )
        self._thread.start()
        self._do(self._listen())

    def stop(self) -> None:
        """Close every connection, end the thread, free the port; harmless when nothing runs."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        self._do(self._close())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        self._loop = self._thread = None

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Inside, nobody listens: connections are refused, those that were open are closed."""
        self._do(self._close())
        try:
            yield
        finally:
            self._do(self._listen())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if fault is None and self._vendor.failures:
            raise self._vendor.failures[0]

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, fault, trace)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        if self._loop is None:
            work.close()
            raise BadInput("The server is not running; start it first.")
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _listen(self) -> None:
        # Not asyncio's own server: in 3.11 it leaks a connection that comes while it closes.
        listener = socket.create_server((HOST, self._port))
        listener.setblocking(False)
        self._port = listener.getsockname()[1]
        self._listener = listener
        asyncio.get_running_loop().add_reader(listener, self._connected, listener)

    async def _close(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None
        for task in list(self._serving):
            await end(task)
        # A transport that was ended lets go of its socket in the next round of the loop.
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    def _connected(self, listener: socket.socket) -> None:
        try:
            accepted, _address = listener.accept()
        except OSError:
            return
        accepted.setblocking(False)
        task = asyncio.get_running_loop().create_task(self._serve(accepted))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        # For a task that was cancelled before it began; closing again does no harm.
        task.add_done_callback(lambda _task: accepted.close())

    async def _serve(self, accepted: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=accepted, limit=HEAD_BYTES_MAX)
        connection = Connection(reader, writer)
        try:
            while (request := await connection.request()) is not None:
                exchange = Exchange(
                    len(self._exchanges) + 1, request.method, request.path, request.headers, request.raw
                )
                self._exchanges.append(exchange)
                if not await self._answered(exchange, connection):
                    break
            writer.close()
            await writer.wait_closed()
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()

    async def _answered(self, exchange: Exchange, connection: Connection) -> bool:
        """Answer one request; says whether the connection lives on."""
        wire = WIRES.get(exchange.path)
        if wire is None or exchange.method != "POST":
            exchange.refusal = ANTHROPIC.refusal(
                404, f"No such place: {exchange.method} {exchange.path}", "path"
            )
            exchange.status = 404
            await connection.answer(404, {"content-type": "text/plain"}, b"Not found")
            exchange.ended = "whole"
            return True
        plan = self._vendor.plan(wire, exchange)
        try:
            exchange.ended = await Delivery(plan, exchange, connection).run()
        except ConnectionError:
            exchange.ended = "left"
        except asyncio.CancelledError:
            exchange.ended = "cut"
            raise
        except BadInput as fault:
            self._vendor.failures.append(fault)
            connection.drop()
            exchange.ended = "cut"
        return exchange.ended == "whole"

"""At most one HTTP request for one reply, whatever a client's libraries want to repeat.

Inside of `once()` the watched clients let one request leave; the next one raises `SentAgain` before it is
sent, a redirect included. Outside of it they are as they were. What is watched is the list of request hooks
that an httpx client has; a client without one is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_SENT: ContextVar[list[str] | None] = ContextVar("sent", default=None)


class SentAgain(Exception):
    """A second request within one reply; it was not sent."""


@contextmanager
def once() -> Iterator[None]:
    """Count the requests that are made inside, in this task and those that it starts."""
    token = _SENT.set([])
    try:
        yield
    finally:
        _SENT.reset(token)


def watch(client: Any) -> None:
    """Watch an SDK's client that stands on an httpx client; doing it again changes nothing."""
    inner = getattr(client, "_client", None)
    hooks = getattr(inner, "event_hooks", None)
    if inner is None or not isinstance(hooks, dict) or _count in hooks.get("request", ()):
        return
    inner.event_hooks = {**hooks, "request": [*hooks.get("request", ()), _count]}


def sent_again(error: BaseException) -> bool:
    """Whether an error stands for, or was caused by, a second request."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, SentAgain):
            return True
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return False


async def _count(request: Any) -> None:
    sent = _SENT.get()
    if sent is None:
        return
    if sent:
        raise SentAgain(f"{request.method} {request.url.path} was about to be sent after {sent[0]}.")
    sent.append(f"{request.method} {request.url.path}")

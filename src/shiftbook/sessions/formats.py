"""The table of known session formats and the three ways into a file: open one session, all, or count.

The format is told by the content, never by the file's name. A file that is broken, or of no known format,
is refused with one `SessionUnreadable` that names the line where there is one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from itertools import islice

from shiftbook.errors import NoSession, SessionUnreadable
from shiftbook.sessions import (
    agents_sdk,
    anthropic_messages,
    atif,
    claude_code,
    codex,
    inspect_eval,
    langgraph,
    mini_swe_agent,
    openai_chat,
    openai_responses,
    openhands,
    otel,
    swe_agent,
    tau_bench,
    vercel,
)
from shiftbook.sessions.archive import members
from shiftbook.sessions.database import tables
from shiftbook.sessions.format import Format, Unread
from shiftbook.sessions.normal import Session
from shiftbook.sessions.packed import packed_as
from shiftbook.sessions.source import Source

FORMATS: tuple[Format, ...] = (
    claude_code.FORMAT,
    codex.FORMAT,
    openhands.FORMAT,
    atif.FORMAT,
    swe_agent.FORMAT,
    mini_swe_agent.FORMAT,
    tau_bench.FORMAT,
    inspect_eval.ARCHIVE,
    inspect_eval.DOCUMENT,
    otel.FORMAT,
    agents_sdk.FORMAT,
    langgraph.FORMAT,
    vercel.FORMAT,
    openai_responses.FORMAT,
    anthropic_messages.FORMAT,
    openai_chat.FORMAT,
)
"""Asked in this order: what has marks of its own before the plain lists of messages."""


def open_session(path: str | os.PathLike[str], only: int | None = None) -> Session:
    """The session in a file, or the `only`-th of them, counted from 1.

    Raises SessionUnreadable when the file is broken or of no known format, when it holds several sessions
    and `only` does not choose, and when there is no session of that number.
    """
    source, unread = _unread(path)
    if only is None:
        first = next(unread, None)
        if first is None:
            raise SessionUnreadable(source.path, 0, "holds no session")
        if next(unread, None) is not None:
            held = 2 + sum(1 for _ in unread)
            raise SessionUnreadable(
                source.path, 0, f"holds {held} sessions; choose one with --only 1 to --only {held}"
            )
        return first()
    chosen = next(islice(unread, only - 1, None), None) if 1 <= only <= sys.maxsize else None
    if chosen is None:
        held = count_sessions(path)
        raise SessionUnreadable(
            source.path, 0, f"has no session {only}: it holds {held}, and --only counts from 1"
        )
    return chosen()


def each_session(path: str | os.PathLike[str]) -> Iterator[Session]:
    """Every session of a file in order; raises SessionUnreadable at the first that cannot be read."""
    _, unread = _unread(path)
    for read in unread:
        yield read()


def count_sessions(path: str | os.PathLike[str]) -> int:
    """How many sessions a file holds; a file of several is parsed to its end, one of one is only sampled."""
    _, unread = _unread(path)
    return sum(1 for _ in unread)


def recognised(path: str | os.PathLike[str], formats: tuple[Format, ...] = FORMATS) -> tuple[Source, Format]:
    """The file and the first format that recognises it; raises NoSession when none does."""
    source = Source(path)
    sample, fault = _sample(source)
    for known_format in formats:
        if known_format.container == source.container and known_format.recognise(sample):
            return source, known_format
    packed = packed_as(source)
    if packed is not None and (fault is None or source.container == "records"):
        raise NoSession(source.path, 0, packed)
    known = f"known: {', '.join(each.name for each in formats)}"
    if fault is not None and not sample:
        what = f"{fault.what}; it is no session of a known format either way ({known})"
        raise NoSession(source.path, fault.line, what)
    raise NoSession(source.path, 0, f"is no session of a known format ({known})")


def _sample(source: Source) -> tuple[list[Mapping[str, object]], SessionUnreadable | None]:
    """What formats are asked about: records, or the table of contents of a database or an archive."""
    if source.container == "records":
        return source.sample()
    try:
        contents = tables(source) if source.container == "sqlite" else members(source)
    except SessionUnreadable as broken:
        return [], broken
    return [contents], None


def _unread(path: str | os.PathLike[str]) -> tuple[Source, Iterator[Unread]]:
    """The file and its sessions."""
    source, known_format = recognised(path)
    if known_format.sessions is None:
        raise NoSession(
            source.path,
            0,
            f"is {known_format.title}, which can be measured; what was said in it cannot be driven again",
        )
    return source, known_format.sessions(source)

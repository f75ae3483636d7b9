"""What a format is to the rest of the house: how it is recognised and what sessions a file of it holds.

Adding one takes a file with a `FORMAT` like this, a fixture, and a row in `formats.FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shiftbook.sessions.normal import Session
from shiftbook.sessions.requests import RecordedRequests
from shiftbook.sessions.rows import Seen
from shiftbook.sessions.source import Container, Source

Unread = Callable[[], Session]
"""A session that is known to be there and not yet read; calling it reads it or raises SessionUnreadable."""


Requests = Callable[[Source, Seen], Iterator[RecordedRequests]]
"""The sessions of a file as rows of requests, each when it is asked for."""


@dataclass(frozen=True, slots=True)
class Format:
    """One foreign format.

    `title` says to a person what such a file is. `recognise` sees the first readable records and must be
    sure: formats are asked in turn. Of a database it sees one record that gives each table its columns, of
    a zip archive one that gives each member its size. `sessions` gives what the file holds without reading
    more of each than it must, so that counting and choosing one stay cheap; None when what was said cannot
    be had from the format. `requests` gives the rows that `measure` counts.
    """

    name: str
    title: str
    recognise: Callable[[Sequence[Mapping[str, object]]], bool]
    sessions: Callable[[Source], Iterator[Unread]] | None = None
    requests: Requests | None = None
    container: Container = "records"

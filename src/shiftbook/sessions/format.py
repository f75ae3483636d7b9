"""What a format is to the rest of the house: how it is recognised and what sessions a file of it holds.

Adding one takes a file with a `FORMAT` like this, a fixture, and a row in `formats.FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shiftbook.sessions.normal import Session
from shiftbook.sessions.source import Source

Unread = Callable[[], Session]
"""A session that is known to be there and not yet read; calling it reads it or raises SessionUnreadable."""


@dataclass(frozen=True, slots=True)
class Format:
    """One foreign format.

    `title` says to a person what such a file is. `recognise` sees the first readable records and must be
    sure: formats are asked in turn. `sessions` gives what the file holds without reading more of each than
    it must, so that counting and choosing one stay cheap.
    """

    name: str
    title: str
    recognise: Callable[[Sequence[Mapping[str, object]]], bool]
    sessions: Callable[[Source], Iterator[Unread]]

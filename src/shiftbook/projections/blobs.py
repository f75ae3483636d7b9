"""Which blobs an entry names, beside the one that may hold its payload."""

from __future__ import annotations

from collections.abc import Iterator

from shiftbook.entries import (
    ActionFinished,
    AgentDeclared,
    Entry,
    ModelAnswered,
    ModelInterrupted,
    PersonSaid,
)
from shiftbook.messages import Media, Part


def blobs_of(entry: Entry) -> Iterator[str]:
    """The names of the blobs that the entry's content lies in, in order, each as often as it is named."""
    parts: tuple[Part, ...] = ()
    match entry.what:
        case AgentDeclared(declaration=declaration):
            yield declaration
        case PersonSaid(content=content) | ActionFinished(content=content):
            parts = content
        case ModelAnswered(parts=replied) | ModelInterrupted(parts=replied):
            parts = replied
    for part in parts:
        if isinstance(part, Media):
            yield part.blob

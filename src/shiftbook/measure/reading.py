"""From paths to rows of requests: files as they are named, folders walked, one file at a time.

A file of no known format is skipped in a folder and refused when it was named. What cannot be read is told
with its reason; the rest counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from shiftbook.errors import BadInput, SessionUnreadable
from shiftbook.sessions import Notice, Session, each_session
from shiftbook.sessions.normal import RecordedUsage
from shiftbook.sessions.requests import Mark, RecordedRequests, RequestRow


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file of which nothing, or not the rest, could be read."""

    path: str
    line: int
    what: str


def files_in(paths: Iterable[Path]) -> list[Path]:
    """The files meant by a list of files and folders, in an order that depends on their names alone.

    Raises `BadInput` for a path that is not there and when there is no file at all.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            inside = (each for each in path.rglob("*") if each.is_file() and not _is_hidden(each, path))
            found.update(dict.fromkeys(sorted(inside)))
        elif path.exists():
            found[path] = None
        else:
            raise BadInput(f"There is no file or folder {path}: check the path.")
    if not found:
        raise BadInput("There is no file in what was named: name session files, or a folder that holds some.")
    return list(found)


def read_requests(file: Path) -> Iterator[RecordedRequests | Unreadable]:
    """Every session of a file; a fault comes last."""
    try:
        for session in each_session(file):
            yield requests_of(session)
    except SessionUnreadable as fault:
        yield Unreadable(str(file), fault.line, fault.what)


def requests_of(session: Session) -> RecordedRequests:
    """The rows of a session that was read whole: its replies, in the order of their stamps."""
    rows = tuple(
        RequestRow(
            branch="",
            request=reply.message_id,
            at_ms=reply.at_ms,
            model=reply.model,
            kind="main",
            usage=reply.usage or RecordedUsage(),
            source="missing" if reply.usage is None else "reported",
            line=reply.line,
        )
        for reply in session.replies
    )
    marks = tuple(
        Mark("compaction", step.at_ms, "", step.line)
        for step in session.steps
        if isinstance(step, Notice) and step.what == "compaction summary"
    )
    return RecordedRequests(session.format, session.source, str(session.number), rows, marks, ())


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)

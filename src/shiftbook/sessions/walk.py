"""From paths to the requests of every session under them: one file after another, one session in memory.

A folder is walked in the order of its names, a file is told by its content, and what is broken or unknown
is told beside what was read. The same request is counted once however many files tell of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from shiftbook.errors import NoSession, SessionUnreadable
from shiftbook.sessions.format import Format
from shiftbook.sessions.formats import FORMATS, each_session, recognised
from shiftbook.sessions.normal import Session
from shiftbook.sessions.requests import RecordedRequests
from shiftbook.sessions.rows import Seen


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A file of a walk that gave no session, and why; `named` says that its path was given as such.

    `lost`: there may be a session in it, which could not be opened or not be read to its end. Otherwise it
    is something else that stood in a folder.
    """

    path: str
    line: int
    what: str
    named: bool
    lost: bool


Found = RecordedRequests | Unmeasured
Read = TypeVar("Read")


def requests_of(
    path: str | os.PathLike[str], seen: Seen | None = None, formats: tuple[Format, ...] = FORMATS
) -> Iterator[RecordedRequests]:
    """The sessions of one file in order; raises SessionUnreadable when it is of no known format.

    A part that is broken is in `broken` of the session, as far as the rest can be read.
    """
    source, known_format = recognised(path, formats)
    if known_format.requests is None:
        raise NoSession(source.path, 0, f"is of the format {known_format.name}, which has no requests")
    yield from known_format.requests(source, Seen() if seen is None else seen)


def walk_requests(
    paths: Iterable[str | os.PathLike[str]], formats: tuple[Format, ...] = FORMATS
) -> Iterator[Found]:
    """Every session of the files and folders, each file as it is read, so that a caller can show progress."""
    seen = Seen()
    return _walked(paths, lambda path: requests_of(path, seen, formats))


def walk_sessions(paths: Iterable[str | os.PathLike[str]]) -> Iterator[Session | Unmeasured]:
    """Every session of the files and folders whole, as `open_session` reads it; a file of several gives them
    one after another, up to the first that cannot be read."""
    return _walked(paths, each_session)


def _walked(
    paths: Iterable[str | os.PathLike[str]], read: Callable[[Path], Iterator[Read]]
) -> Iterator[Read | Unmeasured]:
    """What `read` gives of each file in turn, and why it gives nothing or no more."""
    for path, named in files_under(paths):
        if is_folder(path):
            what = "is a folder that cannot be read; check its permissions"
            yield Unmeasured(os.fspath(path), 0, what, named, lost=True)
            continue
        try:
            yield from read(path)
        except NoSession as other:
            yield Unmeasured(os.fspath(path), other.line, other.what, named, lost=False)
        except SessionUnreadable as refused:
            yield Unmeasured(os.fspath(path), refused.line, refused.what, named, lost=True)


def files_under(paths: Iterable[str | os.PathLike[str]]) -> Iterator[tuple[Path, bool]]:
    """The files of the paths in order, each once, and whether it was named itself; no link to a folder is
    followed. A folder that cannot be read stands for the files that may be in it.
    """
    met: set[Path] = set()
    for given in map(Path, paths):
        found = [(given, True)]
        if is_folder(given):
            found = [(path, False) for path in _in_folder(given)]
        for path, named in found:
            real = path.absolute()
            if real not in met:
                met.add(real)
                yield path, named


def is_folder(path: Path) -> bool:
    """Whether this is a folder; what cannot be looked at is taken for a file, whose opening will tell why."""
    try:
        return path.is_dir()
    except OSError:
        return False


def left_beside(paths: Iterable[str | os.PathLike[str]]) -> Iterator[tuple[Path, Path, int]]:
    """Files named by themselves whose sub-agents' files, by Claude Code put into `NAME/subagents`, are not
    all among the paths: the file, that folder and how many are left out.
    """
    given = [Path(path) for path in paths]
    covered = {path.absolute() for path, _ in files_under(given)}
    for path in given:
        folder = path.parent / path.name.removesuffix(".gz").removesuffix(".jsonl") / "subagents"
        if is_folder(folder) and path.is_file():
            left = sum(each.absolute() not in covered for each in sorted(folder.glob("*.jsonl*")))
            if left:
                yield path, folder, left


def _in_folder(folder: Path) -> Iterator[Path]:
    """The files of a folder in order, and what cannot be looked at. The events beside an OpenHands state are
    read with that state."""
    closed: list[Path] = []
    for name, folders, files in os.walk(folder, onerror=lambda fault: closed.append(Path(fault.filename))):
        folders[:] = sorted(each for each in folders if not (each == "events" and "base_state.json" in files))
        yield from (Path(name, file) for file in sorted(files))
    yield from closed

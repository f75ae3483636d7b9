"""`measure --survival`: what recorded compactions kept, told to a person or a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from shiftbook._version import VERSION
from shiftbook.cli.left_out import left_out_rows, tell_left_out
from shiftbook.cli.output import data, line, table, write_page
from shiftbook.cli.words import count
from shiftbook.measure.survival import Part, Survived, parts_row, pooled, survival_row, survived
from shiftbook.measure.survival_page import survival_page
from shiftbook.sessions import Session, Unmeasured, walk_sessions
from shiftbook.tokens import BpeMeter

MEANING = (
    "Kept: of all that stood before, what stands in the account. Needed: of what a later call used and "
    "nobody had shown again, what stands in it. Decisions are sentences with a deciding word, kept when half "
    "of their long words are: a rough and generous measure."
)


def tell_survival(paths: Sequence[Path], json: bool, html: Path | None, command: str) -> None:
    """Print it, and write it to the page `html`, which names the `command` that made it.

    Raises `BadInput` when nothing of what was named is a session with its words.
    """
    meter = BpeMeter()
    read = 0
    found: list[tuple[Session, list[Survived]]] = []
    faults: list[Unmeasured] = []
    for session in walk_sessions(paths):
        if isinstance(session, Unmeasured):
            faults.append(session)
            continue
        read += 1
        if session.compactions and (compactions := survived(session, meter)):
            found.append((session, compactions))
    tell_left_out(faults, "read with its words", any_found=read > 0)
    if html is not None:
        named = [(_name(session), many) for session, many in found]
        write_page(html, survival_page(named, sessions=read, command=command, version=VERSION))
    kept, needed = pooled(each for _, many in found for each in many)
    if json:
        data(
            {
                "sessions": [
                    {
                        "path": session.source,
                        "format": session.format,
                        "number": session.number,
                        "compactions": [survival_row(each) for each in many],
                    }
                    for session, many in found
                ],
                "all": {"kept": parts_row(kept), "needed": parts_row(needed)},
                "unreadable": left_out_rows(faults),
            }
        )
        return
    whole = sum(len(many) for _, many in found)
    if not whole:
        line(f"{count(read, 'session')}, and no recorded compaction with replies before and after it.")
        return
    columns = ("session", "after turn", "account", *(f"{kind} needed" for kind in needed))
    rows = [
        (
            _name(session),
            f"{each.turn:,}",
            f"{each.tokens:,}",
            *(_of(part) for part in each.needed.values()),
        )
        for session, many in found
        for each in many
    ]
    table(columns, rows, right=columns[1:])
    line("")
    _tell_all(kept, needed)
    line("")
    line(f"{count(whole, 'compaction')} in {count(read, 'session')}; account: its tokens by our meter.")
    line(MEANING)


def _name(session: Session) -> str:
    return session.source.replace("\\", "/").rsplit("/", 1)[-1]


def _tell_all(kept: Mapping[str, Part], needed: Mapping[str, Part]) -> None:
    none = Part(0, 0)
    rows = [
        (kind, f"{part.of:,}", _share(part), f"{needed.get(kind, none).of:,}", _share(needed.get(kind, none)))
        for kind, part in kept.items()
    ]
    columns = ("all compactions", "stood before", "kept", "needed after", "held")
    table(columns, rows, right=columns[1:])


def _of(part: Part) -> str:
    return f"{part.held:,} of {part.of:,}" if part.of else "-"


def _share(part: Part) -> str:
    return "-" if part.share is None else f"{part.share:.3f}"

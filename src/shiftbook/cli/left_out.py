"""What a walk over files left out, told on stderr: whatever is not counted is said."""

from __future__ import annotations

from collections.abc import Sequence

from shiftbook.cli.options import is_verbose
from shiftbook.cli.output import note
from shiftbook.cli.words import count
from shiftbook.errors import BadInput
from shiftbook.messages import Json
from shiftbook.sessions import Unmeasured

SHOWN = 20
"""Lost sessions of folders that are told one by one; -v tells them all."""


def tell_left_out(faults: Sequence[Unmeasured], to: str, *, any_found: bool) -> None:
    """A line for each file that was named or whose session may be lost; other files are only counted.

    Raises `BadInput` when nothing was found to measure, to replay: `to` says what was to be done.
    """
    if not any_found:
        why = "Name files of recorded sessions, or a folder that holds some"
        if faults:
            first = next((each for each in faults if each.named or each.lost), faults[0])
            why = f"{_where(first)}: {first.what}"
        raise BadInput(f"There is no session to {to} in what was named. {why}.")
    lost = [each for each in faults if each.lost and not each.named]
    shown = lost if is_verbose() else lost[:SHOWN]
    for fault in faults:
        if fault.named or fault in shown or is_verbose():
            note(f"left out: {_where(fault)}: {fault.what}")
    if len(shown) < len(lost):
        note(f"left out: {len(lost) - len(shown):,} more that cannot be read (-v names them)")
    others = sum(not (each.named or each.lost) for each in faults)
    if others and not is_verbose():
        are = "is" if others == 1 else "are"
        note(f"left out: {count(others, 'file')} in the folders that {are} no session (-v names them)")


def left_out_rows(faults: Sequence[Unmeasured]) -> list[Json]:
    """All of it for scripts; `line` is 0 where no line is to blame."""
    return [{"path": each.path, "line": each.line, "what": each.what} for each in faults]


def _where(fault: Unmeasured) -> str:
    return f"{fault.path}, line {fault.line}" if fault.line else fault.path

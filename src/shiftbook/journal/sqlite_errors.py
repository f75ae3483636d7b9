"""Every refusal of SQLite in our words, made in one place.

The message names the database, the cause and what to do, and never holds a payload: neither SQL nor bound
values are in it, and the driver's error is not chained, since its traceback carries both.
"""

from __future__ import annotations

import apsw

from shiftbook.errors import Damaged, NotCanonical, ShiftbookError, StoreError, StoreUnusable

DRIVER_ERRORS = (apsw.Error, UnicodeError, OverflowError)
"""What a statement can raise: the driver's own errors, and texts or numbers that do not fit a column."""


def translated(error: Exception, name: str, busy_ms: int) -> ShiftbookError:
    """The error to raise `from None` in place of one of `DRIVER_ERRORS`."""
    if isinstance(error, UnicodeDecodeError):
        return Damaged(
            f"{name}: a text is not UTF-8, so it is not what was written; check the run with verify."
        )
    if isinstance(error, UnicodeEncodeError):
        return NotCanonical("A text holds a lone surrogate, so it is not canonical; nothing was written.")
    if isinstance(error, OverflowError):
        return NotCanonical("A number is beyond 64 bits, which no column takes; nothing was written.")
    code = _code(error)
    told = _told(error, name, busy_ms, code)
    return told or StoreError(f"{name}: the database refused ({code}); nothing of this was written.")


def closed(name: str) -> StoreUnusable:
    """For whoever asks something of a store after its end."""
    return StoreUnusable(f"{name}: this store was closed; open it again.")


def _code(error: Exception) -> str:
    extended = getattr(error, "extendedresult", None)
    names = apsw.mapping_extended_result_codes | apsw.mapping_result_codes
    return str(names.get(extended, type(error).__name__)) if extended is not None else type(error).__name__


def _told(error: Exception, name: str, busy_ms: int, code: str) -> StoreError | None:
    match error:
        case apsw.FullError():
            return StoreError(
                f"{name}: the disk, or the room allowed to the database, is full; nothing of this was "
                "written and nothing is lost. Make room and resume."
            )
        case apsw.BusyError() | apsw.LockedError():
            return StoreError(
                f"{name}: another program kept the database locked for {busy_ms / 1000:g} s; nothing of this "
                "was written. End what holds it (an open transaction, a copy in progress) and try again."
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
            return StoreUnusable(
                f"{name}: the database may not be written ({code}): the file, its directory or its medium is "
                "read-only. Give write permission to both, or name another file."
            )
        case apsw.CantOpenError():
            return StoreUnusable(
                f"{name}: the database cannot be opened ({code}). SQLite needs a directory that it may write "
                "to, also for reading; check the path and its permissions."
            )
        case apsw.NotADBError():
            return StoreUnusable(f"{name} is not a SQLite database; name another file.")
        case apsw.CorruptError() | apsw.FormatError():
            return Damaged(
                f"{name}: the database file is damaged ({code}); restore it from a copy, or export what "
                "verify still finds whole."
            )
        case apsw.SQLError() | apsw.SchemaChangeError() | apsw.MismatchError():
            return Damaged(f"{name}: a table is not as Shiftbook made it ({code}); restore it from a copy.")
        case apsw.IOError():
            return StoreError(
                f"{name}: the disk failed ({code}); what was being written may be there or not. Check the "
                "disk, then resume: the journal tells."
            )
        case apsw.TooBigError():
            return StoreError(f"{name}: a value is larger than a column takes; nothing of this was written.")
        case apsw.ConstraintError():
            return StoreError(
                f"{name}: the database refused a row that breaks its rules ({code}); nothing of this was "
                "written."
            )
        case apsw.NoMemError():
            return StoreError(f"{name}: SQLite is out of memory; nothing of this was written.")
        case apsw.ConnectionClosedError() | apsw.CursorClosedError():
            return closed(name)
    return None

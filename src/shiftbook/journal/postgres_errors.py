"""Every refusal of PostgreSQL in our words, made in one place.

The message names the database, the cause and what to do. It never holds a payload or a password: the
server's detail and context are left out, and the driver's error is not chained, since it carries both.
"""

from __future__ import annotations

import re

from shiftbook.errors import Damaged, NotCanonical, ShiftbookError, StoreError, StoreUnusable

NOTHING = "nothing of this was written"

_WORDS: dict[str, tuple[type[StoreError], str]] = {
    "53100": (
        StoreError,
        "the server's disk is full; {nothing} and nothing is lost. Make room there and resume.",
    ),
    "53200": (StoreError, "the server is out of memory; {nothing}."),
    "53300": (
        StoreError,
        "the server has no connection left; {nothing}. Raise its max_connections, or run fewer workers.",
    ),
    "55P03": (
        StoreError,
        "another transaction kept the run locked; {nothing}. End what holds it and try again.",
    ),
    "57014": (
        StoreError,
        "a statement took longer than its time-out; {nothing}. Look at the server's load and try again.",
    ),
    "25006": (
        StoreUnusable,
        "the database is read-only (a replica, or set so); {nothing}. Name the primary.",
    ),
    "42501": (
        StoreUnusable,
        "this user lacks rights; {nothing}. Grant it all in the schemas shiftbook and shiftbook_queue.",
    ),
    "3D000": (StoreUnusable, "there is no such database; create it (createdb), or name another."),
    "28P01": (StoreUnusable, "the server refused the user or the password; check both."),
    "28000": (
        StoreUnusable,
        "the server does not let this user in from here; check the user, the database and pg_hba.conf.",
    ),
    "22021": (StoreError, "a text holds what PostgreSQL cannot keep (NUL); {nothing}."),
    "54000": (StoreError, "a value is larger than a column takes; {nothing}."),
}
_CLASSES: dict[str, tuple[type[StoreError], str]] = {
    "42": (Damaged, "a table or function is not as Shiftbook made it ({code}); restore it from a copy."),
    "23": (StoreError, "the database refused a row that breaks its rules ({code}); {nothing}."),
    "XX": (
        Damaged,
        "the server says its data is damaged ({code}); look at its log, then check the run with verify.",
    ),
    "58": (StoreError, "the server's disk failed ({code}); look at its log, then resume: the journal tells."),
}

_REFUSED_AT_THE_DOOR = (
    (re.compile(r"password authentication failed|no password supplied"), "28P01"),
    (
        re.compile(r"pg_hba\.conf|authentication failed|role .* does not exist|not permitted to log in"),
        "28000",
    ),
    (re.compile(r"database .* does not exist"), "3D000"),
    (re.compile(r"permission denied for database"), "42501"),
    (re.compile(r"too many (?:clients|connections)|connection slots"), "53300"),
)
"""What a server says when it does not let a client in, where the driver passes on no code with it."""


def translated(error: Exception, name: str) -> ShiftbookError:
    """The error to raise `from None` in place of the driver's."""
    if isinstance(error, UnicodeEncodeError):
        return NotCanonical("A text holds a lone surrogate, so it is not canonical; nothing was written.")
    code = str(getattr(error, "sqlstate", None) or "")
    if not code and "NUL" in str(error):
        return NotCanonical("A text holds NUL, so it is not canonical; nothing was written.")
    kind, words = _WORDS.get(code) or _CLASSES.get(code[:2], (StoreError, "the database refused ({code})."))
    told = words.format(nothing=NOTHING, code=code or type(error).__name__)
    return kind(f"{name}: {told}")


def not_connected(error: Exception, name: str) -> StoreUnusable:
    """Why no connection came about, by what the server or the network said."""
    code = door_code(error)
    if code:
        return StoreUnusable(str(translated(_Coded(code), name)))
    said = str(error).lower()
    if "starting up" in said or "shutting down" in said or "recovery mode" in said:
        why = "the server is starting or stopping; try again in a moment"
    elif "translate host name" in said or "resolve host" in said or "name or service" in said:
        why = "there is no host of that name; check the address"
    elif "no such file" in said:
        why = "no server listens on that socket; start it, or check the address"
    elif "refused" in said:
        why = "nothing listens there; start the server, or check host and port"
    elif "timeout" in said or "timed out" in said:
        why = "the server does not answer; check the address and the network"
    elif "ssl" in said:
        why = "the server and this program cannot agree on encryption; check sslmode in the address"
    elif "invalid" in said and "option" in said:
        why = "the address has a parameter that is not understood; check what follows the question mark"
    else:
        why = "the server cannot be reached; check the address, the network and the server's log"
    return StoreUnusable(f"{name}: {why}.")


def door_code(error: Exception) -> str:
    """The code under which a server does not let this client in, "" when it never said such a thing."""
    code = getattr(error, "sqlstate", None)
    if code in _WORDS:
        return str(code)
    said = str(error)
    if "FATAL" not in said and "no password supplied" not in said:
        return ""
    return next((code for mark, code in _REFUSED_AT_THE_DOOR if mark.search(said)), "")


def lost(name: str) -> StoreError:
    """The connection died and it cannot be known what became of a statement that writes."""
    return StoreError(
        f"{name}: the connection was lost while this was being written; it may be there or not. Read again, "
        "or resume: the journal tells."
    )


def closed(name: str) -> StoreUnusable:
    """For whoever asks something of a store after its end."""
    return StoreUnusable(f"{name}: this store was closed; open it again.")


class _Coded(Exception):
    """An error of which only the code is known."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.sqlstate = code

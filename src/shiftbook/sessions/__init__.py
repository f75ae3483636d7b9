"""Readers of sessions that other tools recorded, one file a format, all into one normal form.

`open_session` recognises a file by its content and gives a `Session`: a person's words, notices and
replies in the order of the file, each call beside its recorded answer. Readers are pure: they read one
file, call nothing, and write nothing; what they read is hostile text. A foreign session is not a journal
and is never made into one here.
"""

from __future__ import annotations

from shiftbook.sessions.formats import FORMATS, count_sessions, each_session, open_session
from shiftbook.sessions.normal import (
    Answer,
    CallPart,
    MissingPart,
    Notice,
    PersonText,
    RecordedUsage,
    Reply,
    Session,
    Step,
    TextPart,
)

__all__ = [
    "FORMATS",
    "Answer",
    "CallPart",
    "MissingPart",
    "Notice",
    "PersonText",
    "RecordedUsage",
    "Reply",
    "Session",
    "Step",
    "TextPart",
    "count_sessions",
    "each_session",
    "open_session",
]

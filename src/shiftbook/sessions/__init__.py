"""Readers of sessions that other tools recorded, one file a format, all into one normal form.

`open_session` recognises a file by its content and gives a `Session`: a person's words, notices and
replies in the order of the file, each call beside its recorded answer. `walk_requests` goes through files
and folders and gives the model requests of each session as rows of counts, whatever is broken between
them. Readers are pure: they read, call nothing, and write nothing; what they read is hostile text. A
foreign session is not a journal and is never made into one here.
"""

from __future__ import annotations

from shiftbook.sessions.formats import FORMATS, count_sessions, each_session, open_session
from shiftbook.sessions.normal import (
    Answer,
    CallPart,
    Compaction,
    MissingPart,
    Notice,
    PersonText,
    RecordedUsage,
    Reply,
    Session,
    Step,
    TextPart,
)
from shiftbook.sessions.requests import BrokenLine, Mark, RecordedRequests, RequestRow
from shiftbook.sessions.walk import Unmeasured, files_under, requests_of, walk_requests, walk_sessions

__all__ = [
    "FORMATS",
    "Answer",
    "BrokenLine",
    "CallPart",
    "Compaction",
    "Mark",
    "MissingPart",
    "Notice",
    "PersonText",
    "RecordedRequests",
    "RecordedUsage",
    "Reply",
    "RequestRow",
    "Session",
    "Step",
    "TextPart",
    "Unmeasured",
    "count_sessions",
    "each_session",
    "files_under",
    "open_session",
    "requests_of",
    "walk_requests",
    "walk_sessions",
]

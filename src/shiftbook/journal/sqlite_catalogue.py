"""The catalogue in SQLite: who runs, who rests, told a page at a time.

It is derived. A commit writes it only when it moves a run's standing; a run's last position and stamp are
read from its last row, so that ordinary turns write nothing here.
"""

from __future__ import annotations

from functools import partial

from shiftbook.codec import Row, blob_hash
from shiftbook.entries import KIND_NUMBERS, State
from shiftbook.errors import Damaged, NewerFormat, RunExists, UnknownRun
from shiftbook.journal.promises import RunRow
from shiftbook.journal.sqlite_commits import Commits
from shiftbook.journal.sqlite_database import Database
from shiftbook.journal.sqlite_reader import Reader
from shiftbook.projections.standing import STANDING_KINDS, Standing, after

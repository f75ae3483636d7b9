"""What no store lets in, whatever database it keeps its rows in.

These refusals come before anything looks at the database: a commit that no correct writer makes, an inbox
item that nothing could become, a run id that could not stand in a file name, a tag that is no line of text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from shiftbook.codec import blob_hash
from shiftbook.entries import KIND_NUMBERS
from shiftbook.errors import BadInput
from shiftbook.journal.promises import Commit, InboxItem

POSITION_MAX = (1 << 32) - 1
"""The last position that a run can have: where an entry's id is one integer, it keeps 32 bits for it."""

RUN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,63}")
"""What a run id may be: it stands in file names, addresses and tables of every store."""

ITEM_ID_MAX = 200
"""Characters of an inbox item's id."""


TAG_MAX = 200
"""Characters of a run's tag."""


def check_commit(commit: Commit) -> None:
    """Refuse a commit that no correct writer makes, but for its blobs."""
    rows = commit.rows
    if not rows or rows[-1].head is None:
        raise BadInput("A commit needs at least one row, and the chain's head on its last.")
    if commit.expected < 0 or commit.expected + len(rows) > POSITION_MAX:
        raise BadInput(f"Run {commit.run} is at its last possible entry; start a new run.")
    for position, row in enumerate(rows, start=commit.expected + 1):
        if row.position != position or row.epoch > commit.epoch or row.kind not in KIND_NUMBERS:
            raise BadInput(
                f"Row {row.position} ({row.kind}) of a commit to run {commit.run} does not belong at entry "
                f"{position} under lease epoch {commit.epoch}."
            )
    if not all(commit.expected < position <= rows[-1].position for position in commit.taken.values()):
        raise BadInput(
            f"A commit to run {commit.run} takes an inbox item into an entry that it does not hold."
        )


def check_blobs(commit: Commit) -> None:
    """Refuse a commit with a blob that is not what its name says."""
    for name, content in commit.blobs.items():
        if blob_hash(content) != name:
            raise BadInput(f"A blob of run {commit.run} was handed in under a name that is not its hash.")


def check_item(item: InboxItem) -> None:
    """Refuse an inbox item whose id or kind nobody could use."""
    if not (0 < len(item.id) <= ITEM_ID_MAX and item.id.isascii() and item.id.isprintable()):
        raise BadInput(f"An inbox item's id is 1 to {ITEM_ID_MAX} printable ASCII characters.")
    if item.kind not in KIND_NUMBERS:
        raise BadInput(f"There is no kind of entry {item.kind!r:.40} that an inbox item could become.")


def check_run_id(run: str) -> None:
    """Refuse a run id that is none."""
    if not RUN_ID.fullmatch(run):
        raise BadInput(
            f"{run!r:.80} cannot be a run id: letters, digits, '.', '_' and '-', at most 64, a letter or "
            "digit first."
        )


def check_tags(tags: object) -> tuple[str, ...]:
    """The tags of a run, or `BadInput` for what no table and no terminal could hold."""
    if isinstance(tags, str) or not isinstance(tags, Sequence):
        raise BadInput(f"Tags are a list of texts, not {tags!r:.60}: write tags=[...].")
    for tag in tags:
        if not (isinstance(tag, str) and 0 < len(tag) <= TAG_MAX and tag.isprintable() and tag.strip()):
            raise BadInput(
                f"{tag!r:.80} cannot be a tag: 1 to {TAG_MAX} characters that can be printed, on one line."
            )
    return tuple(tags)

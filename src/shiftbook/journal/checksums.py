"""What is kept beside a row to tell a flipped byte: rows that no chain covers are checked when they are read.

The labels are part of the layout: the same row has the same checksum in every store.
"""

from __future__ import annotations

import hashlib

from shiftbook.journal.promises import InboxItem, LeaseRow, Snapshot


def lease_checksum(number: int, row: LeaseRow, mail: int) -> bytes:
    """Of a run's lease and the count of its mail: a lower epoch would let a fenced writer in again."""
    holder = row.holder
    named = "" if holder is None else f"{holder.host}\n{holder.pid}\n{holder.started}"
    return _digest(f"{number}\n{row.run}\n{row.epoch}\n{row.until_ms}\n{mail}\n{named}")


def item_checksum(run: str, place: int, item: InboxItem) -> bytes:
    """Of an inbox item where it was put."""
    return _digest(f"{run}\n{place}\n{item.id}\n{item.kind}\n{item.at_ms}\n{item.moved_to}\n{item.payload}")


def snapshot_checksum(snapshot: Snapshot) -> bytes:
    """Of a snapshot."""
    return _digest(f"{snapshot.name}\n{snapshot.version}\n{snapshot.position}\n{snapshot.text}")


def _digest(label: str) -> bytes:
    return hashlib.sha256(label.encode("utf-8")).digest()

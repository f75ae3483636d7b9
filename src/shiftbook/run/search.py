"""Entries that hold the words of a query, read through page by page: exact, slow, and always right.

It is what `recall` does where no index is there. Every entry that was said is looked at once; those with the
most of the words come first, the newest of equals before the older. What `recall` and `read_entry` gave back
earlier is a copy and is not found again.
"""

from __future__ import annotations

import re

from shiftbook.entries import ActionFinished, Entry, ModelAnswered, ModelInterrupted, PersonSaid
from shiftbook.journal.promises import PAGE_ROWS, Store
from shiftbook.messages import Call
from shiftbook.prompt.told import entry_text
from shiftbook.run.book import read_entries

SAID = (PersonSaid, ModelAnswered, ModelInterrupted, ActionFinished)
"""The kinds that hold words of their own."""

READERS = frozenset({"recall", "read_entry"})
WORDS_MAX = 30
"""Words of a query that are looked for; more are left out."""

_WORD = re.compile(r"[^\W_]+(?:[./@:-][^\W_]+|_[^\W_]+)*")


async def search_words(store: Store, run: str, query: str, limit: int, *, after: int = 0) -> list[int]:
    """The positions of at most `limit` entries that hold a word of the query, the best first.

    Entries up to `after` are passed over.
    """
    words = list(dict.fromkeys(_WORD.findall(query.casefold())))[:WORDS_MAX]
    if not words:
        return []
    looks = [re.compile(rf"(?<!\w){re.escape(word)}(?!\w)") for word in words]
    best: list[tuple[int, int]] = []
    copies: set[str] = set()
    while True:
        page = await read_entries(store, run, after, after + PAGE_ROWS)
        for entry in page:
            hits = _hits(entry, looks, copies)
            if hits:
                best.append((hits, entry.position))
        best.sort(reverse=True)
        del best[limit:]
        if len(page) < PAGE_ROWS:
            return [position for _, position in best]
        after = page[-1].position


def _hits(entry: Entry, looks: list[re.Pattern[str]], copies: set[str]) -> int:
    """How many of the words an entry holds; notes the calls whose results are copies."""
    what = entry.what
    if not isinstance(what, SAID):
        return 0
    if isinstance(what, ModelAnswered):
        calls = [part for part in what.parts if isinstance(part, Call)]
        copies.update(call.id for call in calls if call.tool in READERS)
        if calls and all(call.tool in READERS for call in calls):
            return 0
    elif isinstance(what, ActionFinished) and what.call in copies:
        copies.discard(what.call)
        return 0
    text = entry_text(entry).casefold()
    return sum(look.search(text) is not None for look in looks)

"""Stores that break one promise each, to try the suites of `shiftbook.testing.stores`.

A suite that cannot fail proves nothing. Each broken store wraps a good one so that it breaks the clauses
that it is registered for, in the way that real stores do; every clause has at least one.
"""

from __future__ import annotations

from shiftbook.testing import broken_entries, broken_leases, broken_rest
from shiftbook.testing.breaking import REGISTER, Break

__all__ = ["BROKEN", "Break"]

BROKEN: dict[str, Break] = {
    name: broken
    for name, broken in REGISTER.items()
    if any(hasattr(module, name) for module in (broken_entries, broken_leases, broken_rest))
}
"""Every broken store by its name: the clauses that it fails, and the wrapping of an `open_store`."""

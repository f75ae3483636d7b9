"""What a worker has done since it began, for its metrics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counts:
    """Each only grows."""

    taken: int = 0
    """Runs resumed."""
    rested: int = 0
    """Runs that came to rest."""
    handed_over: int = 0
    """Runs left at a boundary, to another worker."""
    held: int = 0
    """Runs put off because somebody else held them."""
    full: int = 0
    """Runs put off because a share was used up."""
    fenced: int = 0
    """Runs cut off because their lease was lost."""
    faults: int = 0
    """Runs put off for any other reason: an agent that cannot be had, a database that is away."""
    outages: int = 0
    """Times that the queue could not be reached."""
    entries: int = 0
    """Entries committed."""

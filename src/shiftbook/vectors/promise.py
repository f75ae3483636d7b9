"""What vectors of texts promise: the same small row of whole numbers for a text, wherever it is made."""

from __future__ import annotations

from typing import Protocol


class Vectors(Protocol):
    """Makes a vector of a text.

    `name` says what made it, down to the bytes of its files: vectors of another name are of another kind, and
    nothing compares the two. It is written down where an agent is declared.
    """

    @property
    def name(self) -> str:
        """What tells these vectors from any others."""
        ...

    def of(self, text: str) -> bytes:
        """The text's vector: as many signed bytes for every text, all 0 where nothing of it is known."""
        ...

"""What a check of a run found, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

FAULTS_MAX = 1_000
"""Faults that are listed at the most; a last one says that there are more."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is not as a Shiftbook writes it, at the entry where it shows (0: no single entry)."""

    position: int
    what: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of `verify`: `ok` means that no fault was found in `entries` entries and `prompts` prompts.

    `erased` counts the entries whose payload was taken out on request; they are no faults.
    """

    run: str
    ok: bool
    entries: int
    prompts: int
    erased: int
    faults: tuple[Fault, ...]


class Findings:
    """Faults as they are found, each once, up to `FAULTS_MAX`."""

    def __init__(self) -> None:
        self._faults: dict[Fault, None] = {}
        self._more = False

    def add(self, position: int, what: str) -> None:
        """Note a fault."""
        if len(self._faults) < FAULTS_MAX:
            self._faults[Fault(position, what)] = None
        else:
            self._more = True

    def faults(self) -> tuple[Fault, ...]:
        """The faults by position; those of one position in the order in which they were found."""
        found = sorted(self._faults, key=lambda fault: fault.position)
        if self._more:
            found.append(
                Fault(0, f"There are more faults; the first {FAULTS_MAX} that were found are listed.")
            )
        return tuple(found)


def named(text: str) -> str:
    """A name out of a journal, safe and short enough to stand in a sentence: it is hostile text."""
    shown = ascii(text)
    return shown if len(shown) <= 60 else f"{shown[:56]}...'"

"""The ids of calls on a wire: the vendor's own within its epoch, ours everywhere else.

Our ids ("12.1") are mapped by a fixed rule ("call_12_1"), so that every process and every vendor sees the
same ones. A live call keeps the id under which its vendor made it, since reasoning may be bound to it; after
a rebuild or at another vendor nothing of it is left. Some servers hand out one id twice: the second time it
is replaced by ours.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Literal

from shiftbook.messages import Call, Json
from shiftbook.providers.capabilities import Capabilities

Wire = Literal["anthropic", "openai-chat", "openai-responses", "bridge"]

_OURS = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}", re.ASCII)
_USABLE = re.compile(r"[a-zA-Z0-9_-]+", re.ASCII)
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


def vendor_of(call: Call, wire: Wire) -> Mapping[str, Json] | None:
    """What this wire's vendor said of the call beside name and input; None where another made it."""
    vendor = call.vendor
    if isinstance(vendor, Mapping) and vendor.get("wire") == wire and isinstance(vendor.get("id"), str):
        return vendor
    return None


def mapped(name: str, row: Capabilities) -> str:
    """Our id as a wire takes it: equal for equal ids, different for different ones."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    if row.call_id_exact is not None:
        number = int.from_bytes(digest, "big")
        letters = []
        for _ in range(row.call_id_exact):
            number, rest = divmod(number, len(_LETTERS))
            letters.append(_LETTERS[rest])
        return "".join(letters)
    if _OURS.fullmatch(name):
        return f"call_{name.replace('.', '_')}"
    return f"call_x{digest.hex()[: min(24, row.call_id_chars - 6)]}"


class CallIds:
    """The ids of one request. Ask for calls in their order, and for an answer after its call."""

    def __init__(self, wire: Wire, row: Capabilities) -> None:
        self._wire: Wire = wire
        self._row = row
        self._given: dict[str, str] = {}
        self._taken: set[str] = set()

    def of_call(self, call: Call) -> str:
        """The id to send a call under."""
        vendor = vendor_of(call, self._wire)
        wanted = vendor["id"] if vendor is not None else ""
        if not self._is_free(wanted):
            wanted = mapped(call.id, self._row)
        while wanted in self._taken:
            wanted = mapped(f"{wanted}/{call.id}", self._row)
        self._given[call.id] = wanted
        self._taken.add(wanted)
        return wanted

    def of_answer(self, call: str) -> str:
        """The id under which the call of that name was sent."""
        return self._given.get(call) or mapped(call, self._row)

    def _is_free(self, wanted: str) -> bool:
        row = self._row
        fits = len(wanted) <= row.call_id_chars and row.call_id_exact in (None, len(wanted))
        return fits and bool(_USABLE.fullmatch(wanted)) and wanted not in self._taken

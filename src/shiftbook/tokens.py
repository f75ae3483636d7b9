"""How many tokens a text takes, asked in one place.

The cap of a prompt is checked by a meter. `ByteMeter` needs no tables: a byte-level BPE token stands for at
least one byte, so the UTF-8 bytes of a text are never fewer than its tokens, whatever the vocabulary.
`BpeMeter` counts with OpenAI's o200k vocabulary. No vendor's own count is claimed: models count by their
own vocabularies, and the prompt layer calibrates a meter by the usage that the journal holds.

Text is only text: `<|endoftext|>` in a tool's result counts as the characters it is made of. A lone
surrogate, which no tokenizer takes, counts as the six ASCII characters that it is escaped to (backslash,
u, four digits). What a vendor adds around a message is no text and is not counted here.

Counting is the dearest thing that a prompt is made with, and a rebuild measures again what the epoch before
it showed: `Remembering` looks a text up before it counts it.
The choice of package is docs/decisions/0001-bpe-package.md.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from importlib.machinery import PathFinder
from types import ModuleType
from typing import NewType, Protocol, cast

Tokens = NewType("Tokens", int)
Bytes = NewType("Bytes", int)

REMEMBERED_CHARS = 500_000
"""Characters of the texts that a `Remembering` meter takes in before it forgets the older half."""


class Meter(Protocol):
    """Counts the tokens of a text; the same text has the same count under the same name for ever."""

    @property
    def name(self) -> str:
        """Which count this is, as the journal records it."""
        ...

    def count(self, text: str) -> Tokens:
        """Tokens of any text, surrogates and special tokens' names included; raises nothing."""
        ...


def size(text: str) -> Bytes:
    """UTF-8 bytes of the text, six for a surrogate."""
    # In CPython an ASCII text knows that it is one, and its length is its bytes.
    return Bytes(len(text) if text.isascii() else len(text.encode("utf-8", "backslashreplace")))


def bound(text: str) -> Tokens:
    """A number that the text's tokens never pass, under any byte-level BPE vocabulary."""
    return Tokens(size(text))


class ByteMeter:
    """The bound as a meter: loads nothing, and overstates prose about four times."""

    __slots__ = ()
    name = "bytes"

    def count(self, text: str) -> Tokens:
        return bound(text)


class BpeMeter:
    """o200k's exact count. The first count of a process loads the tables: about 0.1 s and 70 MiB."""

    __slots__ = ()
    name = "o200k"

    def count(self, text: str) -> Tokens:
        try:
            return Tokens(_counter().count(text))
        except UnicodeEncodeError:
            return Tokens(_counter().count(text.encode("utf-8", "backslashreplace").decode("utf-8")))


class Remembering:
    """Another meter's counts, each text counted once while it is in use: about the last two prompts' worth.

    The texts of a prompt are in memory anyway, so what is remembered beside them is little. When
    `REMEMBERED_CHARS` have come in, what was not asked for since the last time is forgotten.
    """

    __slots__ = ("_chars", "_earlier", "_meter", "_recent", "name")

    def __init__(self, meter: Meter) -> None:
        self.name = meter.name
        self._meter = meter
        self._recent: dict[str, Tokens] = {}
        self._earlier: dict[str, Tokens] = {}
        self._chars = 0

    def count(self, text: str) -> Tokens:
        tokens = self._recent.get(text)
        if tokens is not None:
            return tokens
        tokens = self._earlier.get(text)
        if tokens is None:
            tokens = self._meter.count(text)
        self._chars += len(text)
        if self._chars > REMEMBERED_CHARS:
            self._earlier, self._recent, self._chars = self._recent, {}, len(text)
        self._recent[text] = tokens
        return tokens


class _Counter(Protocol):
    def count(self, text: str) -> int: ...


@cache
def _counter() -> _Counter:
    """The tables, one for all meters of the process; ImportError if the package is missing.

    Threads that come first at once may each ask for them: the package still builds them once.
    """
    return cast(_Counter, _bindings().tokenizer_for_encoding("o200k_base"))


def _bindings() -> ModuleType:
    """bpe-openai's compiled half alone.

    The package's `__init__` also builds three vocabularies as Python dicts, which counting never reads:
    half a second and 60 MiB (benchmarks/bpe.py).
    """
    name = "bpe_openai._bindings"
    package = importlib.util.find_spec("bpe_openai")
    spec = PathFinder.find_spec(name, package.submodule_search_locations) if package else None
    if spec is None or spec.loader is None:
        return importlib.import_module(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

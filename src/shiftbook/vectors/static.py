"""Vectors from a table that holds one for each token: a text's is the direction of its tokens' sum.

The folder has the field's own form, that of model2vec (potion) and wordllama: a `*.safetensors` file with one
table of two dimensions, and the `tokenizer.json` that says which row a token has. Nothing is downloaded and
no model is run. All arithmetic after the look-up is in whole numbers, so that a text has the same vector
on every machine. Needs the extra `[embeddings]`: numpy, safetensors and tokenizers.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiftbook.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.integer[Any]]

METHOD = "1"
"""How a vector comes of the files; another number where that changes, so that no two kinds are compared."""

TEXT_CHARS = 4_000
"""Of a text so many characters are looked at: a result may be megabytes, and its direction is soon clear."""

STEPS = 32_767
"""The table's greatest number becomes so many whole steps, and a weight's too: 16 bits each."""

BLOCK_ROWS = 4_096
"""Rows that are brought to steps at a time, so that reading a folder takes little more than its files do."""

GREATEST = 127
"""The greatest number of a vector."""


class StaticVectors:
    """Keeps the promise `Vectors` from a table and a tokenizer."""

    def __init__(self, name: str, tokenizer: Any, table: Table) -> None:
        self.name = name
        self._tokenizer = tokenizer
        self._table = table
        self._unknown = -1
        unknown = getattr(tokenizer.model, "unk_token", None)
        if unknown is not None and (known := tokenizer.token_to_id(unknown)) is not None:
            self._unknown = known

    def __repr__(self) -> str:
        return f"StaticVectors({self.name!r})"

    def of(self, text: str) -> bytes:
        """The text's vector; a token that the tokenizer does not know says nothing."""
        # A lone surrogate is no text to a tokenizer; it may stand in anything that a program gave back.
        clean = text[:TEXT_CHARS].encode("utf-8", "replace").decode("utf-8")
        tokens = self._tokenizer.encode(clean, add_special_tokens=False).ids
        return self._table.direction([token for token in tokens if token != self._unknown])


@dataclass(frozen=True, slots=True)
class Table:
    """Whole numbers for each token: `rows` by `places` of the token where several share one, and times its
    `weights` where some count for less."""

    rows: Numbers
    places: Numbers | None = None
    weights: Numbers | None = None

    def direction(self, tokens: list[int]) -> bytes:
        """The sum of these tokens' rows, its greatest number made `GREATEST`, halves away from 0."""
        import numpy as np

        if not tokens:
            return bytes(self.rows.shape[1])
        rows = self.rows[tokens if self.places is None else self.places[tokens]].astype(np.int64)
        if self.weights is not None:
            rows = rows * self.weights[tokens][:, None]
        total = rows.sum(axis=0)
        size = np.abs(total)
        most = int(size.max())
        if not most:
            return bytes(len(total))
        steps = np.sign(total) * ((2 * GREATEST * size + most) // (2 * most))
        return bytes(steps.astype(np.int8).tobytes())


def static_vectors(folder: str | Path) -> StaticVectors:
    """The vectors of a folder: one `*.safetensors` file with a table, and its `tokenizer.json`.

    They are read here, once (about a second), and held in two bytes a number. Raises `BadInput`, whose one
    sentence says what is missing or does not fit.
    """
    try:
        import numpy  # noqa: F401 - all three are looked for before anything is read
        import safetensors
        import tokenizers
    except ImportError as missing:
        raise BadInput(
            f"Static vectors need a package that is not there ({missing.name or 'unknown'}): "
            "run `pip install 'shiftbook[embeddings]'`."
        ) from None
    table_file, tokenizer_file = _files(Path(folder))
    try:
        content, told = table_file.read_bytes(), tokenizer_file.read_bytes()
    except OSError as fault:
        raise BadInput(f"{fault.filename} cannot be read: {fault.strerror}.") from None
    try:
        tokenizer = tokenizers.Tokenizer.from_buffer(told)
    except Exception as fault:  # noqa: BLE001 - its errors have no class of their own
        raise BadInput(f"{tokenizer_file} is no tokenizer that can be read: {_line(fault)}.") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    try:
        tensors = dict(safetensors.deserialize(content))  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as fault:
        raise BadInput(f"{table_file} is no safetensors file that can be read: {_line(fault)}.") from None
    table = _table(table_file, tensors, max(tokenizer.get_vocab().values(), default=-1) + 1)
    digest = hashlib.sha256()
    for part in (METHOD.encode(), content, told):
        digest.update(hashlib.sha256(part).digest())
    return StaticVectors(f"static-{table.rows.shape[1]}-{digest.hexdigest()[:16]}", tokenizer, table)


def _files(folder: Path) -> tuple[Path, Path]:
    if not folder.is_dir():
        raise BadInput(f"There is no folder {folder}: name one that holds static vectors.")
    tables = sorted(folder.glob("*.safetensors"))
    if len(tables) != 1:
        raise BadInput(
            f"{folder} holds {len(tables)} files *.safetensors: it has to hold one, the table, and a "
            "tokenizer.json."
        )
    tokenizer = folder / "tokenizer.json"
    if not tokenizer.is_file():
        # By another name, where there is no doubt: wordllama's has the name of its model before it.
        others = sorted(folder.glob("*tokenizer*.json"))
        if len(others) != 1:
            raise BadInput(f"{folder} holds no tokenizer.json, which says what token has which row.")
        (tokenizer,) = others
    return tables[0], tokenizer


def _table(file: Path, tensors: dict[str, Any], tokens: int) -> Table:
    """The one table of the file, with the places and weights that model2vec may keep beside it."""
    import numpy as np

    flat = {name for name in ("mapping", "weights") if name in tensors and len(tensors[name]["shape"]) == 1}
    wide = [name for name in tensors if len(tensors[name]["shape"]) == 2]
    if len(wide) != 1 or len(tensors) != len(flat) + 1:
        held = ", ".join(f"{name} {list(tensors[name]['shape'])}" for name in sorted(tensors)) or "nothing"
        raise BadInput(f"{file} has to hold one table of two dimensions and holds {held:.200}.")
    arrays = {name: _array(file, name, tensors[name]) for name in (*wide, *flat)}
    if not arrays[wide[0]].shape[1]:
        raise BadInput(f"{file}: its table has no columns.")
    rows = _whole(file, arrays[wide[0]])
    places = arrays.get("mapping")
    weights = None if "weights" not in arrays else _whole(file, arrays["weights"])
    if places is not None and (
        not np.issubdtype(places.dtype, np.integer)
        or (len(places) and not 0 <= int(places.min()) <= int(places.max()) < len(rows))
    ):
        raise BadInput(f"{file}: its mapping names rows that the table does not have.")
    sized = {"rows": rows if places is None else places, **({} if weights is None else {"weights": weights})}
    for kind, each in sized.items():
        if len(each) < tokens:
            raise BadInput(
                f"{file} has {len(each):,} {kind} and the tokenizer beside it {tokens:,} tokens: the two do "
                "not belong together."
            )
    return Table(rows, places, weights)


def _array(file: Path, name: str, told: Any) -> npt.NDArray[Any]:
    import numpy as np

    kinds = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1"}
    if told["dtype"] not in kinds:
        raise BadInput(
            f"{file} keeps {name} as {told['dtype']}, which is not read here: convert it to F32 or F16."
        )
    return np.frombuffer(told["data"], kinds[told["dtype"]]).reshape(told["shape"])


def _whole(file: Path, numbers: npt.NDArray[Any]) -> Numbers:
    """Numbers as whole steps, each rounded once by itself: 8 and 16 bits stay as they are."""
    import numpy as np

    if numbers.dtype in (np.int8, np.int16):
        return numbers
    most = max(float(numbers.max(initial=0)), -float(numbers.min(initial=0)))
    if not math.isfinite(most) or not most:
        raise BadInput(f"{file} holds numbers that are not finite, or none but 0.")
    steps = np.empty(numbers.shape, np.int16)
    for start in range(0, len(numbers), BLOCK_ROWS):
        block = numbers[start : start + BLOCK_ROWS]
        steps[start : start + BLOCK_ROWS] = np.rint(np.multiply(block, STEPS / most, dtype=np.float64))
    return steps


def _line(fault: Exception) -> str:
    return (str(fault).strip().splitlines() or ["no reason given"])[0].rstrip(".")[:200]

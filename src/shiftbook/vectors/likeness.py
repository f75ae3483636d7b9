"""How alike two vectors are, in arithmetic that comes out the same on every machine.

Vectors are signed bytes. Their products and sums are whole numbers far below 2**53, so that they are exact in
any order; what follows is one division and one square root, which IEEE 754 rounds the same everywhere. A
first look among many takes the signs alone, a bit for each number: an eighth of the bytes, and no arithmetic
but counting. Needs numpy, from the extra `[embeddings]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Kind = TypeVar("Kind", bound=np.generic)


def likeness(vectors: Mapping[int, bytes], asked: bytes) -> dict[int, float]:
    """The cosine of each vector with the asked one, in their order; those of no direction are left out.

    All must be as long as the asked one; `ValueError` where one is not.
    """
    import numpy as np

    if not vectors or not any(asked):
        return {}
    rows = _rows(np.frombuffer(b"".join(vectors.values()), np.int8), len(asked)).astype(np.float64)
    if len(rows) != len(vectors):
        raise ValueError("a vector is not as long as the others")
    wanted = np.frombuffer(asked, np.int8).astype(np.float64)
    lengths = np.einsum("ij,ij->i", rows, rows) * (wanted @ wanted)
    products = rows @ wanted
    return {
        key: float(product / length)
        for key, product, length in zip(vectors, products, np.sqrt(lengths), strict=True)
        if length
    }


def signs_of(vector: bytes) -> bytes:
    """A bit for each number of a vector: whether it is above 0."""
    import numpy as np

    return np.packbits(np.frombuffer(vector, np.int8) > 0).tobytes()


def agreeing(signs: bytes, asked: bytes, limit: int) -> list[int]:
    """The places, from 0 and in order, of the `limit` signs that agree best with those of a vector.

    `signs` are one after another, as `signs_of` makes them; among equals the earlier. `ValueError` where they
    are not of that length.
    """
    import numpy as np

    wanted = np.frombuffer(signs_of(asked), np.uint8)
    differing = _rows(np.frombuffer(signs, np.uint8), len(wanted)) ^ wanted
    # Counted by eight bytes where that comes out even, and sorted by 16 bits: a third of the time.
    counted = np.bitwise_count(differing if len(wanted) % 8 else differing.view(np.uint64))
    apart = counted.sum(axis=1, dtype=np.uint16)
    if len(apart) <= limit:
        return list(range(len(apart)))
    nearest = np.argsort(apart, kind="stable")[:limit]
    return [int(place) for place in np.sort(nearest)]


def _rows(numbers: npt.NDArray[Kind], width: int) -> npt.NDArray[Kind]:
    if not width or len(numbers) % width:
        raise ValueError("vectors of another length")
    return numbers.reshape(-1, width)

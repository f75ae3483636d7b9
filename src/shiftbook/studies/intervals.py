"""How far a share that was counted may be from the true one.

Wilson's score interval (E. B. Wilson, JASA 22, 1927): unlike the normal one it stays between 0 and 1 and
holds for few questions and for shares near the ends.
"""

from __future__ import annotations

import math

Z_95 = 1.959963984540054
"""The normal quantile of a two-sided interval of 95%."""


def wilson(hits: int, of: int, z: float = Z_95) -> tuple[float, float]:
    """The interval of a share of `hits` in `of`; from 0 to 1 when nothing was counted."""
    if of == 0:
        return 0.0, 1.0
    share = hits / of
    middle = share + z * z / (2 * of)
    reach = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    below = 1 + z * z / of
    return max(0.0, (middle - reach) / below), min(1.0, (middle + reach) / below)

"""What holds for every test: no search has a deadline, and a failing search can be repeated.

A deadline would make a busy machine a failing test. `SHIFTBOOK_DEEP=1` searches ten times as deep.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "house",
    deadline=None,
    print_blob=True,
    max_examples=1000 if os.environ.get("SHIFTBOOK_DEEP") else 100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")

"""The crash sweep over the real SDKs: every commit, every piece of a stream, every wait inside a request.

Every eighth death here, another eighth on each wire; `make crash-wires` tries them all.
"""

from __future__ import annotations

import gc

import pytest

from tests.crash.invariants import broken
from tests.crash.wired import Stage, after, deaths, ending, uncrashed
from tests.providers.wires import WIRES, Wire

STEP = 8


@pytest.mark.slow
# What a dead process has left open is collected after its loop is gone.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_a4_b18_die_anywhere_over_an_sdk_and_what_was_paid_for_is_not_asked_again(wire: Wire) -> None:
    stage = Stage(wire)
    with stage.server:
        ground, process, waits = uncrashed(stage)
        assert broken(ground, summary=process.summary, error=process.error) == []
        assert stage.came[stage.key] == [
            (1, 1),
            (2, 1),
            (2, 2),
            (2, 3),
            (3, 1),
            (4, 1),
            (4, 2),
            *((turn, 1) for turn in ending(wire)),
        ]
        seams = {point.seam for point in process.seams.passed}
        assert {"entries.append", "model", "model.piece", "tool.pay", "clock.sleep_ms"} <= seams
        assert waits > 16, "a request waits at least once for its answer, and once for its end"
        tried = 0
        for death in deaths(process, waits)[WIRES.index(wire) :: STEP]:
            violations = after(stage, death, ground)
            if violations is None:
                assert death.waiting, f"{death} was not reached"
                continue
            told = [str(each) for each in violations[:5]]
            assert not violations, f"{wire.name}, {death}: {told}"
            tried += 1
    gc.collect()  # here, where its complaints are expected
    assert tried > 10, tried
    assert [each.refusal for each in stage.server.exchanges if each.refusal is not None] == []

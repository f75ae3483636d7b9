"""A crash seen from the other end: one effect a key where they are honoured, else duplicates."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from shiftbook.testing.crash import Dies
from tests.crash.invariants import broken
from tests.crash.killing import Kill, Place, run_child, violations
from tests.crash.receiver import CHARGES, RECEIVER, Receiver, receiving
from tests.crash.sweep import Ground, Process

EACH_KEY_ONCE = Counter({f"sweep-{call}": 1 for call in ("1.1", "1.2", "1.3", "2.1")})


def swept(receiver: Receiver) -> list[Counter[str]]:
    """What the service did, for a crash at every point of the scenario, each followed by a resume."""

    def case(name: str) -> None:
        RECEIVER.set(f"{receiver.address}/{name}")

    def process(ground: Ground, *deaths: Dies) -> Process:
        return ground.process(*deaths)

    case("calm")
    calm = Ground(CHARGES)
    points = process(calm).seams.passed
    assert receiver.effects("calm") == EACH_KEY_ONCE
    found = []
    for point in points:
        case(f"point-{point.number}")
        ground = Ground(CHARGES)
        assert process(ground, Dies(point.number)).seams.died == point
        before = ground.journal()
        last = process(ground)
        assert broken(ground, summary=last.summary, error=last.error, before=before, same_as=calm) == []
        ground.close()
        found.append(receiver.effects(f"point-{point.number}"))
    calm.close()
    return found


def test_b1_b2_a_service_that_honours_keys_has_one_effect_a_key_at_every_point() -> None:
    with receiving(honours_keys=True) as receiver:
        found = swept(receiver)
    assert len(found) > 50
    assert all(effects == EACH_KEY_ONCE for effects in found)


def test_b2_a_service_that_ignores_keys_has_duplicates_after_a_crash() -> None:
    with receiving(honours_keys=False) as receiver:
        found = swept(receiver)
    doubled = [effects for effects in found if max(effects.values()) > 1]
    assert doubled
    # Never more than the one repetition of what was cut off, and nothing is ever left out.
    assert all(set(effects) == set(EACH_KEY_ONCE) and max(effects.values()) <= 2 for effects in found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kill",
    [
        Kill("tool.charge", "inside", 2),
        Kill("tool.charge", "inside", 3),
        Kill("tool.charge", "after", 2),
        Kill("entries.append", "before", 5),
        Kill("entries.append", "after", 5),
    ],
    ids=str,
)
def test_b1_one_effect_a_key_after_sigkill(tmp_path: Path, kill: Kill) -> None:
    with receiving(honours_keys=True) as receiver:
        place = Place(tmp_path, "in-loop", "charges", f"{receiver.address}/killed")
        assert run_child(place, kill) == "here"
        assert run_child(place, None) == "finished"
        assert receiver.effects("killed") == EACH_KEY_ONCE
        RECEIVER.set(f"{receiver.address}/calm")
        assert violations(place, []) == []


@pytest.mark.slow
def test_b2_sigkill_and_a_service_that_ignores_keys_make_a_duplicate(tmp_path: Path) -> None:
    with receiving(honours_keys=False) as receiver:
        place = Place(tmp_path, "in-loop", "charges", f"{receiver.address}/killed")
        # Both calls of the first group have reached the service when the first of them ends.
        assert run_child(place, Kill("tool.charge", "after", 1)) == "here"
        assert run_child(place, None) == "finished"
        assert max(receiver.effects("killed").values()) == 2

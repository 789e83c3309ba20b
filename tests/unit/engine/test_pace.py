from __future__ import annotations

import pytest

from fleetapp.engine.pace import TARGET_SECONDS, Pace
from fleetapp.engine.pipe import StepRecord
from fleetapp.wire.frames import StageTiming


def step(positions: int, *seconds: float) -> StepRecord:
    """One that took so long at each stage."""
    stages = tuple(StageTiming(0, 0, round(s * 1e6), 0) for s in seconds)
    return StepRecord(1, 1, 0, 0, 0, ("a",), (positions,), stages)


def test_nothing_known_is_the_middle_way() -> None:
    assert Pace().chunk == 128
    assert Pace(most=40).chunk == 40


@pytest.mark.parametrize(("cost", "chunk"), [(0.00001, 256), (0.002, 125), (0.01, 25), (1.0, 16)])
def test_a_piece_takes_about_the_target_on_all_stages_together(cost: float, chunk: int) -> None:
    pace = Pace()
    for _ in range(20):
        pace.learn(step(100, 60 * cost, 40 * cost))
    assert pace.chunk == pytest.approx(chunk, abs=1)
    assert chunk in (256, 16) or chunk * cost <= TARGET_SECONDS


def test_decodes_say_nothing_of_prompts() -> None:
    pace = Pace()
    pace.learn(step(8, 1.0))
    assert pace.chunk == 128


def test_a_chain_that_becomes_slower_gets_smaller_pieces() -> None:
    pace = Pace()
    pace.learn(step(128, 0.1))
    fast = pace.chunk
    for _ in range(10):
        pace.learn(step(128, 1.0))
    assert pace.chunk < fast / 4

from itertools import pairwise

import pytest

from fleetapp.bench import rounds
from fleetapp.bench.prefill import Shown
from fleetapp.bench.rounds import Case, Measured
from fleetapp.bench.workshop import Layers, bounds, by_times
from fleetapp.engine.pipe import StepRecord
from fleetapp.wire.frames import StageTiming


def measured(rate: float) -> Measured:
    return Measured(100, 100 / rate, (0.1,), (0.01, 0.02), ((1,),))


def test_every_case_has_its_turn_in_every_round_and_warm_ups_do_not_count() -> None:
    said: list[tuple[str, int]] = []

    def case(name: str) -> rounds.Case:
        return Case(name, 1)

    def ask(name: str):
        return lambda number: said.append((name, number)) or measured(number + 1.0)

    found = rounds.alternate(
        {case("a"): ask("a"), case("b"): ask("b")}, rounds=2, warmups=1, progress=lambda _: None
    )
    assert said == [("a", 0), ("b", 0), ("b", 1), ("a", 1), ("a", 2), ("b", 2)]
    assert [m.rate for m in found[case("a")]] == pytest.approx([2.0, 3.0])


def test_ratios_are_taken_round_by_round() -> None:
    found = {
        Case("a", 1): [measured(r) for r in (10.0, 200.0, 30.0)],
        Case("b", 1): [measured(r) for r in (10.0, 100.0, 60.0)],
    }
    assert rounds.ratio(found, Case("a", 1), Case("b", 1)) == pytest.approx(1.0)


def test_percentiles_lie_between_neighbours() -> None:
    assert rounds.percentile([1.0, 2.0, 3.0], 50) == 2.0
    assert rounds.percentile([7.0], 95) == 7.0
    assert rounds.percentile([], 50) == 0.0
    assert rounds.percentile([float(i) for i in range(101)], 95) == 95.0


@pytest.mark.parametrize("stages", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("worth", [10.0, 12.5, 40.0])
def test_every_stage_gets_a_layer_and_none_is_lost(stages: int, worth: float) -> None:
    cut = bounds(stages, Layers(10, worth))
    assert cut[0] == 0
    assert cut[-1] == 10
    assert len(cut) == stages + 1
    assert all(a < b for a, b in pairwise(cut))


def test_the_cut_follows_what_the_halves_took() -> None:
    """Ten layers at 1 ms each and a head that costs four layers: cut behind the seventh."""
    halves = (StageTiming(0, 0, 5000, 0), StageTiming(0, 0, 9000, 0))
    record = StepRecord(1, 1, 0, 20_000, 0, ("a",), (1,), halves)
    layers = by_times(Layers(10, 10.0), 5, [record])
    assert layers.worth == pytest.approx(14.0)
    assert bounds(2, layers) == (0, 7, 10)


def test_a_token_that_waits_for_one_chunk_is_late_by_one() -> None:
    shown = Shown(usual=0.02, worst=0.12, chunk=0.1, chunk_tokens=256, first_token=1, alone=0.6)
    assert shown.delay_chunks == pytest.approx(1.0)

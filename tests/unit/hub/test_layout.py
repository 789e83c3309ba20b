"""What members have kept of a division while the hub was away."""

from __future__ import annotations

from fleetapp.fleet.control import StageStatus
from fleetapp.hub.layout import kept_division, unneeded
from fleetapp.hub.stage import Candidate, Deal, Stage, StagePlan
from fleetapp.types import DeviceId, LayerRange


def stage(
    name: str, index: int, start: int, stop: int, count: int = 3, phase: str = "ready"
) -> Stage:
    device = DeviceId(name)
    status = StageStatus(assignment=f"{name}.{index}.{start}", phase=phase)
    return Stage(
        assignment=status.assignment,
        plan=StagePlan(device, name, LayerRange(start, stop), 10 * (stop - start)),
        candidate=Candidate(device, name, "", (), 0, coordinator=False, session=1),
        index=index,
        count=count,
        status=status,
        loaded=status if phase == "ready" else None,
    )


def spans(spares: list[Stage], *, whole: bool = False) -> list[tuple[str, int, int]] | None:
    found = kept_division(spares, 30, whole=whole)
    if found is None:
        return None
    assert [(d.index, d.count) for d in found] == [(i, 3) for i in range(3)]
    return [(d.plan.name, d.plan.layers.start, d.plan.layers.stop) for d in found]


def test_all_of_it() -> None:
    kept = [stage("c", 2, 24, 30), stage("a", 0, 0, 12), stage("b", 1, 12, 24)]
    assert spans(kept, whole=True) == [("a", 0, 12), ("b", 12, 24), ("c", 24, 30)]


def test_the_hub_was_lost_while_it_changed_from_one_division_to_another() -> None:
    old = [stage("b", 1, 12, 24), stage("c", 2, 24, 30)]
    new = [stage("b", 1, 12, 25), stage("c", 2, 25, 30)]
    for kept in (old + new, new + old, [old[0], new[1], old[1]], [new[0], old[1], new[1]]):
        found = spans(kept)
        assert found is not None, "what fits together is found among what does not"
        assert found[0][1:] == (0, 12)
        assert found[1][2] == found[2][1]
        assert spans(kept, whole=True) is None, "the first stage is missing"


def test_a_hole_is_as_wide_as_its_neighbours_leave_it() -> None:
    kept = [stage("a", 0, 0, 12), stage("c", 2, 25, 30)]
    found = kept_division(kept, 30, whole=False)
    assert found is not None
    assert found[1].plan.layers == LayerRange(12, 25)
    assert found[1].plan.weight_bytes == 130, "as wide as what a layer takes elsewhere"


def test_what_does_not_fit_together_is_no_division() -> None:
    assert spans([stage("a", 0, 0, 12), stage("c", 2, 10, 30)]) is None, "less than nothing between"
    assert spans([stage("c", 2, 24, 30)]) is None, "two neighbours are missing"
    assert spans([stage("a", 0, 0, 12), stage("b", 1, 13, 24), stage("c", 2, 24, 30)]) is None
    assert spans([stage("b", 1, 12, 24), stage("c", 2, 24, 29)]) is None, "the end is missing"


def test_the_only_copy_is_kept_until_there_is_another() -> None:
    held = stage("a", 1, 12, 24)
    other = stage("d", 1, 12, 24, phase="loading")
    wish = Deal(other.plan, other.candidate, 1, 3)
    assert unneeded([held], [wish], []) == [], "the other is not begun"
    assert unneeded([held], [], [other]) == [], "the other is being loaded"
    assert unneeded([held], [], [stage("d", 1, 12, 24)]) == [held], "the other is there"
    assert unneeded([held], [], []) == [held], "nobody wants one"


def test_one_of_two_is_enough_and_what_is_not_loaded_is_no_help() -> None:
    held, again = stage("a", 1, 12, 24), stage("b", 1, 12, 24)
    loading = stage("c", 1, 12, 24, phase="loading")
    wish = Deal(held.plan, stage("d", 1, 12, 24).candidate, 1, 3)
    assert unneeded([loading, held, again], [wish], []) == [loading, again]
    assert unneeded([stage("a", 1, 12, 25)], [wish], [])[0].plan.layers == LayerRange(12, 25)

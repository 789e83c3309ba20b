"""When the demo gives up on a node that fails."""

import msgspec
import pytest

from fleetapp.bench.throwaway import Failures
from fleetapp.errors import RunnerFailed
from fleetapp.types import AssignmentView, ChainView, LayerRange

FINE = AssignmentView("d1", "pc-1", "tiny", 0, 2, LayerRange(0, 2), "loading")
FULL = AssignmentView(
    "d2", "pc-2", "tiny", 1, 2, LayerRange(2, 4), "failed", message="The disk is full."
)


def chain(*assignments: AssignmentView) -> ChainView:
    return ChainView("c", "tiny", "fast", 1, "preparing", "", assignments=assignments)


def test_a_node_that_fails_again_ends_the_demo_with_its_reason() -> None:
    failures = Failures()
    failures.look(chain(FINE, FULL))
    failures.look(chain(FINE, FULL))  # the same failure, seen again
    failures.look(chain(FINE))
    with pytest.raises(RunnerFailed, match=r"pc-2 cannot hold its layers: The disk is full\.") as e:
        failures.look(chain(FINE, FULL))
    assert "the demo's files are in" in e.value.remedy


def test_every_node_may_fail_once() -> None:
    failures = Failures()
    for view in (FULL, msgspec.structs.replace(FULL, node="pc-1"), FINE):
        failures.look(chain(view))

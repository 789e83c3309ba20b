"""What the recovery bench disturbs, and how it judges."""

from __future__ import annotations

from collections import Counter

from fleetapp.bench import recovery
from fleetapp.bench.havoc import KINDS
from fleetapp.bench.recovery import PHASES, STAGES, Case, cases
from fleetapp.bench.streams import Read


def test_every_kind_meets_every_phase_and_every_place() -> None:
    found = cases(63, KINDS)
    assert Counter(c.kind for c in found) == dict.fromkeys(KINDS, 9)
    for kind in KINDS:
        mine = [c for c in found if c.kind == kind]
        assert {c.phase for c in mine} == set(PHASES)
        assert {c.place for c in mine} == set(range(STAGES))


def answer(began: float, *times: float) -> Read:
    read = Read(began)
    read.times = list(times)
    return read


def test_the_pause_is_from_the_disturbance_to_the_end_of_the_longest_gap() -> None:
    right = answer(0.0, 1.0, 1.1)
    assert recovery._lost(answer(0.0, 1.0, 1.1, 1.2, 4.2, 4.3), right, 1.15) == 4.2 - 1.15
    assert recovery._lost(answer(0.0, 1.0, 1.1), right, 2.0) == 0.0, "it had ended"


def test_an_answer_that_had_not_begun_is_late_by_what_it_took_longer() -> None:
    late = recovery._lost(answer(10.0, 15.0, 15.1), answer(0.0, 2.0, 2.1), 10.3)
    assert abs(late - 3.0) < 1e-9


def test_what_went_wrong_shows_in_the_checks() -> None:
    good = Case("kill runner", 0, "decode", pauses=[0.5] * 4)
    bad = Case("freeze agent", 1, "decode", pauses=[9.0] * 4, detect=7.0, wrong=1, hangs=1)
    report = recovery.report([good, bad], [True], recovery.Effort(2, 1))
    checks = {c.name: (c.value, c.holds) for c in report.checks}
    assert checks == {
        "kills": (2, True),
        "wrong_tokens": (1, False),
        "hangs": (1, False),
        "p95_pause_s": (9.0, False),
        "detect_s": (7.0, False),
        "evicted_by_a_stall": (1, False),
    }
    fine = recovery.report([good], [], recovery.Effort(1, 0))
    assert all(c.holds for c in fine.checks)

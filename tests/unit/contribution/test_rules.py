"""When this PC works for the fleet: a table of examples, and what must hold for all of them."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.contribution import rules
from fleetapp.contribution.rules import DRAIN_SECONDS, SETTLE_SECONDS, decide
from fleetapp.contribution.snapshot import Pause, Snapshot, Standing
from fleetapp.settings import Settings
from fleetapp.settings.resolve import Layer, resolve
from fleetapp.types import ContributionReason

TUESDAY = dt.datetime(2026, 3, 10, 14, 0, tzinfo=dt.UTC)
WALL = 1_770_000_000.0
GIB = 1 << 30
ALL = frozenset({"CPU", "GPU", "NPU"})


def wishes(**changed: Any) -> Settings:
    return resolve([Layer("user", "your settings", {"contribute": True, **changed})])


def pc(now: float = 1000.0, **changed: Any) -> Snapshot:
    """A laptop nobody has touched for ten minutes, on mains, with room and time."""
    quiet: dict[str, Any] = {
        "settings": wishes(),
        "devices": ALL,
        "idle": 600.0,
        "locked": False,
        "on_ac": True,
        "battery": 80.0,
        "battery_saver": False,
        "metered": False,
        "full_screen": False,
        "temperature": 50.0,
        "throttled": False,
        "memory_free": 8 * GIB,
        "disk_free": 100 * GIB,
        "others_cpu": 3.0,
    }
    clocks = {"wall": WALL + now, "local": TUESDAY + dt.timedelta(seconds=now)}
    return Snapshot(now=now, **{**clocks, **quiet, **changed})  # type: ignore[arg-type]


MANAGED = resolve([Layer("machine policy", "HKLM", {"contribute": False})])
EXAMPLES: list[tuple[ContributionReason, dict[str, Any]]] = [
    ("contributing", {}),
    ("contributing", {"idle": None, "locked": None, "on_ac": None, "metered": None}),
    ("contributing", {"idle": 0.0, "locked": True}),
    ("contributing", {"idle": 0.0, "settings": wishes(contribute_when="always")}),
    ("contributing", {"idle": 0.0, "settings": wishes(idle_minutes=0)}),
    ("contributing", {"idle": 0.0, "settings": wishes(npu_while_active=True)}),
    ("contributing", {"on_ac": False, "settings": wishes(on_battery=True)}),
    ("contributing", {"metered": True, "settings": wishes(on_metered=True)}),
    ("contributing", {"others_cpu": 99.0, "settings": wishes(cpu_limit=100)}),
    ("contributing", {"memory_free": 0, "settings": wishes(memory_reserve_mb=0)}),
    ("contributing", {"temperature": 120.0, "settings": wishes(temperature_limit=0)}),
    ("contributing", {"full_screen": True, "settings": wishes(pause_in_full_screen=False)}),
    ("contributing", {"settings": wishes(schedule_days="tue", schedule_hours="14:00-18:00")}),
    ("contributing", {"pause": Pause(until=WALL)}),
    ("managed", {"settings": MANAGED}),
    ("not_consented", {"settings": Settings()}),
    ("not_consented", {"settings": Settings(), "pause": Pause(), "on_ac": False}),
    ("no_device", {"devices": frozenset({"CPU"}), "settings": wishes(contribute_cpu=False)}),
    ("paused", {"pause": Pause()}),
    ("paused", {"pause": Pause(until=WALL + 2000), "idle": 0.0, "on_ac": False}),
    ("suspending", {"suspending": True}),
    ("outside_schedule", {"settings": wishes(schedule_hours="18:00-08:00")}),
    ("outside_schedule", {"settings": wishes(schedule_days="sat,sun")}),
    ("on_battery", {"on_ac": False}),
    ("battery_saver", {"battery_saver": True}),
    ("battery_low", {"on_ac": False, "battery": 20.0, "settings": wishes(on_battery=True)}),
    ("metered", {"metered": True}),
    ("full_screen", {"full_screen": True}),
    ("exclusive_app", {"programs": frozenset({"blender"}),
                       "settings": wishes(exclusive_apps="CAD.exe, Blender")}),
    ("hot", {"temperature": 97.0}),
    ("hot", {"throttled": True}),
    ("memory_low", {"memory_free": GIB // 2}),
    ("disk_low", {"disk_free": GIB // 2}),
    ("cpu_busy", {"others_cpu": 40.0}),
    ("user_active", {"idle": 299.0}),
    ("user_active", {"idle": 1.0, "others_cpu": 20.0}),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "changed"), EXAMPLES)
def test_examples(reason: ContributionReason, changed: dict[str, Any]) -> None:
    decision = decide(pc(**changed)).decision
    assert decision.reason == reason
    assert decision.contribute == (reason == "contributing")
    assert bool(decision.devices) == decision.contribute
    assert decision.sentence.endswith(".")


def test_every_reason_can_be_reached_and_has_its_own_sentence() -> None:
    finish = Pause(finish_first=True)
    busy = decide(pc(work=1))
    draining = decide(pc(1001, work=1, pause=finish), busy).decision
    reached = {reason for reason, _ in EXAMPLES} | {draining.reason}
    assert reached == set(get_args(ContributionReason))
    said = {decide(pc(**changed)).decision.sentence for reason, changed in EXAMPLES}
    assert len(said | {draining.sentence}) >= len(reached)


def test_only_the_neural_processor_is_lent_while_somebody_works() -> None:
    settings = wishes(npu_while_active=True)
    assert decide(pc(settings=settings)).decision.devices == ALL
    assert decide(pc(settings=settings, idle=3.0)).decision.devices == {"NPU"}
    only_cpu = pc(settings=settings, idle=3.0, devices=frozenset({"CPU"}))
    assert decide(only_cpu).decision.reason == "user_active"


@pytest.mark.parametrize(
    ("minutes", "said"),
    [
        (30, "Paused until 14:46."),
        (12 * 60, "Paused until tomorrow 02:16."),
        (3 * 24 * 60, "Paused until Friday 14:16."),
        (30 * 24 * 60, "Paused until 2026-04-09."),
        (None, "Paused until you resume."),
    ],
)
def test_a_pause_says_when_it_ends(minutes: int | None, said: str) -> None:
    until = None if minutes is None else WALL + 1000 + minutes * 60
    decision = decide(pc(pause=Pause(until))).decision
    assert (decision.sentence, decision.until) == (said, until)


def test_the_schedule_says_when_it_opens() -> None:
    decision = decide(pc(settings=wishes(schedule_hours="18:00-08:00"))).decision
    assert decision.sentence == "Paused by the schedule until 18:00."
    assert decision.until == WALL + 4 * 3600


# ---------------------------------------------------------------------- one change a minute


def follow(*snapshots: Snapshot) -> list[Standing]:
    found: list[Standing] = []
    for snapshot in snapshots:
        found.append(decide(snapshot, found[-1] if found else None))
    return found


def test_others_swinging_by_two_percent_around_the_limit_change_nothing() -> None:
    """Trap T30."""
    loads = [pc(1000.0 + i, others_cpu=24.0 if i % 2 else 26.0) for i in range(600)]
    answers = [s.decision.contribute for s in follow(pc(900.0), *loads)]
    assert answers == [True] + [False] * 600


def test_a_load_that_swings_wildly_changes_it_once_a_minute() -> None:
    loads = [pc(1000.0 + i, others_cpu=0.0 if i % 2 else 90.0) for i in range(600)]
    answers = [s.decision.contribute for s in follow(pc(900.0), *loads)]
    changes = sum(a != b for a, b in itertools.pairwise(answers))
    assert 5 <= changes <= 10


def test_coming_back_acts_at_once_and_leaving_does_not_flap() -> None:
    steps = follow(
        pc(1000),
        pc(1001, idle=0.2),
        pc(1002, idle=0.0, locked=True),
        pc(1062, idle=61.0, locked=True),
        pc(1063, idle=0.1),
    )
    assert [s.decision.contribute for s in steps] == [True, False, False, True, False]
    assert [s.decision.reason for s in steps][1:3] == ["user_active", "user_active"]


def test_pause_and_resume_act_at_once() -> None:
    steps = follow(pc(1000), pc(1001, pause=Pause()), pc(1002), pc(1003, settings=Settings()),
                   pc(1004))  # fmt: skip
    assert [s.decision.contribute for s in steps] == [True, False, True, False, True]


def test_a_changed_setting_acts_at_once_in_both_directions() -> None:
    closed, loose = wishes(schedule_days="wed"), wishes(cpu_limit=90)
    steps = follow(pc(1000), pc(1001, settings=closed), pc(1002), pc(1003, others_cpu=50.0),
                   pc(1004, others_cpu=50.0, settings=loose))  # fmt: skip
    assert [s.decision.contribute for s in steps] == [True, False, True, True, True]
    busy = follow(pc(1000, others_cpu=50.0), pc(1001, others_cpu=50.0, settings=loose))
    assert [s.decision.contribute for s in busy] == [False, True]


def test_a_threshold_waits_after_the_pc_has_just_begun() -> None:
    steps = follow(pc(1000), pc(1010, others_cpu=90.0), pc(1059, others_cpu=90.0),
                   pc(1060, others_cpu=90.0))  # fmt: skip
    assert [s.decision.contribute for s in steps] == [True, True, True, False]


def test_memory_is_enough_again_only_when_what_we_held_would_fit() -> None:
    """Else our own leaving would look like room for us, and we would come and go for ever."""
    held = 4 * GIB
    steps = follow(
        pc(1000, memory_free=3 * GIB, memory_own=held),
        pc(1100, memory_free=GIB // 2, memory_own=held),
        pc(1200, memory_free=GIB // 2 + held),
        pc(1300, memory_free=int(1.5 * GIB) + held),
    )
    reasons = [s.decision.reason for s in steps]
    assert reasons == ["contributing", "memory_low", "memory_low", "contributing"]


def test_heat_must_fall_by_ten_degrees() -> None:
    heat = [50.0, 96.0, 90.0, 86.0, 84.0]
    steps = follow(*(pc(1000 + 100.0 * i, temperature=t) for i, t in enumerate(heat)))
    assert [s.decision.contribute for s in steps] == [True, False, False, False, True]


# ---------------------------------------------------------------------- finish, then pause


def test_finish_then_pause_goes_on_until_nothing_is_held() -> None:
    finish = Pause(until=WALL + 9000, finish_first=True)
    steps = follow(
        pc(1000, work=2), pc(1001, work=2, pause=finish), pc(1100, work=1, pause=finish),
        pc(1200, work=0, pause=finish), pc(1201, work=1, pause=finish),
    )  # fmt: skip
    reasons = [s.decision.reason for s in steps]
    assert reasons == ["contributing", "draining", "draining", "paused", "paused"]
    assert [s.decision.draining for s in steps] == [False, True, True, False, False]


def test_finishing_ends_after_ten_minutes_or_when_the_user_comes_back() -> None:
    finish = Pause(finish_first=True)
    begun = follow(pc(1000, work=1), pc(1001, work=1, pause=finish))[-1]
    late = decide(pc(1001 + DRAIN_SECONDS, work=1, pause=finish), begun)
    assert late.decision.reason == "paused"
    assert decide(pc(1002, work=1, pause=finish, idle=0.0), begun).decision.reason == "paused"


def test_a_pc_that_does_nothing_pauses_at_once() -> None:
    finish = Pause(finish_first=True)
    assert follow(pc(1000), pc(1001, pause=finish))[-1].decision.reason == "paused"
    busy = follow(pc(1000, work=1, idle=0.0), pc(1001, work=1, idle=0.0, pause=finish))
    assert busy[-1].decision.reason == "paused"


# ---------------------------------------------------------------------- what always holds

maybe = st.none() | st.booleans()
facts = st.fixed_dictionaries(
    {
        "idle": st.none() | st.floats(0, 1000),
        "locked": maybe,
        "on_ac": maybe,
        "battery": st.none() | st.floats(0, 100),
        "battery_saver": maybe,
        "metered": maybe,
        "full_screen": maybe,
        "temperature": st.none() | st.floats(20, 110),
        "throttled": maybe,
        "memory_free": st.none() | st.integers(0, 16 * GIB),
        "memory_own": st.integers(0, 8 * GIB),
        "disk_free": st.none() | st.integers(0, 8 * GIB),
        "others_cpu": st.none() | st.floats(0, 100),
        "work": st.integers(0, 2),
        "suspending": st.booleans(),
        "programs": st.just(frozenset()) | st.just(frozenset({"blender"})),
        "pause": st.none() | st.just(Pause()) | st.just(Pause(finish_first=True)),
        "settings": st.sampled_from([
            wishes(), Settings(), MANAGED, wishes(on_battery=True, exclusive_apps="blender"),
            wishes(npu_while_active=True), wishes(contribute_when="always", cpu_limit=100),
        ]),
    }
)  # fmt: skip
days = st.lists(st.tuples(st.floats(0.5, 90), facts), min_size=1, max_size=25)


def play(day: list[tuple[float, dict[str, Any]]]) -> list[tuple[Snapshot, Standing]]:
    now, found = 1000.0, []
    before: Standing | None = None
    for seconds, fields in day:
        now += seconds
        snapshot = pc(now, **fields)
        before = decide(snapshot, before)
        found.append((snapshot, before))
    return found


@given(days)
def test_consent_pauses_and_people_are_always_respected(
    day: list[tuple[float, dict[str, Any]]],
) -> None:
    for snapshot, standing in play(day):
        decision = standing.decision
        assert decision.contribute == (decision.reason in ("contributing", "draining"))
        assert decision.contribute == bool(decision.devices)
        assert decision.devices <= snapshot.devices
        if decision.contribute:
            settings = snapshot.settings
            assert settings.contribute
            assert snapshot.pause is None or decision.draining
            assert not snapshot.suspending
            assert snapshot.on_ac is not False or settings.on_battery
            assert snapshot.metered is not True
            somebody = snapshot.idle is not None and snapshot.idle < 300 and not snapshot.locked
            if somebody and settings.contribute_when == "idle":
                assert decision.devices <= {"NPU"}


@given(days)
def test_thresholds_change_it_at_most_once_a_minute(
    day: list[tuple[float, dict[str, Any]]],
) -> None:
    played = play(day)
    last = played[0][0].now
    for (_, was), (snapshot, standing) in itertools.pairwise(played):
        if was.decision.contribute == standing.decision.contribute:
            continue
        threshold = {was.decision.reason, standing.decision.reason} & rules.THRESHOLDS
        assert not threshold or snapshot.now - last >= SETTLE_SECONDS
        last = snapshot.now


@given(days)
def test_the_same_again_decides_the_same(day: list[tuple[float, dict[str, Any]]]) -> None:
    for snapshot, standing in play(day):
        assert decide(snapshot, standing).decision == standing.decision

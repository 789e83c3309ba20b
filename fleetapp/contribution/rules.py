"""When this PC works for the fleet. Pure: a snapshot and what was decided before -> a decision.

Every threshold has two sides: it is passed at one value and left at another, and in between the
answer stays what it was. Besides, yes and no change at most once a minute because of thresholds
(BOINC#5310: work flapping around one limit). What people do themselves acts at once: coming back,
pausing, resuming, giving or taking back consent, pulling the plug.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Final

from fleetapp.contribution.snapshot import Decision, Snapshot, Standing
from fleetapp.settings import Settings
from fleetapp.settings.schedule import Schedule
from fleetapp.types import ContributionReason, DeviceClass

SETTLE_SECONDS: Final = 60.0
"""Shortest time between two changes that nobody has asked for."""
DRAIN_SECONDS: Final = 600.0
"""Longest time that finishing what runs may take before a pause."""
THRESHOLDS: Final[frozenset[ContributionReason]] = frozenset(
    {"battery_low", "hot", "memory_low", "disk_low", "cpu_busy"}
)
BY_PEOPLE: Final[frozenset[ContributionReason]] = frozenset(
    {"managed", "not_consented", "no_device", "paused"}
)
"""Reasons that only people make and end: contributing again need not wait."""

_BACK_BELOW: Final = 0.6
"""Share of the processor limit at which others leave enough again."""
_RESERVE_BACK: Final = 1.5
"""So many times the reserve must be free before memory or disk count as enough again."""
_COOLER: Final = 10.0
_FULLER: Final = 10.0
_MIB: Final = 1 << 20


def decide(now: Snapshot, before: Standing | None = None) -> Standing:
    """What holds now, given what held before (None: nothing is known yet)."""
    over, needed = _thresholds(now, before)
    wish, drains = _wish(now, before, over)
    drain_since = None
    if drains:
        drain_since = before.drain_since if before else None
        drain_since = now.now if drain_since is None else drain_since
    decision, since = _settle(now, wish, before)
    return Standing(decision, since, over, needed, drain_since, now.settings)


def _settle(snapshot: Snapshot, wish: Decision, before: Standing | None) -> tuple[Decision, float]:
    """The wish, unless it would be a second change within a minute that nobody has asked for."""
    now = snapshot.now
    if before is None:
        return wish, now
    if wish.contribute == before.decision.contribute:
        return wish, before.since
    at_once = (
        before.decision.reason in BY_PEOPLE if wish.contribute else wish.reason not in THRESHOLDS
    )
    asked = before.settings is not None and before.settings != snapshot.settings
    if at_once or asked or now - before.since >= SETTLE_SECONDS:
        return wish, now
    return before.decision, before.since


def _wish(
    now: Snapshot, before: Standing | None, over: frozenset[ContributionReason]
) -> tuple[Decision, bool]:
    """What would be decided if changes cost nothing; and whether it is a finish before a pause."""
    settings = now.settings
    ticked = frozenset(d for d in now.devices if _ticked(d, settings))
    lent = frozenset(d for d in ticked if _idle_enough(d, now))
    circumstance = _circumstance(now, over) or (None if lent else "user_active")
    drains = False
    reason: ContributionReason
    if not settings.contribute:
        locked = settings.origin("contribute").source in ("user policy", "machine policy")
        reason = "managed" if locked else "not_consented"
    elif not ticked:
        reason = "no_device"
    elif now.pause is not None and now.pause.holds(now.wall):
        drains = circumstance is None and _still_finishing(now, before)
        reason = "draining" if drains else "paused"
    else:
        reason = circumstance or "contributing"
    yes = reason in ("contributing", "draining")
    until = _until(reason, now)
    return (
        Decision(yes, lent if yes else frozenset(), reason, _SENTENCES[reason](now, until), until),
        drains,
    )


def _still_finishing(now: Snapshot, before: Standing | None) -> bool:
    if now.pause is None or not now.pause.finish_first or not now.work or before is None:
        return False
    if not before.decision.contribute:
        return False
    return before.drain_since is None or now.now - before.drain_since < DRAIN_SECONDS


def _circumstance(now: Snapshot, over: frozenset[ContributionReason]) -> ContributionReason | None:
    """The first thing about this PC, its user aside, that speaks against contributing."""
    settings = now.settings
    exclusive = {p.lower() for p in settings.exclusive_apps.split(",") if p}
    schedule = Schedule.of(settings.schedule_days, settings.schedule_hours)
    facts: tuple[tuple[ContributionReason, bool], ...] = (
        ("suspending", now.suspending),
        ("outside_schedule", not schedule.is_open(now.local)),
        ("on_battery", now.on_ac is False and not settings.on_battery),
        ("battery_saver", now.battery_saver is True and not settings.on_battery),
        ("battery_low", "battery_low" in over),
        ("metered", now.metered is True and not settings.on_metered),
        ("full_screen", now.full_screen is True and settings.pause_in_full_screen),
        ("exclusive_app", not exclusive.isdisjoint(now.programs)),
        ("hot", "hot" in over),
        ("memory_low", "memory_low" in over),
        ("disk_low", "disk_low" in over),
        ("cpu_busy", "cpu_busy" in over),
    )
    return next((reason for reason, holds in facts if holds), None)


def _ticked(device: DeviceClass, settings: Settings) -> bool:
    return {
        "CPU": settings.contribute_cpu,
        "GPU": settings.contribute_gpu,
        "NPU": settings.contribute_npu,
    }[device]


def _idle_enough(device: DeviceClass, now: Snapshot) -> bool:
    """A PC without a session (a server) has nobody to disturb."""
    settings = now.settings
    if settings.contribute_when == "always" or (device == "NPU" and settings.npu_while_active):
        return True
    return now.locked is True or now.idle is None or now.idle >= settings.idle_minutes * 60


def _thresholds(
    now: Snapshot, before: Standing | None
) -> tuple[frozenset[ContributionReason], int]:
    """Which are passed, and how much memory must be free before that one is left."""
    settings, was = now.settings, before.over if before else frozenset()
    over: set[ContributionReason] = set()

    def look(name: ContributionReason, passed: bool, left: bool) -> None:
        if passed or (name in was and not left):
            over.add(name)

    if now.others_cpu is not None and settings.cpu_limit < 100:
        limit = settings.cpu_limit
        look("cpu_busy", now.others_cpu > limit, now.others_cpu <= limit * _BACK_BELOW)
    if now.battery is not None and now.on_ac is False:
        floor = settings.battery_floor
        enough = min(floor + _FULLER, 100.0)
        look("battery_low", now.battery < floor, now.battery >= enough)
    if settings.temperature_limit and (now.temperature is not None or now.throttled is not None):
        heat = -1.0 if now.temperature is None else now.temperature
        limit, slow = settings.temperature_limit, now.throttled is True
        look("hot", slow or heat >= limit, not slow and heat <= limit - _COOLER)
    if now.disk_free is not None and settings.disk_reserve_mb:
        reserve = settings.disk_reserve_mb * _MIB
        look("disk_low", now.disk_free < reserve, now.disk_free >= reserve * _RESERVE_BACK)
    needed = before.memory_needed if before else 0
    if now.memory_free is not None and settings.memory_reserve_mb:
        reserve = settings.memory_reserve_mb * _MIB
        if now.memory_free < reserve and "memory_low" not in was:
            # With less, what we held then would not fit beside the reserve any better.
            needed = int(now.memory_own + reserve * _RESERVE_BACK)
        back = now.memory_free >= reserve and now.memory_free + now.memory_own >= needed
        look("memory_low", now.memory_free < reserve, back)
    return frozenset(over), needed if "memory_low" in over else 0


def _until(reason: ContributionReason, now: Snapshot) -> float | None:
    if reason in ("paused", "draining") and now.pause is not None:
        return now.pause.until
    if reason == "outside_schedule":
        schedule = Schedule.of(now.settings.schedule_days, now.settings.schedule_hours)
        start = schedule.next_start(now.local)
        # to the second, or it would be another value at each look
        return float(round(now.wall + (start - now.local).total_seconds()))
    return None


def _when(now: Snapshot, until: float | None) -> str:
    """As " until 14:30", with the day if it is another one; nothing if it is open."""
    if until is None:
        return ""
    then = now.local + dt.timedelta(seconds=until - now.wall)
    days = (then.date() - now.local.date()).days
    clock = f"{then:%H:%M}"
    if days == 0:
        return f" until {clock}"
    if days == 1:
        return f" until tomorrow {clock}"
    return f" until {_DAYS[then.weekday()]} {clock}" if days < 7 else f" until {then:%Y-%m-%d}"


_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_Sentence = Callable[[Snapshot, float | None], str]


def _says(text: str) -> _Sentence:
    return lambda _now, _until: text


_SENTENCES: Final[dict[ContributionReason, _Sentence]] = {
    "contributing": _says("This PC works for the fleet when it is asked to."),
    "draining": lambda now, until: f"Finishing running answers, then pausing{_when(now, until)}.",
    "managed": lambda now, _: (
        f"Contributing is switched off by {now.settings.origin('contribute').where}."
    ),
    "not_consented": _says("This PC does not contribute."),
    "no_device": _says("No device of this PC is lent to the fleet."),
    "paused": lambda now, until: f"Paused{_when(now, until) or ' until you resume'}.",
    "suspending": _says("This PC goes to sleep."),
    "outside_schedule": lambda now, until: f"Paused by the schedule{_when(now, until)}.",
    "on_battery": _says("Paused on battery."),
    "battery_saver": _says("Paused while this PC saves power."),
    "battery_low": lambda now, _: f"Paused below {now.settings.battery_floor}% of charge.",
    "metered": _says("Paused on a metered network."),
    "full_screen": _says("Paused while a program fills the screen."),
    "exclusive_app": lambda now, _: f"Paused while {_running(now)} runs.",
    "hot": _says("Paused because the processor is hot."),
    "memory_low": _says("Paused because memory is short."),
    "disk_low": _says("Paused because the disk is nearly full."),
    "cpu_busy": lambda now, _: (
        f"Paused while other programs use more than {now.settings.cpu_limit}% of the processor."
    ),
    "user_active": _says("Paused while somebody uses this PC."),
}


def _running(now: Snapshot) -> str:
    listed = [p for p in now.settings.exclusive_apps.split(",") if p.lower() in now.programs]
    return listed[0] if listed else "an exclusive program"

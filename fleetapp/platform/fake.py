"""A platform whose answers are fields: for tests and for simulated nodes. Files are real."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fleetapp.errors import ManagedByPolicy
from fleetapp.platform.base import Policy, PolicyScope
from fleetapp.platform.files import storage_error, write_atomic
from fleetapp.platform.network import Address
from fleetapp.platform.sensing import Heat, Power, Presence, Usage
from fleetapp.platform.startup import Startup

_GIB = 1 << 30


@dataclass
class FakeSensors:
    """See :class:`fleetapp.platform.sensing.Sensors`; a quiet server, until fields are set."""

    idle: float | None = None
    locked: bool | None = None
    supply: Power = field(default_factory=Power)
    is_metered: bool | None = None
    fills_screen: bool | None = None
    warmth: Heat = field(default_factory=Heat)
    others_cpu: float | None = None
    own_memory: int = 0
    running: frozenset[str] = frozenset()
    asleep_seconds: float = 0.0
    closed: bool = False
    going: Callable[[bool], None] | None = None
    """Who wants to hear of sleep."""

    def presence(self) -> Presence:
        return Presence(self.idle, self.locked)

    def power(self) -> Power:
        return self.supply

    def metered(self) -> bool | None:
        return self.is_metered

    def full_screen(self) -> bool | None:
        return self.fills_screen

    def heat(self) -> Heat:
        return self.warmth

    def usage(self) -> Usage:
        return Usage(self.others_cpu, self.own_memory)

    def programs(self) -> frozenset[str]:
        return self.running

    def slept(self) -> float:
        return self.asleep_seconds

    def watch_sleep(self, going: Callable[[bool], None]) -> None:
        self.going = going

    def close(self) -> None:
        self.closed = True


@dataclass
class FakePlatform:
    """See :class:`fleetapp.platform.base.Platform`; bytes for memory and disk."""

    total: int = 16 * _GIB
    free: int = 8 * _GIB
    disk: int = 100 * _GIB
    cpu: str = "Fake CPU"
    core_count: int = 4
    address_list: tuple[Address, ...] = ()
    policies: dict[PolicyScope, dict[str, object]] = field(default_factory=dict)
    lowered: bool = False
    sensor: FakeSensors = field(default_factory=FakeSensors)
    name: str = "fake"
    facts: tuple[str, ...] = ("fake",)
    starts: Startup = field(default_factory=lambda: Startup(False, "fake startup folder"))
    start_command: tuple[str, ...] = ()

    def memory_total(self) -> int:
        return self.total

    def memory_free(self) -> int:
        return self.free

    def disk_free(self, path: Path) -> int:  # noqa: ARG002  (one disk for everything)
        return self.disk

    def cpu_name(self) -> str:
        return self.cpu

    def cores(self) -> int:
        return self.core_count

    def machine_facts(self) -> tuple[str, ...]:
        return self.facts

    def addresses(self, *, loopback: bool = False) -> tuple[Address, ...]:
        return tuple(a for a in self.address_list if loopback or a.kind != "loopback")

    def make_private_dir(self, path: Path) -> None:
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as exc:
            raise storage_error(exc, path) from exc

    def write_private(self, path: Path, data: bytes) -> None:
        write_atomic(path, data, mode=0o600)

    def lower_priority(self) -> None:
        self.lowered = True

    def runner_environment(self, base: Mapping[str, str]) -> dict[str, str]:
        return dict(base)

    def sensors(self) -> FakeSensors:
        return self.sensor

    def startup(self) -> Startup:
        return self.starts

    def set_startup(self, on: bool, command: Sequence[str]) -> None:
        if self.starts.for_all:
            raise ManagedByPolicy("This app starts for all users.")
        self.starts = replace(self.starts, on=on)
        self.start_command = tuple(command) if on else ()

    def policy(self, scope: PolicyScope) -> Policy:
        return Policy(f"fake {scope} policy", dict(self.policies.get(scope, {})))

"""A platform whose answers are fields: for tests and for simulated nodes. Files are real."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fleetapp.platform.base import Policy, PolicyScope
from fleetapp.platform.files import storage_error, write_atomic
from fleetapp.platform.network import Address

_GIB = 1 << 30


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
    name: str = "fake"
    facts: tuple[str, ...] = ("fake",)

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

    def policy(self, scope: PolicyScope) -> Policy:
        return Policy(f"fake {scope} policy", dict(self.policies.get(scope, {})))

"""What the first run asks of an agent: hardware, checks, settings, pauses, a model to start."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import msgspec

from fleetapp.errors import ManagedByPolicy, NotFound
from fleetapp.settings import Settings
from fleetapp.settings.schema import SCHEMA, Origin
from fleetapp.settings.view import settings_view
from fleetapp.types import (
    AssignmentView,
    ChainView,
    DeviceView,
    Finding,
    FleetView,
    HardwareView,
    LayerRange,
    SettingsView,
)

GB = 1_000_000_000
DEVICES = (
    DeviceView("CPU", "Intel(R) Core(TM) Ultra 7 155U", "CPU", for_stages=True),
    DeviceView("GPU", "Intel(R) Graphics (iGPU)", "GPU", 8 * GB, for_stages=True),
    DeviceView("NPU", "Intel(R) AI Boost", "NPU"),
)
GOOD = (
    Finding("Discovery", "ok", "mDNS finds 3 other PCs, 1 of them coordinators.", key="discovery"),
    Finding("Inbound", "ok", "This PC answers at 192.0.2.12.", key="inbound"),
    Finding("VPN", "ok", "None is on.", key="vpn"),
    Finding("Clock", "ok", "2026-11-30 08:00 UTC.", key="clock"),
)
BAD = (
    Finding(
        "Discovery",
        "warn",
        "mDNS finds 0 other PCs, 0 of them coordinators. A firewall on this PC seems to block "
        "multicast DNS (UDP port 5353).",
        "Allow fleetapp in the firewall, for UDP port 5353 in both directions.",
        "discovery",
    ),
    Finding(
        "Inbound",
        "fail",
        "This PC cannot be called by others. Not at 192.0.2.12: nothing came through within two "
        "seconds.",
        "Allow fleetapp in this PC's firewall, for incoming TCP connections.",
        "inbound",
    ),
    Finding("VPN", "ok", "One is on (wg0), and the office's network is there as well.", key="vpn"),
    Finding(
        "Clock",
        "fail",
        "It says 2001-01-01 00:00 UTC, which is before this version was made.",
        "Set the date and time of this PC: certificates would look not yet valid.",
        "clock",
    ),
)


def hardware(**changes: Any) -> HardwareView:
    """A laptop of today, with ``changes``."""
    fields: dict[str, Any] = {
        "cpu": "Intel(R) Core(TM) Ultra 7 155U",
        "cores": 14,
        "memory_total": 32 * GB,
        "memory_free": 19 * GB,
        "memory_for_models": 12 * GB,
        "memory_held": 400_000_000,
        "disk_free": 210 * GB,
        "billion_parameters": 16.0,
        "devices": DEVICES,
        "runtime": "2026.4.1",
    }
    return HardwareView(**(fields | changes))


class FakePc:
    """Settings are the real schema's; whatever a test puts into ``policy`` is locked."""

    def __init__(self) -> None:
        self.hardware = hardware()
        self.findings: tuple[Finding, ...] = GOOD
        self.values: dict[str, object] = {}
        self.policy: dict[str, object] = {}
        self.chains: tuple[ChainView, ...] = ()

    def settings(self) -> SettingsView:
        origins = dict.fromkeys(self.values, Origin("user", "your settings"))
        origins |= dict.fromkeys(self.policy, Origin("machine policy", "Contoso IT"))
        values: dict[str, Any] = {**self.values, **self.policy}
        return settings_view(Settings(**values, origins=MappingProxyType(origins)))

    def answer(self, method: str, path: str, body: Any) -> object:
        """What the agent would."""
        match method, path.partition("?")[0]:
            case "GET", "/local/v1/hardware":
                return self.hardware
            case "GET", "/local/v1/checks":
                return self.findings
            case "GET", "/local/v1/settings":
                return self.settings()
            case "POST", "/local/v1/settings":
                name = str(body["name"])
                if name in self.policy:
                    raise ManagedByPolicy(f"The setting {name} is managed by Contoso IT.")
                self.values[name] = SCHEMA[name].accept(body["value"])
                return {}
            case "POST", "/local/v1/pause" | "/local/v1/resume" | "/local/v1/lend":
                return {}
            case "POST", "/local/v1/fleet/join/stop":
                return {}
            case "GET", "/local/v1/fleet":
                return FleetView("fleetfleetfleet", "Only this PC", (), self.chains)
            case "POST", "/local/v1/models/start":
                self.chains = (chain(str(body["model"]), "preparing"),)
                return self.chains[0]
        raise NotFound(f"There is nothing at {method} {path}.")

    def go_live(self) -> None:
        """The model has started."""
        self.chains = tuple(msgspec.structs.replace(c, state="live") for c in self.chains)


def chain(model: str, state: Any, **shard: Any) -> ChainView:
    """One PC with all layers."""
    fields: dict[str, Any] = {"phase": "compiling", "done": 0, "total": 0}
    held = AssignmentView(
        "abcdefghij2345", "DESK-12", model, 0, 1, LayerRange(0, 30), **(fields | shard)
    )
    return ChainView("c1", model, "fast", 1, state, "Preparing.", assignments=(held,))

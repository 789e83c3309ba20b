"""Every setting once: kind, default, limits, and the words that explain it.

Windows, command line, policy templates and docs/settings.md are made from this. The idea of one
declaration that the rest is derived from is qutebrowser's ``configdata``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from fleetapp.settings import kinds
from fleetapp.settings.declare import (
    METADATA,
    SECTIONS,
    Explained,
    Origin,
    Section,
    Setting,
    Source,
)
from fleetapp.settings.declare import setting as _setting
from fleetapp.types import Precision

__all__ = ["SCHEMA", "SECTIONS", "Explained", "Origin", "Section", "Setting", "Settings", "Source"]

When = Literal["idle", "always"]


@dataclass(frozen=True)
class Settings:
    """All settings, typed, with where each one came from."""

    contribute: bool = _setting(
        "contributing", False, kinds.SWITCH,
        "Contribute idle AI time", "Let the fleet use this PC when it is idle.",
    )  # fmt: skip
    contribute_when: When = _setting(  # noqa: RUF009  (makes a dataclass field)
        "contributing", "idle",
        kinds.choice(idle="While nobody uses this PC", always="Also while somebody does"),
        "When", "When the fleet may use this PC.",
    )  # fmt: skip
    idle_minutes: int = _setting(
        "contributing", 5, kinds.number(0, 1440, "min"),
        "Counts as idle after", "Minutes without a key or a mouse until this PC counts as idle.",
        "at once",
    )  # fmt: skip
    pause_in_full_screen: bool = _setting(
        "contributing", True, kinds.SWITCH,
        "Pause in full screen", "Pause while a program fills the screen or a presentation runs.",
    )  # fmt: skip
    exclusive_apps: str = _setting(
        "contributing", "", kinds.PROGRAMS,
        "Pause while these run", "Programs during which this PC pauses, separated by commas.",
        "none",
    )  # fmt: skip
    allow_pause: bool = _setting(
        "contributing", True, kinds.SWITCH,
        "The user may pause", "Whether people at this PC may pause it; for policies.",
        policy_only=True,
    )  # fmt: skip
    first_run: bool = _setting(
        "contributing", True, kinds.SWITCH,
        "Ask at the first start",
        "Whether the desktop app asks at its first start what this PC is for; for policies.",
        policy_only=True,
    )  # fmt: skip
    release_after: int = _setting(
        "contributing", 30, kinds.number(0, 3600, "s"),
        "Give memory back after", "Seconds that shards stay in memory after this PC has paused.",
        "at once",
    )  # fmt: skip
    on_battery: bool = _setting(
        "power", False, kinds.SWITCH,
        "Contribute on battery", "Contribute on battery and in power-saving mode too.",
    )  # fmt: skip
    battery_floor: int = _setting(
        "power", 50, kinds.PERCENT,
        "Least charge", "Percent of charge below which this PC never contributes on battery.",
    )  # fmt: skip
    on_metered: bool = _setting(
        "power", False, kinds.SWITCH,
        "Contribute on metered networks", "Contribute over a metered network too.",
    )  # fmt: skip
    schedule_days: str = _setting(
        "schedule", "", kinds.DAYS,
        "Days", "Days on which this PC may contribute.", "every day",
    )  # fmt: skip
    schedule_hours: str = _setting(
        "schedule", "", kinds.HOURS,
        "Hours", "Hours in which it may. A range that ends before it begins runs over midnight.",
        "all day",
    )  # fmt: skip
    cpu_limit: int = _setting(
        "limits", 25, kinds.PERCENT,
        "Pause when others need the processor", "Percent of the processor that other programs may "
        "use before this PC pauses; 100 never pauses.",
    )  # fmt: skip
    temperature_limit: int = _setting(
        "limits", 95, kinds.number(0, 150, "°C"),
        "Pause when hot", "Degrees Celsius of the processor at which this PC pauses.", "never",
    )  # fmt: skip
    memory_limit_mb: int = _setting(
        "limits", 0, kinds.count("MiB"),
        "Memory for the fleet", "Memory that the fleet may use on this PC at most.",
        "what is free",
    )  # fmt: skip
    memory_reserve_mb: int = _setting(
        "limits", 1024, kinds.count("MiB"),
        "Memory that stays free", "With less free memory this PC pauses.", "no matter",
    )  # fmt: skip
    disk_limit_mb: int = _setting(
        "limits", 0, kinds.count("MiB"),
        "Disk for the fleet", "Disk that shards may use on this PC at most.", "what is free",
    )  # fmt: skip
    disk_reserve_mb: int = _setting(
        "limits", 1024, kinds.count("MiB"),
        "Disk that stays free", "With less free disk this PC pauses.", "no matter",
    )  # fmt: skip
    download_limit_mbit: int = _setting(
        "limits", 0, kinds.count("Mbit/s"),
        "Download limit", "Rate at which this PC fetches shards at most.", "no limit",
    )  # fmt: skip
    upload_limit_mbit: int = _setting(
        "limits", 0, kinds.count("Mbit/s"),
        "Upload limit", "Rate at which this PC sends shards to other members at most.",
        "no limit",
    )  # fmt: skip
    contribute_cpu: bool = _setting(
        "devices", True, kinds.SWITCH, "Lend the processor", "Let the fleet compute on the CPU.",
    )  # fmt: skip
    contribute_gpu: bool = _setting(
        "devices", True, kinds.SWITCH,
        "Lend the graphics processor", "Let the fleet compute on the GPU.",
    )  # fmt: skip
    contribute_npu: bool = _setting(
        "devices", True, kinds.SWITCH,
        "Lend the neural processor", "Let the fleet compute on the NPU.",
    )  # fmt: skip
    npu_while_active: bool = _setting(
        "devices", False, kinds.SWITCH,
        "Neural processor while in use", "Lend the neural processor also while somebody uses this "
        "PC.",
    )  # fmt: skip
    devices: str = _setting(
        "devices", "", kinds.DEVICES,
        "Look only for", "Kinds of devices to look for (CPU, GPU, NPU), for PCs whose drivers make "
        "trouble.", "all there are", applies="restart",
    )  # fmt: skip
    node_name: str = _setting(
        "fleet", "", kinds.TEXT,
        "Name of this PC", "Name under which the fleet shows this PC from its next connection on.",
        "made from its device id",
    )  # fmt: skip
    allow_host_name: bool = _setting(
        "fleet", False, kinds.SWITCH,
        "Use the host name", "Show this PC's host name to the fleet if it has no name of its own.",
    )  # fmt: skip
    hub_address: str = _setting(
        "fleet", "", kinds.HOST_PORT,
        "Coordinator's address", "host:port of the coordinator, where it is not found by itself.",
        "found by multicast DNS",
    )  # fmt: skip
    mdns_interfaces: str = _setting(
        "fleet", "", kinds.ADDRESSES,
        "Look for the fleet on", "Own addresses on which to look for the fleet, separated by "
        "commas.", "all usable ones", applies="restart",
    )  # fmt: skip
    share_shards: bool = _setting(
        "network", True, kinds.SWITCH,
        "Share shards", "Give shards to other members while this PC contributes.",
        applies="restart",
    )  # fmt: skip
    share_port: int = _setting(
        "network", 0, kinds.PORT,
        "Port for sharing", "Port on which this PC gives shards to other members.",
        "any free one", applies="restart",
    )  # fmt: skip
    data_port: int = _setting(
        "network", 0, kinds.PORT,
        "Port of a stage", "Port on which a stage listens for its neighbour; further stages take "
        "those after it.", "any free one", applies="next load",
    )  # fmt: skip
    local_port: int = _setting(
        "network", 0, kinds.PORT,
        "Loopback port", "Port of the loopback API for this PC's own programs.", "any free one",
        applies="restart",
    )  # fmt: skip
    api_host: str = _setting(
        "coordinator", "127.0.0.1", kinds.HOST,
        "API address", "Address on which the fleet's API listens on the coordinator.",
        applies="restart",
    )  # fmt: skip
    api_port: int = _setting(
        "coordinator", 8484, kinds.PORT,
        "API port", "Port of the fleet's API.", "any free one", applies="restart",
    )  # fmt: skip
    control_port: int = _setting(
        "coordinator", 8485, kinds.PORT,
        "Port for members", "Port on which the coordinator listens for members.",
        "any free one", applies="restart",
    )  # fmt: skip
    models_dir: Path | None = _setting(  # noqa: RUF009  (makes a dataclass field)
        "coordinator", None, kinds.FOLDER,
        "Model library", "Folder of the model library.", "inside the state folder",
        applies="restart",
    )  # fmt: skip
    precision: Precision = _setting(  # noqa: RUF009  (makes a dataclass field)
        "computing", "fast", kinds.choice(fast="Fast", exact="Exact"),
        "Precision", "Exact gives the same tokens however a model is split; fast is faster. Holds "
        "for models that are started from now on.",
    )  # fmt: skip
    threads: int = _setting(
        "computing", 0, kinds.count(),
        "Threads", "Processor threads a stage may use.", "automatic", applies="next load",
    )  # fmt: skip
    max_context: int = _setting(
        "computing", 0, kinds.count("tokens"),
        "Longest conversation", "Longest prompt and answer together.",
        "what the model allows", applies="next load",
    )  # fmt: skip
    kv_memory_mb: int = _setting(
        "computing", 0, kinds.count("MiB"),
        "Memory of running requests", "Memory for keys and values of running requests.",
        "automatic", applies="next load",
    )  # fmt: skip
    kv_spill_mb: int = _setting(
        "computing", 256, kinds.count("MiB"),
        "Memory of idle conversations", "Memory for keys and values of idle conversations.",
        "none", applies="next load",
    )  # fmt: skip
    kv_spill_disk_mb: int = _setting(
        "computing", 512, kinds.count("MiB"),
        "Disk of idle conversations", "Disk for the idle conversations that memory has no room "
        "for.", "none", applies="next load",
    )  # fmt: skip
    origins: Mapping[str, Origin] = field(
        default_factory=lambda: MappingProxyType({}), compare=False, repr=False
    )

    def origin(self, name: str) -> Origin:
        """Where the value of ``name`` came from."""
        return self.origins.get(name, Origin("default"))

    def interfaces(self) -> tuple[str, ...] | None:
        """``mdns_interfaces`` as a tuple; ``None`` means all usable ones."""
        return tuple(self.mdns_interfaces.split(",")) if self.mdns_interfaces else None

    def explain(self) -> tuple[Explained, ...]:
        """Every setting with its value and where it came from, in the order of declaration."""
        rows = []
        for setting in SCHEMA.values():
            origin = self.origin(setting.name)
            rows.append(
                Explained(
                    name=setting.name,
                    value=getattr(self, setting.name),
                    default=setting.default,
                    help=setting.help,
                    source=origin.source,
                    where=origin.where,
                    locked=origin.locked,
                )
            )
        return tuple(rows)


def _schema() -> Mapping[str, Setting]:
    found = {}
    for declared in dataclasses.fields(Settings):
        if METADATA in declared.metadata:
            section, kind, words, applies, policy_only = declared.metadata[METADATA]
            found[declared.name] = Setting(
                declared.name, kind, section, declared.default, words, applies, policy_only
            )
    return MappingProxyType(found)


SCHEMA: Mapping[str, Setting] = _schema()
"""Name -> declaration, section by section."""

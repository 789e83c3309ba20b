"""Every setting once: name, type, default, limits and the sentence that explains it.

The idea of one declaration that the rest is derived from is qutebrowser's ``configdata``.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from fleetapp.errors import BadSetting
from fleetapp.settings.schedule import parse_days, parse_hours
from fleetapp.types import Precision

Source = Literal["default", "user", "environment", "user policy", "machine policy"]
"""In rising order of precedence."""

When = Literal["idle", "always"]

ON = frozenset({"1", "true", "yes", "on"})
OFF = frozenset({"0", "false", "no", "off", ""})
_KEY = "fleetapp"
_MAX_PORT = 65535
_MAX_TEXT = 1024


@dataclass(frozen=True)
class Origin:
    """Where a value came from: the layer, and the file, key or variable in words."""

    source: Source
    where: str = ""


@dataclass(frozen=True)
class Explained:
    """One row of ``fleetapp settings``. ``locked`` by policy means: shown, not changeable."""

    name: str
    value: Any
    default: Any
    help: str
    source: Source
    where: str
    locked: bool


@dataclass(frozen=True)
class Setting:
    """The declaration of one setting, without its value."""

    name: str
    kind: str
    default: Any
    help: str
    parse: Callable[[Any], Any]
    """Makes the typed value of a raw one from JSON, the environment or a registry; raises
    ValueError with a sentence that can follow "must be"."""

    def check(self, raw: object, where: str) -> Any:
        """The typed value.

        Raises:
            BadSetting: names the setting, the value and where it was found.
        """
        try:
            return self.parse(raw)
        except ValueError as exc:
            raise BadSetting(
                f"The setting {self.name} in {where} must be {exc}, but is {raw!r}.",
                remedy="Correct or remove it there.",
            ) from exc


def parse_bool(raw: Any) -> bool:
    """0, false, no, off and nothing are off (trap T28)."""
    if isinstance(raw, bool):
        return raw
    word = str(raw).strip().lower() if isinstance(raw, int | str) else None
    if word in OFF:
        return False
    if word in ON:
        return True
    raise ValueError("on or off (1/0, true/false, yes/no)")


def _whole(minimum: int, maximum: int) -> Callable[[Any], int]:
    message = f"a whole number from {minimum} to {maximum}"

    def parse(raw: Any) -> int:
        text = str(raw).strip() if isinstance(raw, int | str) else ""
        if not text.isascii() or not text.isdecimal() or not minimum <= int(text) <= maximum:
            raise ValueError(message)
        return int(text)

    return parse


def _text(raw: Any) -> str:
    if not isinstance(raw, str) or len(raw) > _MAX_TEXT or not raw.isprintable():
        raise ValueError("one line of text")
    return raw.strip()


def _folder(raw: Any) -> Path | None:
    if isinstance(raw, Path):
        return raw
    text = _text(raw)
    if not text:
        return None
    path = Path(text).expanduser()
    if not path.is_absolute():
        raise ValueError("an absolute path")
    return path


def _host_port(raw: Any) -> str:
    text = _text(raw)
    if not text:
        return ""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) <= _MAX_PORT:
        raise ValueError("host:port, for example hub.example.org:8485")
    return text


def _addresses(raw: Any) -> str:
    parts = [p.strip() for p in _text(raw).split(",") if p.strip()]
    try:
        return ",".join(str(ipaddress.ip_address(p)) for p in parts)
    except ValueError:
        raise ValueError("addresses of this PC separated by commas") from None


def _words(parse: Callable[[str], object]) -> Callable[[Any], str]:
    """A list in words that ``parse`` understands, kept as it was written."""

    def check(raw: Any) -> str:
        text = _text(raw)
        parse(text)
        return text

    return check


def _devices(raw: Any) -> str:
    words = [p.strip().upper() for p in _text(raw).split(",") if p.strip()]
    if not set(words) <= {"CPU", "GPU", "NPU"}:
        raise ValueError("CPU, GPU and NPU separated by commas")
    return ",".join(dict.fromkeys(words))


def _programs(raw: Any) -> str:
    return ",".join(dict.fromkeys(p.strip() for p in _text(raw).split(",") if p.strip()))


def _when(raw: Any) -> When:
    if raw not in ("idle", "always"):
        raise ValueError("idle or always")
    return "always" if raw == "always" else "idle"


def _precision(raw: Any) -> Precision:
    if raw not in ("fast", "exact"):
        raise ValueError("fast or exact")
    return "exact" if raw == "exact" else "fast"


def _setting(default: Any, parse: Callable[[Any], Any], help: str) -> Any:  # noqa: A002
    return field(default=default, metadata={_KEY: (parse, help)})


_port = _whole(0, _MAX_PORT)
_count = _whole(0, 1 << 30)
_percent = _whole(0, 100)


@dataclass(frozen=True)
class Settings:
    """All settings, typed, with where each one came from."""

    contribute: bool = _setting(False, parse_bool, "Let the fleet use this PC when it is idle.")
    contribute_when: When = _setting(  # noqa: RUF009  (makes a dataclass field)
        "idle", _when, "idle: while nobody uses this PC; always: also while somebody does."
    )
    idle_minutes: int = _setting(
        5, _whole(0, 1440), "Minutes without a key or a mouse until this PC counts as idle."
    )
    devices: str = _setting(
        "", _devices, "Kinds of devices to use (CPU, GPU, NPU); empty: all there are."
    )
    contribute_cpu: bool = _setting(True, parse_bool, "Lend the processor.")
    contribute_gpu: bool = _setting(True, parse_bool, "Lend the graphics processor.")
    contribute_npu: bool = _setting(True, parse_bool, "Lend the neural processor.")
    npu_while_active: bool = _setting(
        False, parse_bool, "Lend the neural processor also while somebody uses this PC."
    )
    on_battery: bool = _setting(
        False, parse_bool, "Contribute on battery and in power-saving mode too."
    )
    battery_floor: int = _setting(
        50, _percent, "Percent of charge below which this PC never contributes on battery."
    )
    on_metered: bool = _setting(False, parse_bool, "Contribute over a metered network too.")
    cpu_limit: int = _setting(
        25,
        _percent,
        "Percent of the processor that others may use before this PC pauses; 100: all.",
    )
    memory_reserve_mb: int = _setting(
        1024, _count, "MiB of memory that stay free; with less this PC pauses. 0: no matter."
    )
    disk_reserve_mb: int = _setting(
        1024, _count, "MiB of disk that stay free; with less this PC pauses. 0: no matter."
    )
    temperature_limit: int = _setting(
        95, _whole(0, 150), "Degrees Celsius of the processor at which this PC pauses; 0: none."
    )
    pause_in_full_screen: bool = _setting(
        True, parse_bool, "Pause while a program fills the screen or a presentation runs."
    )
    exclusive_apps: str = _setting(
        "",
        _programs,
        "Programs during which this PC pauses, separated by commas: game.exe,blender.",
    )
    schedule_days: str = _setting(
        "",
        _words(parse_days),
        "Days on which this PC may contribute, as mon-fri; empty: every day.",
    )
    schedule_hours: str = _setting(
        "", _words(parse_hours), "Hours in which it may, as 18:00-08:00; empty: all day."
    )
    allow_pause: bool = _setting(True, parse_bool, "The user may pause; for policies.")
    release_after: int = _setting(
        30, _whole(0, 3600), "Seconds that shards stay in memory after this PC has paused."
    )
    memory_limit_mb: int = _setting(
        0, _count, "MiB of memory that the fleet may use on this PC at most; 0: what is free."
    )
    disk_limit_mb: int = _setting(
        0, _count, "MiB of disk that shards may use on this PC at most; 0: what is free."
    )
    node_name: str = _setting(
        "", _text, "Name under which the fleet shows this PC; empty: made from its device id."
    )
    models_dir: Path | None = _setting(  # noqa: RUF009  (makes a dataclass field)
        None, _folder, "Folder of the model library; empty: inside the state folder."
    )
    api_host: str = _setting(
        "127.0.0.1", _text, "Address on which the fleet's API listens on the coordinator."
    )
    api_port: int = _setting(8484, _port, "Port of the fleet's API; 0: any free one.")
    control_port: int = _setting(
        8485, _port, "Port on which the coordinator listens for members; 0: any free one."
    )
    local_port: int = _setting(
        0, _port, "Port of the loopback API for this PC's own programs; 0: any free one."
    )
    data_port: int = _setting(
        0,
        _port,
        "Port on which a stage listens for its neighbour, further stages on those after it; "
        "0: any free one.",
    )
    share_shards: bool = _setting(
        True, parse_bool, "Give shards to other members while this PC contributes."
    )
    share_port: int = _setting(
        0, _port, "Port on which this PC gives shards to other members; 0: any free one."
    )
    upload_limit_mbit: int = _setting(
        0, _count, "Megabits a second at which this PC sends shards to others at most; 0: no limit."
    )
    download_limit_mbit: int = _setting(
        0, _count, "Megabits a second at which this PC fetches shards at most; 0: no limit."
    )
    mdns_interfaces: str = _setting(
        "", _addresses, "Own addresses on which to look for the fleet; empty: all usable ones."
    )
    hub_address: str = _setting(
        "", _host_port, "host:port of the coordinator; empty: found by multicast DNS."
    )
    kv_memory_mb: int = _setting(
        0, _count, "MiB of memory for keys and values of running requests; 0: automatic."
    )
    kv_spill_mb: int = _setting(
        256, _count, "MiB of memory for keys and values of idle conversations; 0: none."
    )
    kv_spill_disk_mb: int = _setting(
        512, _count, "MiB of disk for the idle conversations that memory has no room for; 0: none."
    )
    threads: int = _setting(0, _count, "Processor threads a stage may use; 0: automatic.")
    max_context: int = _setting(
        0, _count, "Longest prompt and answer together, in tokens; 0: what the model allows."
    )
    precision: Precision = _setting(  # noqa: RUF009  (makes a dataclass field)
        "fast", _precision, "fast, or exact: the same tokens however the model is split."
    )
    allow_host_name: bool = _setting(
        False, parse_bool, "Show this PC's host name to the fleet as its name."
    )
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
                    locked=origin.source in ("user policy", "machine policy"),
                )
            )
        return tuple(rows)


def _schema() -> Mapping[str, Setting]:
    found = {}
    for declared in dataclasses.fields(Settings):
        if _KEY in declared.metadata:
            parse, sentence = declared.metadata[_KEY]
            found[declared.name] = Setting(
                declared.name, str(declared.type), declared.default, sentence, parse
            )
    return MappingProxyType(found)


SCHEMA: Mapping[str, Setting] = _schema()
"""Name -> declaration."""

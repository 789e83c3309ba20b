"""Kinds of settings: how a raw value is read, and what a window needs to ask for one. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from fleetapp.settings.schedule import parse_days, parse_hours
from fleetapp.types import SettingKind

ON = frozenset({"1", "true", "yes", "on"})
OFF = frozenset({"0", "false", "no", "off", ""})
MAX_TEXT = 1024
"""Characters of any text."""
_MAX_PORT = 65535
_MAX_COUNT = 1 << 30


@dataclass(frozen=True)
class Kind:
    """What sort of value a setting has."""

    name: SettingKind
    parse: Callable[[Any], Any]
    """Makes the typed value of a raw one from JSON, the environment or a registry; raises
    ValueError with a sentence that can follow "must be"."""
    minimum: int = 0
    maximum: int = 0
    """Both count for numbers only."""
    unit: str = ""
    """Of a number, as it is written behind it; empty for a plain one."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of a choice: every value that it can have, with what it is called."""
    example: str = ""
    """How a value is written, where that is not plain."""


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


def number(minimum: int, maximum: int, unit: str = "") -> Kind:
    """A whole number between two limits, both allowed."""
    message = f"a whole number from {minimum} to {maximum}"

    def parse(raw: Any) -> int:
        text = str(raw).strip() if isinstance(raw, int | str) else ""
        if not text.isascii() or not text.isdecimal() or not minimum <= int(text) <= maximum:
            raise ValueError(message)
        return int(text)

    return Kind("number", parse, minimum, maximum, unit)


def count(unit: str = "") -> Kind:
    """A whole number that only nonsense bounds."""
    return number(0, _MAX_COUNT, unit)


def choice(**options: str) -> Kind:
    """One of a few words, each given with what it is called."""
    *first, last = options
    message = f"{', '.join(first)} or {last}"

    def parse(raw: Any) -> str:
        if raw not in options:
            raise ValueError(message)
        return str(raw)

    return Kind("choice", parse, options=MappingProxyType(options))


def _text(raw: Any) -> str:
    if not isinstance(raw, str) or len(raw) > MAX_TEXT or not raw.isprintable():
        raise ValueError(f"one line of text of at most {MAX_TEXT} characters")
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


def _host(raw: Any) -> str:
    text = _text(raw)
    name = re.fullmatch(r"(?!-)[A-Za-z0-9-]{1,63}(\.(?!-)[A-Za-z0-9-]{1,63})*", text)
    digits = re.fullmatch(r"[0-9.]+", text)
    try:
        if digits or name is None:
            ipaddress.ip_address(text)
    except ValueError:
        raise ValueError("an address or a host name, for example 192.0.2.12") from None
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


SWITCH: Final = Kind("switch", parse_bool)
PERCENT: Final = number(0, 100, "%")
PORT: Final = number(0, _MAX_PORT)
TEXT: Final = Kind("text", _text)
HOST: Final = Kind("text", _host)
FOLDER: Final = Kind("folder", _folder)
HOST_PORT: Final = Kind("host_port", _host_port, example="hub.example.org:8485")
ADDRESSES: Final = Kind("addresses", _addresses, example="192.0.2.7,198.51.100.7")
DEVICES: Final = Kind("devices", _devices, example="CPU,GPU")
PROGRAMS: Final = Kind("programs", _programs, example="game.exe,blender")
DAYS: Final = Kind("days", _words(parse_days), example="mon-fri,sun")
HOURS: Final = Kind("hours", _words(parse_hours), example="18:00-08:00,12:00-13:00")

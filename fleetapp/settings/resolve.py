"""Which value wins: a pure function of the layers."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from fleetapp.settings.schema import SCHEMA, Origin, Settings, Source

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Layer:
    """Raw values from one place. ``where`` is that place in words."""

    source: Source
    where: str
    values: Mapping[str, object]


def environment_layer(environ: Mapping[str, str]) -> Layer:
    """``FLEETAPP_<NAME>`` variables that name a setting.

    An empty variable is "off" for a switch and "" for a text, but no number and no choice: then it
    counts as not set.
    """
    values: dict[str, object] = {}
    for setting in SCHEMA.values():
        text = environ.get(f"FLEETAPP_{setting.name.upper()}")
        if text is None or (text == "" and setting.kind.name in ("number", "choice")):
            continue
        values[setting.name] = text
    return Layer("environment", "the environment", values)


def resolve(layers: Iterable[Layer]) -> Settings:
    """Merge layers given in rising precedence; the last that has a value wins.

    A name nobody knows is left alone: a policy or a file may be of a newer version.

    Raises:
        BadSetting: a layer holds a value that makes no sense, even one that would not win: it
            would surprise later.
    """
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for layer in layers:
        for name, raw in layer.values.items():
            setting = SCHEMA.get(name)
            if setting is None:
                _log.warning("unknown setting %s in %s is ignored", name, layer.where)
                continue
            values[name] = setting.check(raw, layer.where)
            origins[name] = Origin(layer.source, layer.where)
    return Settings(**values, origins=MappingProxyType(origins))

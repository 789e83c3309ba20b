"""Writes down what an agent says, for the pictures of the gallery; run it when the API has changed.

::

    .venv/bin/python -m tests.support.record_gallery

The values come from the fakes of the tests and, for the settings, from the real schema. Times are
seconds from the moment of the picture.
"""

from __future__ import annotations

import time
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from fleetapp.settings import Settings
from fleetapp.settings.schema import Origin
from fleetapp.settings.view import settings_view
from fleetapp.types import FleetView, JoinCodeView, SettingsView
from tests.support.fake_fleet_api import DAY, audit, fleet_view, library_model, plan
from tests.support.fake_models import recorded
from tests.support.fake_pc import BAD, GOOD, hardware

FOLDER = Path(__file__).resolve().parents[2] / "ui" / "gallery" / "recorded"


def settings(language: str) -> SettingsView:
    """Of an office PC with some policies and some wishes."""
    policy = Origin("machine policy", "HKLM\\Software\\Policies\\fleetapp")
    own = Origin("user", "your settings")
    origins = {"on_metered": policy, "cpu_limit": own, "idle_minutes": own}
    values: dict[str, Any] = {"contribute": True, "cpu_limit": 30, "idle_minutes": 10}
    chosen = Settings(on_metered=False, origins=MappingProxyType(origins), **values)
    return settings_view(chosen, language=language)


def fleet() -> FleetView:
    """With certificates that end so many seconds from now."""
    view = fleet_view()
    now = time.time()
    nodes = tuple(
        n
        if n.certificate_ends is None
        else replace(n, certificate_ends=float(round(n.certificate_ends - now, -2)))
        for n in view.nodes
    )
    # not every PC that draws pictures has the letters
    plain = tuple(replace(n, name=n.name.replace(" 日本", "")) for n in nodes)
    return replace(view, nodes=plain)


def codes() -> list[JoinCodeView]:
    """One over, one that holds."""
    return [
        JoinCodeView("k7", -9 * DAY, -8 * DAY, 3, approve=False, revoked=False),
        JoinCodeView("m2", -3600.0, DAY, 19, approve=True, revoked=False),
    ]


def everything() -> dict[str, object]:
    """Name of the file -> what it holds."""
    library = recorded()["downloading"]
    larger = library_model(id="qwen3-4b", title="Qwen3 4B", bytes=2_500_000_000, layers=36)
    models = replace(library, library=(library_model(), larger))
    return {
        "fleet": fleet(),
        "codes": codes(),
        "audit": audit()[-40:],
        "plan": plan(),
        "models": models,
        "models_empty": recorded()["empty"],
        "hardware": hardware(),
        "checks": GOOD,
        "checks_bad": BAD,
        "settings_en": settings("en"),
        "settings_de": settings("de"),
    }


def main() -> None:
    """Write every file anew."""
    for name, value in everything().items():
        text = msgspec.json.format(msgspec.json.encode(value), indent=1)
        (FOLDER / f"{name}.json").write_bytes(text + b"\n")


if __name__ == "__main__":
    main()

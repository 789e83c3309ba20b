"""Settings: declared once in :mod:`.schema`, merged in :mod:`.resolve`, kept by :mod:`.store`."""

from __future__ import annotations

from fleetapp.settings.schema import SCHEMA, Explained, Origin, Setting, Settings
from fleetapp.settings.store import SettingsStore

__all__ = ["SCHEMA", "Explained", "Origin", "Setting", "Settings", "SettingsStore"]

"""What ``fleetapp-tray`` takes from its command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ui.app import _use_state_option
from ui.endpoint import default_home


def test_autostart_can_name_the_state_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEETAPP_HOME", "/elsewhere")
    _use_state_option(["fleetapp-tray", "--verbose"])
    assert default_home() == Path("/elsewhere")
    _use_state_option(["fleetapp-tray", "--state", str(home)])
    assert default_home() == home

"""The icon as Plasma and others show it: by the StatusNotifier protocol."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fleetapp.types import ContributionView
from tests.support.fake_local_api import FakeLocalApi, joined_status
from tests.support.screen import Screen, end, wait_for

MISSING = [name for name in ("Xvfb", "xdotool", "dbus-daemon") if shutil.which(name) is None]

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="a protocol of Linux desktops"),
    pytest.mark.skipif(
        bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (see debian-packages.txt)"
    ),
]

if sys.platform == "linux":
    from tests.support.notifier_host import NotifierHost


@pytest.fixture
def screen(tmp_path: Path, home: Path, agent: FakeLocalApi) -> Iterator[Screen]:
    """Without a panel, with a session bus."""
    with ExitStack() as stack:
        command = ["dbus-daemon", "--session", "--nofork", "--print-address"]
        bus = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        stack.callback(end, bus)
        assert bus.stdout is not None
        made = Screen(stack, tmp_path, panel=False)
        made.environment["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().strip()
        made.environment["FLEETAPP_HOME"] = str(home)
        yield made


@pytest.fixture
def icon(screen: Screen, agent: FakeLocalApi) -> Iterator[NotifierHost]:
    """The app's, on a desktop that shows such icons."""
    agent.set_status(joined_status(contribute=True, role="coordinator"))
    host = NotifierHost(screen.environment["DBUS_SESSION_BUS_ADDRESS"])
    screen.start([sys.executable, "-m", "ui.app"])
    host.wait_for_icon()
    wait_for(lambda: "Ready to help" in host.tooltip(), "the status in the tooltip")
    yield host
    host.close()


def test_the_menu_is_told_and_works(
    screen: Screen, icon: NotifierHost, agent: FakeLocalApi
) -> None:
    menu = icon.menu()
    assert next(iter(menu)).startswith("Ready")
    for entry in (
        "Contribute idle AI time", "Pause", "For 30 minutes", "Until I resume",
        "Finish, then pause", "Open chat", "This PC", "Fleet", "Settings…", "Export diagnostics…",
        "About fleetapp", "Quit",
    ):  # fmt: skip
        assert entry in menu, entry
    assert menu["Contribute idle AI time"]["toggle-state"] == 1
    icon.choose("For 30 minutes")
    asked = [{"length": "30m", "finish_first": False}]
    wait_for(lambda: agent.bodies("/local/v1/pause") == asked, "the pause")
    icon.activate()
    wait_for(lambda: screen.do("search", "--onlyvisible", "--name", "^This PC"), "the window")
    icon.choose("Settings…")
    wait_for(lambda: screen.do("search", "--onlyvisible", "--name", "^Settings"), "the settings")
    icon.choose("Quit")
    wait_for(agent.quit_asked.is_set, "the end")


def test_states_change_icon_tooltip_and_menu(icon: NotifierHost, agent: FakeLocalApi) -> None:
    ready = icon.property("IconPixmap")
    assert {width for width, _, _ in ready} >= {16, 22, 24, 32}
    paused = ContributionView(reason="paused", sentence="Paused until 14:30.", paused=True)
    agent.set_status(
        joined_status(contribute=True, reason="Paused until 14:30.", contribution=paused)
    )
    wait_for(lambda: icon.tooltip() == "Paused until 14:30.", "the pause in the tooltip")
    assert icon.property("IconPixmap") != ready
    wait_for(lambda: "Resume" in icon.menu(), "the menu")
    assert "Fleet" not in icon.menu()
    forbidden = ContributionView(
        on=True, reason="contributing", contribute_by="Contoso IT", may_pause=False,
        pause_by="Contoso IT",
    )  # fmt: skip
    agent.set_status(joined_status(contribute=True, reason="Helps.", contribution=forbidden))
    wait_for(lambda: "Contribute idle AI time (managed by Contoso IT)" in icon.menu(), "the menu")
    menu = icon.menu()
    assert menu["Contribute idle AI time (managed by Contoso IT)"]["enabled"] is False
    assert menu["Pause (managed by Contoso IT)"]["enabled"] is False

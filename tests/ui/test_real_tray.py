"""The real thing: a real panel on a real X server, clicked with a real mouse."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.fake_local_api import FakeLocalApi, joined_status
from tests.support.screen import MISSING, Screen, wait_for

pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (see debian-packages.txt)"
)


@pytest.fixture
def screen(tmp_path: Path, agent: FakeLocalApi) -> Iterator[Screen]:
    """Ends before ``agent``: an app that saw its agent go would start a real one."""
    with ExitStack() as stack:
        yield Screen(stack, tmp_path)


def test_a_click_on_the_icon_opens_the_menu_and_the_menu_works(
    screen: Screen, home: Path, agent: FakeLocalApi
) -> None:
    agent.set_status(joined_status())
    screen.environment["FLEETAPP_HOME"] = str(home)
    app = screen.start([sys.executable, "-m", "ui.app"])
    wait_for(screen.icon_position, "the icon in the panel")
    wait_for(lambda: agent.streams_opened, "the app to find the agent")
    before = screen.picture("panel")
    x, y = screen.icon_position() or (0, 0)
    screen.do("mousemove", str(x), str(y), "click", "3")
    wait_for(lambda: screen.differs(before, "menu") > 500, "the menu above the panel")
    # first the status line, then Contribute
    screen.do("key", "--delay", "100", "Down", "Down", "Return")
    wait_for(lambda: agent.bodies("/local/v1/contribute") == [{"on": True}], "the menu's wish")

    screen.do("mousemove", str(x), str(y), "click", "1")
    wait_for(lambda: screen.do("search", "--onlyvisible", "--name", "^This PC"), "the window")
    screen.picture("window")
    assert app.poll() is None


def test_without_a_panel_the_window_stands_in(screen: Screen, home: Path) -> None:
    screen.environment["FLEETAPP_HOME"] = str(home)
    screen.do("windowkill", screen.do("search", "--class", "trayer").split("\n")[0])
    wait_for(lambda: not screen.do("search", "--class", "trayer"), "the panel to go")
    screen.start([sys.executable, "-m", "ui.app"])
    wait_for(lambda: screen.do("search", "--onlyvisible", "--name", "^This PC"), "the window")


def test_a_pause_is_chosen_in_the_menu_under_the_menu(
    screen: Screen, home: Path, agent: FakeLocalApi
) -> None:
    agent.set_status(joined_status(contribute=True))
    screen.environment["FLEETAPP_HOME"] = str(home)
    screen.start([sys.executable, "-m", "ui.app"])
    wait_for(screen.icon_position, "the icon in the panel")
    wait_for(lambda: agent.streams_opened, "the app to find the agent")
    before = screen.picture("panel")
    x, y = screen.icon_position() or (0, 0)
    screen.do("mousemove", str(x), str(y), "click", "3")
    wait_for(lambda: screen.differs(before, "menu") > 500, "the menu above the panel")
    # status line, Contribute, Pause; to the right its lengths: 30 minutes, an hour
    screen.do("key", "--delay", "150", "Down", "Down", "Down", "Right", "Down", "Return")
    asked = [{"length": "1h", "finish_first": False}]
    wait_for(lambda: agent.bodies("/local/v1/pause") == asked, "the pause")


def test_a_fresh_pc_is_asked_what_it_is_for(
    screen: Screen, tmp_path: Path, agent: FakeLocalApi
) -> None:
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    for name in ("agent.json", "api-token"):
        (fresh / name).write_bytes((agent.home / name).read_bytes())
    screen.environment["FLEETAPP_HOME"] = str(fresh)
    screen.start([sys.executable, "-m", "ui.app"])
    wait_for(
        lambda: screen.do("search", "--onlyvisible", "--name", "^Set up fleetapp"), "the first run"
    )
    screen.picture("first run")

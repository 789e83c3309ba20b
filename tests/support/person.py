"""A person at a real screen: sees what the app shows, uses a real mouse and a real keyboard."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.support.screen import PATIENCE, Screen

AIM = 0.1
"""Seconds from the first look at something to the click on it."""


class Person:
    """In front of one desktop app on ``screen``.

    Args:
        home: state folder of the app and its agent.
        env: more variables for the app.
    """

    def __init__(self, screen: Screen, home: Path, **env: str) -> None:
        self._screen = screen
        before = screen.environment
        screen.environment = {**before, "FLEETAPP_HOME": str(home), **env}
        command = [sys.executable, "-m", "tests.support.driven_app"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.app = screen.start(command, **pipes)
        screen.environment = before
        self._said: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.app.stdout is not None
        for line in self.app.stdout:
            self._said.put(line)
        self._said.put(b"")

    # ------------------------------------------------------------------ what can be seen

    def sees(self, what: str) -> Any:
        """The value of an expression about ``desktop``.

        Raises:
            LookupError: there is no such thing now.
        """
        assert self.app.stdin is not None
        self.app.stdin.write(what.encode() + b"\n")
        self.app.stdin.flush()
        line = self._said.get(timeout=PATIENCE)
        assert line, f"the app has ended with {self.app.wait(PATIENCE)}"
        said = json.loads(line)
        if "error" in said:
            raise LookupError(said["error"])
        return said["value"]

    def waits(self, what: str, patience: float = PATIENCE) -> Any:
        """Until an expression is true; its value."""
        end = time.monotonic() + patience
        while True:
            try:
                if value := self.sees(what):
                    return value
                problem = repr(value)
            except LookupError as error:
                problem = str(error)
            if time.monotonic() > end:
                self._screen.picture("in vain")
                raise AssertionError(f"waited {patience:g} s in vain for {what}: {problem}")
            time.sleep(0.02)

    # ------------------------------------------------------------------ what can be done

    def clicks(self, widget: str) -> None:
        """On a widget, as soon as that is possible."""
        self.clicks_at(f"spot({widget})")

    def clicks_at(self, spot: str) -> None:
        """The same where the place is told by one of the functions of ``driven_app``."""
        x, y = self.waits(spot)
        # what is still moving would be missed
        while (time.sleep(AIM), self.waits(spot))[1] != [x, y]:
            x, y = self.waits(spot)
        self._screen.do("mousemove", str(x), str(y), "click", "1")

    def chooses_entry(self, action: str) -> None:
        """In the menu of the icon in the panel, with the mouse."""
        x, y = self._screen.icon_position() or (0, 0)
        self._screen.do("mousemove", str(x), str(y), "click", "3")
        self.clicks_at(f"spot_of_action(desktop.actions.menu, desktop.actions.{action})")

    def types(self, text: str, *keys: str) -> None:
        """Into whatever has the keyboard; then these keys."""
        self._screen.do("type", "--delay", "5", text)
        self.presses(*keys)

    def presses(self, *keys: str) -> None:
        """One after another, as xdotool calls them."""
        self._screen.do("key", "--delay", "20", *keys)

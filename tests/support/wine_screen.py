"""An X server of a test's own with a panel, and a person in front of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

MISSING = [name for name in ("Xvfb", "xdotool", "trayer", "import") if shutil.which(name) is None]
PATIENCE = 60.0


class Screen:
    """Use as a context manager.

    Args:
        folder: for pictures and logs.
        panel: whether there is a place for tray icons.
    """

    def __init__(self, folder: Path, *, panel: bool = True) -> None:
        self.folder = folder
        self._panel = panel
        self.display = ""
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Screen:
        self.folder.mkdir(parents=True, exist_ok=True)
        read, write = os.pipe()
        line = ["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x900x24", "-noreset"]
        self._start([*line, "-nolisten", "tcp"], pass_fds=(write,))
        os.close(write)
        with os.fdopen(read) as announced:
            self.display = f":{announced.readline().strip()}"
        if self._panel:
            panel = "trayer --edge bottom --align right --height 32 --widthtype request"
            self._start([*panel.split(), "--expand", "false"])
            self.until(lambda: self.do("search", "--class", "trayer"), "the panel")
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)

    def _start(self, command: list[str], **options: object) -> None:
        with (self.folder / "screen.txt").open("ab") as log:
            self._processes.append(
                subprocess.Popen(  # type: ignore[call-overload]
                    command, env=self._env(), stdout=log, stderr=log, **options
                )
            )

    def _env(self) -> dict[str, str]:
        return {**os.environ, "DISPLAY": self.display}

    def do(self, *arguments: str) -> str:
        """One thing done with mouse or keyboard, or asked of the X server."""
        return subprocess.run(
            ["xdotool", *arguments],
            env=self._env(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        ).stdout.strip()

    def windows(self, title: str) -> list[str]:
        """Visible windows whose title matches."""
        return self.do("search", "--onlyvisible", "--name", title).split()

    def place(self, window: str) -> tuple[int, int, int, int]:
        """Left, top, width and height of a window."""
        lines = self.do("getwindowgeometry", "--shell", window).splitlines()
        found = dict(line.split("=", 1) for line in lines if "=" in line)
        return tuple(int(found[k]) for k in ("X", "Y", "WIDTH", "HEIGHT"))  # type: ignore[return-value]

    def tray_icon(self) -> tuple[int, int] | None:
        """A point of the icon in the panel, once there is one.

        Where an icon is transparent Wine lets clicks through, so the middle of a ring will not do.
        """
        panel = self.windows("panel") or self.do("search", "--class", "trayer").split()
        for window in panel:
            left, top, width, height = self.place(window)
            if 16 <= width < 200 and (drawn := self._drawn(left, top, width, height)):
                return drawn
        return None

    def _drawn(self, left: int, top: int, width: int, height: int) -> tuple[int, int] | None:
        """The point that differs most from the corner; None if all are much the same."""
        area = ["-crop", f"{width}x{height}+{left}+{top}", "+repage", "-depth", "8", "rgb:-"]
        data = self._shot(*area)
        if len(data) != 3 * width * height:
            return None  # the panel has grown over the edge meanwhile

        def differs(point: int) -> int:
            return sum(abs(data[3 * point + i] - data[i]) for i in range(3))

        best = max(range(width * height), key=differs)
        if differs(best) < 48:
            return None
        return left + best % width, top + best // width

    def _shot(self, *options: str) -> bytes:
        line = ["import", "-display", self.display, "-window", "root", *options]
        done = subprocess.run(line, capture_output=True, timeout=PATIENCE, check=True)
        return done.stdout

    def picture(self, name: str) -> Path:
        """The whole screen, as a file."""
        path = self.folder / f"{name}.png"
        self._shot(str(path))
        return path

    def settle(self, patience: float = 5.0) -> None:
        """Until nothing changes on the screen for a second; a cursor may blink for ever, though."""
        end = time.monotonic() + patience
        before, since = b"", time.monotonic()
        while time.monotonic() < min(end, since + 1.0) or not before:
            now = self._shot("rgb:-")
            if now != before:
                before, since = now, time.monotonic()
            time.sleep(0.2)

    def until(self, true: Callable[[], object], what: str, deadline: float = PATIENCE) -> None:
        """Ask until it is so; other programs offer no event to wait for."""
        end = time.monotonic() + deadline
        while not true():
            assert time.monotonic() < end, f"waited {deadline:g} s in vain for {what}"
            time.sleep(0.1)

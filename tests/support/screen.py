"""A real X server for tests, with or without a panel, and a person in front of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from PySide6.QtGui import QImage

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("Xvfb", "trayer", "xdotool")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]
PATIENCE = 30.0
"""Seconds for anything that another process has to do."""


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Ask until true, with a deadline; the processes under test offer no event to wait for."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited {PATIENCE:g} s in vain for {what}"
        time.sleep(0.05)


class Screen:
    """An X server with a panel, and a person in front of it."""

    def __init__(
        self, stack: ExitStack, folder: Path, *, panel: bool = True, size: str = "1024x768"
    ) -> None:
        self._stack = stack
        self.folder = folder
        read, write = os.pipe()
        server = ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{size}x24", "-noreset"]
        self.environment = {
            **os.environ,
            "DBUS_SESSION_BUS_ADDRESS": "disabled:",  # the panel is found through X alone
            "QT_QPA_PLATFORM": "xcb",
            "XDG_RUNTIME_DIR": str(folder),
        }
        folder.chmod(0o700)
        self.start(server, pass_fds=(write,))
        os.close(write)
        with os.fdopen(read) as announced:
            self.environment["DISPLAY"] = f":{announced.readline().strip()}"
        if not panel:
            return
        panel_command = "trayer --edge bottom --align right --height 32 --widthtype request"
        self.start([*panel_command.split(), "--expand", "false"])
        wait_for(lambda: self.do("search", "--class", "trayer"), "the panel")

    def start(self, command: list[str], **options: object) -> subprocess.Popen[bytes]:
        """A process that ends with the test."""
        with (self.folder / "output.txt").open("ab") as output:
            options = {"stdout": output, "stderr": output, **options}
            process = subprocess.Popen(  # type: ignore[call-overload]
                command, env=self.environment, cwd=ROOT, **options
            )
        self._stack.callback(end, process)
        return process

    def do(self, *arguments: str) -> str:
        """One thing done with mouse or keyboard, or asked of the X server."""
        return subprocess.run(
            ["xdotool", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        ).stdout.strip()

    def icon_position(self) -> tuple[int, int] | None:
        """The middle of the panel, once an icon has made it wider than nothing."""
        window = self.do("search", "--onlyvisible", "--class", "trayer").split("\n")[0]
        shell = dict(
            line.split("=", 1)
            for line in self.do("getwindowgeometry", "--shell", window).splitlines()
            if "=" in line
        )
        if "WIDTH" not in shell or not 24 <= int(shell["WIDTH"]) < 200:
            return None
        return (
            int(shell["X"]) + int(shell["WIDTH"]) // 2,
            int(shell["Y"]) + int(shell["HEIGHT"]) // 2,
        )

    def picture(self, name: str) -> QImage:
        """The whole screen; also kept as a file beside the test's other output."""
        path = self.folder / f"{name}.png"
        grab = "import sys\nfrom PySide6.QtGui import QGuiApplication\n"
        grab += "app = QGuiApplication(sys.argv[:1])\n"
        grab += "ok = app.primaryScreen().grabWindow(0).save(sys.argv[1])\nsys.exit(not ok)"
        subprocess.run(
            [sys.executable, "-c", grab, str(path)],
            env=self.environment,
            timeout=PATIENCE,
            check=True,
        )
        return QImage(str(path))

    def differs(self, before: QImage, name: str) -> int:
        """How many of the pixels looked at, above the panel, are others than before."""
        return _differences(self.picture(name), before)


def _differences(now: QImage, before: QImage) -> int:
    return sum(
        now.pixel(column, row) != before.pixel(column, row)
        for column in range(0, now.width(), 4)
        for row in range(0, now.height() - 40, 4)
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """Politely, then not."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)

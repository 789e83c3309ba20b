"""How long the desktop app takes to start, and what memory it holds; prints a table.

::

    .venv/bin/python -m tests.support.desktop_start [--runs 9]

Each run is a new process on an X server of its own (Xvfb) with a real panel (trayer) and an agent
that answers at once. Time counts from the start of the process, as the system knows it, to the icon
in the panel, and to the first frame of the chat window, which is opened as soon as the icon is
there. The files are in the page cache after the first run, which is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
from PySide6.QtCore import QEvent, QObject, QTimer, qVersion
from PySide6.QtWidgets import QApplication

from ui import app
from ui.desktop import Desktop

SETTLE_MS = 3000
"""Until memory is looked at."""
DEADLINE = 60.0


class _FirstFrame(QObject):
    """Calls back when its window has been painted for the first time."""

    def __init__(self, window: QObject, then: object) -> None:
        super().__init__(window)
        self._then = then
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            watched.removeEventFilter(self)
            QTimer.singleShot(0, self._then)
        return False


def child() -> None:
    """The real app, which says on its standard output how far it has come."""
    begun = psutil.Process().create_time()
    said: dict[str, float] = {}

    def note(name: str) -> None:
        said[name] = time.time() - begun

    def look_at_memory(name: str) -> None:
        memory = psutil.Process().memory_full_info()
        said[f"{name} rss"], said[f"{name} own"] = memory.rss, memory.uss

    real_start = Desktop.start

    def start(desktop: Desktop) -> None:
        def in_panel() -> None:
            note("tray")
            if "--chat" in sys.argv:
                desktop.actions.chat.trigger()
                assert desktop.chats is not None
                _FirstFrame(desktop.chats.window(), lambda: note("chat"))
            QTimer.singleShot(SETTLE_MS, end)

        def end() -> None:
            look_at_memory("memory")
            print(json.dumps(said), flush=True)
            QApplication.quit()

        desktop.tray.appeared.connect(in_panel)
        real_start(desktop)

    Desktop.start = start  # type: ignore[method-assign]
    app.run([sys.argv[0]], ["no-such-program"])


def one_run(environment: dict[str, str], *, chat: bool) -> dict[str, float]:
    """What a fresh process said of itself."""
    command = [sys.executable, "-m", "tests.support.desktop_start", "--child"]
    done = subprocess.run(
        [*command, "--chat"] if chat else command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=True,
    )
    said: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return said


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    # not needed in the child, which shall load what the app loads
    from tests.support.fake_chat_api import FakeChatApi  # noqa: PLC0415
    from tests.ui.test_real_tray import Screen  # noqa: PLC0415

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        home = folder / "home"
        home.mkdir()
        agent = FakeChatApi(home)
        agent.start()
        stack.callback(agent.stop)
        screen = Screen(stack, folder)
        environment = {**screen.environment, "FLEETAPP_HOME": str(home)}
        found: dict[str, list[float]] = {}
        for chat in (False, True):
            one_run(environment, chat=chat)
            for _ in range(options.runs):
                for name, value in one_run(environment, chat=chat).items():
                    found.setdefault(f"{'chat' if chat else 'alone'}: {name}", []).append(value)
    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    print(f"{cpu}, {os.cpu_count()} threads, {platform.platform()}, Qt {qVersion()}")
    print(f"load at the end {os.getloadavg()[0]:.2f}; {options.runs} runs; median (least to most)")
    for name, values in found.items():
        scale, unit = (2**20, "MiB") if name.endswith(("rss", "own")) else (1, "s")
        low, middle, high = (f(values) / scale for f in (min, statistics.median, max))
        print(f"{name:20} {middle:8.2f} ({low:.2f} to {high:.2f}) {unit}")


if __name__ == "__main__":
    child() if "--child" in sys.argv else main()

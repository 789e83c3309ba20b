"""What a long answer and a long chat cost the desktop app; prints a table.

::

    .venv/bin/python -m tests.support.desktop_stream [--runs 3] [--rate 60]

Each run is a new process on an X server of its own (Xvfb, trayer) whose agent streams an answer of
4,000 tokens with code, tables and lists, and which then opens a chat of 2,000 messages. A timer of
5 ms tells how long the event loop was held up: by the clock, in which other programs of this
machine count as well, and in processor time of the Qt thread, in which they do not.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
from PySide6.QtCore import QEvent, QObject, Qt, QTimer, qVersion
from PySide6.QtWidgets import QApplication

from tests.support.long_answer import ANSWER, CODE, PROSE, TABLE, TOKEN
from ui import app
from ui.desktop import Desktop

TICK_MS = 5
SETTLE_MS = 3000
MESSAGES = 2000
OPENINGS = 5
DEADLINE = 180.0


class Watch(QObject):
    """How long the event loop was held up, and how often the window was painted."""

    def __init__(self, window: QObject) -> None:
        super().__init__(window)
        self.paints = 0
        self.longest = self.longest_own = 0.0
        self._last = (time.monotonic(), time.thread_time())
        window.installEventFilter(self)
        self._timer = QTimer(self, interval=TICK_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self._timer.start()

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        self.paints += event.type() == QEvent.Type.UpdateRequest
        return False

    def _tick(self) -> None:
        now = (time.monotonic(), time.thread_time())
        self.longest = max(self.longest, now[0] - self._last[0] - TICK_MS / 1000)
        self.longest_own = max(self.longest_own, now[1] - self._last[1])
        self._last = now


class Run(QObject):
    """One after the other: memory, the stream, the long chat."""

    def __init__(self, desktop: Desktop) -> None:
        super().__init__(desktop)
        self.said: dict[str, float] = {}
        self.process = psutil.Process()
        desktop.show_chat()
        assert desktop.chats is not None
        self.window = desktop.chats.window()
        self.model = desktop.chats.model
        QTimer.singleShot(SETTLE_MS, self.begin)

    def begin(self) -> None:
        """Everything has loaded by now."""
        assert self.model.models, "the agent has told of no model"
        self.said["memory before"] = self.process.memory_info().rss
        self.window.thread_view.draws = 0
        self.watch = Watch(self.window)
        self.since = (time.monotonic(), sum(self.process.cpu_times()[:2]))
        self.window.composer.set_text("go")
        self.window.composer.submit()
        self.look = QTimer(self, interval=50)
        self.look.timeout.connect(self.ended)
        self.look.start()

    def ended(self) -> None:
        """Looked for every now and then."""
        if self.model.busy:
            return
        self.look.stop()
        seconds = time.monotonic() - self.since[0]
        spent = sum(self.process.cpu_times()[:2]) - self.since[1]
        assert self.model.messages(self.window.current)[-1].text == ANSWER
        self.said |= {
            "answer s": seconds,
            "share of a core": spent / seconds,
            "longest ms": 1000 * self.watch.longest,
            "longest own ms": 1000 * self.watch.longest_own,
            "draws/s": self.window.thread_view.draws / seconds,
            "repaints/s": self.watch.paints / seconds,
            "memory after": self.process.memory_info().rss,
        }
        QTimer.singleShot(0, self.open_long)

    def open_long(self) -> None:
        """A chat of 2,000 messages, with others looked at in between."""
        store = self.model.store
        made = store.create("long", self.model.options(self.window.current))
        for number in range(MESSAGES // 2):
            store.add(made.id, "user", f"Question {number}?")
            store.add(made.id, "assistant", PROSE + TABLE[:200] + CODE[:200], model="tiny")
        found = []
        for _ in range(OPENINGS):
            self.window.start_new()
            QApplication.processEvents()
            begun = time.monotonic()
            self.window.show_conversation(made.id)
            self.window.repaint()
            QApplication.processEvents()
            found.append(1000 * (time.monotonic() - begun))
        self.said["open ms"] = statistics.median(found)
        self.said["slowest open ms"] = max(found)
        print(json.dumps(self.said), flush=True)
        QApplication.quit()


def child() -> None:
    """The real app."""
    start = Desktop.start

    def begin(desktop: Desktop) -> None:
        desktop.tray.appeared.connect(lambda: Run(desktop))
        start(desktop)

    Desktop.start = begin  # type: ignore[method-assign]
    app.run([sys.argv[0]], ["no-such-program"])


def one_run(environment: dict[str, str]) -> dict[str, float]:
    """What a fresh process said of itself."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.desktop_stream", "--child"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=DEADLINE,
        check=True,
    )
    said: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return said


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rate", type=float, default=60.0, help="tokens per second")
    options = parser.parse_args()
    # not needed in the child, which shall load what the app loads
    from PySide6.QtCore import QSettings  # noqa: PLC0415

    from tests.support.fake_chat_api import FakeChatApi, saying  # noqa: PLC0415
    from tests.support.screen import Screen  # noqa: PLC0415

    found: dict[str, list[float]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        screen = Screen(stack, folder)
        for number in range(options.runs):
            home = folder / str(number)
            home.mkdir()
            settings = QSettings(str(home / "ui.ini"), QSettings.Format.IniFormat)
            settings.setValue("firstrun/state", "done")
            settings.sync()
            agent = FakeChatApi(home)
            agent.replies = [saying(ANSWER, TOKEN, 1 / options.rate)]
            agent.start()
            stack.callback(agent.stop)
            for name, value in one_run({**screen.environment, "FLEETAPP_HOME": str(home)}).items():
                found.setdefault(name, []).append(value)
    print(f"{os.cpu_count()} threads, Qt {qVersion()}, load at the end {os.getloadavg()[0]:.2f}")
    print(f"{options.runs} runs, {len(ANSWER) / TOKEN:.0f} tokens; median (least to most)")
    for name, values in found.items():
        scale, unit = (2**20, " MiB") if name.startswith("memory") else (1, "")
        low, middle, high = (f(values) / scale for f in (min, statistics.median, max))
        print(f"{name:20} {middle:8.2f} ({low:.2f} to {high:.2f}){unit}")


if __name__ == "__main__":
    child() if "--child" in sys.argv else main()

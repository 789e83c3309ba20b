"""Starts the agent when it is not there, and knows when to stop trying."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

log = logging.getLogger("ui.keeper")

DELAYS = (0.0, 2.0, 8.0)
"""Seconds before each attempt; after the last the keeper gives up."""
START_DEADLINE = 45.0
"""Seconds a new agent may take until it answers."""
PROVEN = 60.0
"""Seconds after which an agent that answers has earned its attempts back."""


def agent_command() -> list[str]:
    """How the agent is started from the same installation as this app."""
    program = Path(sys.executable)
    if sys.platform == "win32" and (windowless := program.with_name("pythonw.exe")).exists():
        program = windowless
    return [str(program), "-P", "-m", "fleetapp.cli", "agent"]


class AgentKeeper(QObject):
    """One detached agent process, so that the PC goes on contributing if this app ends.

    Told by its owner whether an agent answers; says when it starts one and when it gives up.
    """

    starting = Signal()
    gave_up = Signal(str)
    """One sentence of why, for people."""

    def __init__(
        self,
        home: Path,
        command: Sequence[str],
        parent: QObject | None = None,
        *,
        delays: Sequence[float] = DELAYS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._home = home
        self._command = list(command)
        self._delays = tuple(delays)
        self._clock = clock
        self._attempts = 0
        self._seen_since: float | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._deadline = 0.0
        self._given_up = False
        self._abandoned = False
        self._pause = QTimer(self, singleShot=True)
        self._pause.timeout.connect(self._launch)
        self._watch = QTimer(self, interval=250)
        self._watch.timeout.connect(self._look)

    @property
    def start_log(self) -> Path:
        """What the last started agent said on its standard error."""
        return self._home / "logs" / "agent-start.log"

    @property
    def started_pid(self) -> int:
        """The process of the last attempt, or zero."""
        return self._process.pid if self._process is not None else 0

    def agent_seen(self) -> None:
        """An agent answers."""
        self._given_up = False
        self._pause.stop()
        self._watch.stop()
        if self._seen_since is None:
            self._seen_since = self._clock()

    def agent_missing(self) -> None:
        """None answers; starts one unless that is under way or has failed too often."""
        if self._seen_since is not None:
            if self._clock() - self._seen_since >= PROVEN:
                self._attempts = 0
            self._seen_since = None
        busy = self._pause.isActive() or self._watch.isActive()
        if not (self._abandoned or self._given_up or busy):
            self._try_again(self.tr("it ended unexpectedly"))

    def start_anew(self) -> None:
        """A person asked: all attempts are available again."""
        self._attempts = 0
        self._given_up = False
        self.agent_missing()

    def abandon(self) -> None:
        """Start nothing any more, and end a process that has not answered yet."""
        self._abandoned = True
        self._pause.stop()
        if self._watch.isActive():
            self._watch.stop()
            self._end_started()

    def _try_again(self, why: str) -> None:
        if self._attempts >= len(self._delays):
            self._given_up = True
            tail = self._last_words()
            self.gave_up.emit(
                self.tr("The agent could not be kept running: {why}.").format(why=tail or why)
            )
            return
        delay = self._delays[self._attempts]
        self._attempts += 1
        self._pause.start(round(delay * 1000))
        self.starting.emit()

    def _launch(self) -> None:
        # subprocess rather than QProcess: a detached QProcess tells nothing of how it ended
        flags = 0
        if sys.platform == "win32":
            flags = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
        try:
            self.start_log.parent.mkdir(parents=True, exist_ok=True)
            with self.start_log.open("wb") as words:
                self._process = subprocess.Popen(
                    self._command,
                    cwd=self._home,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=words,
                    start_new_session=True,
                    creationflags=flags,
                )
        except OSError as error:
            self._try_again(str(error))
            return
        log.info("started the agent as process %d", self._process.pid)
        self._deadline = self._clock() + START_DEADLINE
        self._watch.start()

    def _look(self) -> None:
        process = self._process
        if process is None:
            self._watch.stop()
        elif (code := process.poll()) is not None:
            self._watch.stop()
            why = self.tr("it ended right after its start with exit code {code}")
            self._try_again(why.format(code=code))
        elif self._clock() > self._deadline:
            self._watch.stop()
            self._end_started()
            self._try_again(
                self.tr("it did not answer within %n seconds", "", round(START_DEADLINE))
            )

    def _end_started(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def _last_words(self) -> str:
        try:
            text = self.start_log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        # what happened, and below it what to do
        errors = [i for i, line in enumerate(lines) if line.startswith("Error: ")]
        last = lines[errors[-1] :] if errors else lines[-1:]
        return " ".join(last).removeprefix("Error: ").rstrip(".")[:400]

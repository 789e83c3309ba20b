"""One desktop app per person and state folder; a second start raises the first."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from fleetapp.errors import FleetError, ReadOnly

log = logging.getLogger("ui.instance")

RAISE = b"raise\n"
QUIT = b"quit\n"
DEADLINE_MS = 5000


class InstanceHung(FleetError):
    """The first instance holds its lock and does not listen."""

    code = "instance_hung"
    exit_code = 3


class SingleInstance(QObject):
    """A lock file decides who is first; a local socket carries the request of the second.

    The lock names its process, so one that a dead process left behind counts for nothing, and its
    socket is removed only by whoever holds the lock.
    """

    raised = Signal()
    """Somebody has started the app again."""
    quit_wanted = Signal()
    """The installer is about to replace or remove the app."""

    def __init__(self, home: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lock = QLockFile(str(home / "tray.lock"))
        self._lock.setStaleLockTime(0)  # age proves nothing, only a dead process does
        self._name = _socket_name(home)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._accept)

    def claim(self) -> bool:
        """True if this is the first; else the first has been asked to show itself.

        Raises:
            ReadOnly: the state folder cannot be written.
            InstanceHung: another one runs and does not answer.
        """
        if self._lock.tryLock(0):
            QLocalServer.removeServer(self._name)
            if not self._server.listen(self._name):
                # worth running all the same: only a second start will not find this one
                log.warning("cannot listen for a second start: %s", self._server.errorString())
            return True
        if self._lock.error() != QLockFile.LockError.LockFailedError:
            raise ReadOnly(
                self.tr("The state folder of fleetapp cannot be written."),
                remedy=self.tr("Check who owns it and whether the disk is full."),
            )
        self._ask_first(RAISE)
        return False

    def end_first(self, seconds: float) -> bool:
        """Ask the app that runs here to quit; whether it is gone within ``seconds``.

        Raises:
            ReadOnly: the state folder cannot be written.
            InstanceHung: it does not answer.
        """
        if not self._lock.tryLock(0):
            self._ask_first(QUIT)
            if not self._lock.tryLock(round(seconds * 1000)):
                return False
        self._lock.unlock()
        return True

    def release(self) -> None:
        """Let the next start be the first."""
        self._server.close()
        self._lock.unlock()

    def _ask_first(self, what: bytes) -> None:
        """Blocks for at most DEADLINE_MS; no window of ours exists yet."""
        end = time.monotonic() + DEADLINE_MS / 1000
        while time.monotonic() < end:
            socket = QLocalSocket()
            socket.connectToServer(self._name)
            # the first may have its lock and not its socket yet
            if not socket.waitForConnected(200):
                time.sleep(0.05)
                continue
            socket.write(what)
            left = max(1, round((end - time.monotonic()) * 1000))
            if socket.waitForReadyRead(left):
                return
        raise InstanceHung(
            self.tr("fleetapp is already running here but does not answer."),
            remedy=self.tr("End it in the task manager and start it again."),
        )

    def _accept(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.readyRead.connect(lambda socket=socket: self._read(socket))
            socket.disconnected.connect(socket.deleteLater)
            if socket.bytesAvailable():
                self._read(socket)

    def _read(self, socket: QLocalSocket) -> None:
        asked = bytes(socket.readAll().data())
        for word, signal in ((RAISE, self.raised), (QUIT, self.quit_wanted)):
            if asked.startswith(word):
                socket.write(b"ok\n")
                socket.flush()
                signal.emit()
        socket.disconnectFromServer()


def _socket_name(home: Path) -> str:
    """Short, because a Unix socket's path may have 107 bytes; the folder's own may have more."""
    digest = hashlib.sha256(os.fsencode(home.absolute())).hexdigest()
    name = f"fleetapp-tray-{digest[:16]}"
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    return f"{runtime}/{name}" if runtime and Path(runtime).is_dir() else name

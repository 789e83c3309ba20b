"""A message bus of a Linux desktop, as far as sensors need one. A missing bus is no error."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Literal

from jeepney import DBusAddress, MatchRule, MessageType, Properties, message_bus, new_method_call
from jeepney.io.blocking import DBusConnection, open_dbus_connection

log = logging.getLogger(__name__)

DEADLINE = 0.5
"""For one question (s); services answer within a millisecond or two."""
RETRY_SECONDS = 30.0
_BROKEN = (OSError, TimeoutError, EOFError, ValueError, KeyError, RuntimeError)
"""No bus, a bus that ended, an address that makes no sense; jeepney raises them all."""

LOGIN = "org.freedesktop.login1"
LOGIN_MANAGER = DBusAddress("/org/freedesktop/login1", LOGIN, f"{LOGIN}.Manager")
INHIBIT_SECONDS = 4.0
"""The system waits for us 5 s by default (logind's InhibitDelayMaxSec)."""


class Bus:
    """One connection: made when it is first needed, and again, not too often, after it broke."""

    def __init__(self, which: Literal["SYSTEM", "SESSION"]) -> None:
        self._which = which
        self._connection: DBusConnection | None = None
        self._try_at = 0.0

    def properties(self, path: str, service: str, interface: str) -> dict[str, Any]:
        """All of one interface of one object; empty if there is no such thing."""
        body = self._ask(Properties(DBusAddress(path, service, interface)).get_all())
        return {name: value for name, (_, value) in body[0].items()} if body else {}

    def call(self, path: str, service: str, interface: str, method: str) -> tuple[Any, ...]:
        """What a method without arguments answers; nothing if there is none."""
        return self._ask(new_method_call(DBusAddress(path, service, interface), method))

    def _ask(self, message: Any) -> tuple[Any, ...]:
        if self._connection is None:
            if time.monotonic() < self._try_at:
                return ()
            self._try_at = time.monotonic() + RETRY_SECONDS
            try:
                self._connection = open_dbus_connection(self._which, auth_timeout=DEADLINE)
            except _BROKEN as exc:
                log.debug("no %s bus: %s", self._which.lower(), exc)
                return ()
        try:
            reply = self._connection.send_and_get_reply(message, timeout=DEADLINE)
        except _BROKEN as exc:
            log.debug("the %s bus broke: %s", self._which.lower(), exc)
            self.close()
            return ()
        return () if reply.header.message_type is MessageType.error else tuple(reply.body)

    def close(self) -> None:
        """End the connection; the next question makes another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.close()


class SleepWatch:
    """Hears from logind that the PC goes to sleep, and keeps it awake until we are ready.

    The lock is a file descriptor: as long as it is open, sleep is delayed
    (https://systemd.io/INHIBITOR_LOCKS).
    """

    def __init__(self, going: Callable[[bool], None]) -> None:
        self._going = going
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sleep-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._ended.set()
        self._thread.join(DEADLINE * 4)

    def _run(self) -> None:
        try:
            with open_dbus_connection("SYSTEM", enable_fds=True, auth_timeout=DEADLINE) as bus:
                self._listen(bus)
        except _BROKEN as exc:
            log.debug("nobody tells of sleep: %s", exc)

    def _listen(self, bus: DBusConnection) -> None:
        rule = MatchRule(type="signal", interface=f"{LOGIN}.Manager", member="PrepareForSleep")
        bus.send_and_get_reply(message_bus.AddMatch(rule), timeout=DEADLINE)
        with bus.filter(rule, bufsize=4) as signals:
            lock = self._lock(bus)
            while not self._ended.is_set():
                try:
                    signal = bus.recv_until_filtered(signals, timeout=DEADLINE)
                except TimeoutError:
                    continue
                asleep = bool(signal.body[0])
                self._going(asleep)
                if asleep and lock is not None:
                    lock.close()
                    lock = None
                elif not asleep:
                    lock = self._lock(bus)
            if lock is not None:
                lock.close()

    def _lock(self, bus: DBusConnection) -> Any:
        why = "Takes leave of the fleet before sleep"
        ask = new_method_call(LOGIN_MANAGER, "Inhibit", "ssss", ("sleep", "fleetapp", why, "delay"))
        reply = bus.send_and_get_reply(ask, timeout=DEADLINE)
        return None if reply.header.message_type is MessageType.error else reply.body[0]

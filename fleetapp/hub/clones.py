"""Two PCs with one identity, because a state folder was copied (a disk image, say): noticed here.

Two signs are believed. *At once*: a newcomer greets with a device's key while the agent that has
that key goes on sending heartbeats; two starts of an agent differ by a random number, so a quick
restart is told apart. *Over days*: a device comes from one PC, then from another, then from the
first again. In both the later one is the copy, and is given an identity of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from fleetapp.errors import BadRequest, ClonedIdentity, NotAMember
from fleetapp.fleet.control import MemberHello
from fleetapp.hub.audit import AuditLog
from fleetapp.hub.registry import Registry, Session
from fleetapp.platform.base import Platform
from fleetapp.platform.files import storage_error
from fleetapp.types import DeviceId

HOLD_SECONDS = 2.5
"""How long a newcomer waits until it is clear whether the agent before it lives; it beats every
second."""
ECHO_SECONDS = 0.3
"""What arrives so soon may have been sent before the agent before it died (s)."""
LOOK_EVERY = 0.05
TICKET_SECONDS = 900.0
"""How long a copy that was turned away may ask for an identity of its own."""
MAX_SEEN = 8
"""PCs that are remembered for one identity."""
MAX_WARNINGS = 20


class _Seen(msgspec.Struct, frozen=True):
    version: int
    devices: dict[str, tuple[str, ...]]
    """Device id -> hardware ids in the order in which they first came, the present one last."""


class CloneWatch:
    """Turns copies away with ClonedIdentity.

    Args:
        path: JSON; which PC each device was seen on.
        platform: writes it.
        registry: who is connected.
        audit: where it is written down.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        path: Path,
        platform: Platform,
        registry: Registry,
        audit: AuditLog,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._platform = platform
        self._registry = registry
        self._audit = audit
        self._clock = clock
        self._seen = _read(path)
        self._copies: dict[str, set[str]] = {}
        """Device id -> hardware ids that were found to be copies."""
        self._tickets: dict[tuple[str, str], float] = {}
        self._spent: dict[tuple[str, str], str] = {}
        self._warnings: list[str] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the admin should know, since the start of this hub."""
        return tuple(self._warnings)

    async def admit(self, device: DeviceId, hello: MemberHello) -> None:
        """Return if the PC that greets may be that device; takes as long as it takes to be sure.

        Raises:
            ClonedIdentity: another PC is that device; this one has to become another.
        """
        if not hello.instance:
            return
        old = self._registry.get(device)
        if old is not None and old.hello.instance not in ("", hello.instance):
            await self._hold(old, hello)
        if not hello.hardware_id:
            return
        if hello.hardware_id in self._copies.get(device, set()):
            raise self._turn_away(device, hello)
        self._note(device, hello)

    async def _hold(self, old: Session, hello: MemberHello) -> None:
        """Wait until the agent before is gone, or has shown that it lives."""
        began = self._clock()
        while self._clock() - began < HOLD_SECONDS:
            if self._registry.get(old.device_id) is not old:
                return
            if old.last_heard - began > ECHO_SECONDS:
                raise self._turn_away(old.device_id, hello)
            await asyncio.sleep(LOOK_EVERY)

    def _note(self, device: DeviceId, hello: MemberHello) -> None:
        seen = self._seen.get(device, ())
        if seen and seen[-1] == hello.hardware_id:
            return
        if hello.hardware_id in seen:
            # back on a PC where it was before: in between another one has used it
            self._copies.setdefault(device, set()).update(seen[seen.index(hello.hardware_id) + 1 :])
        seen = (*(h for h in seen if h != hello.hardware_id), hello.hardware_id)[-MAX_SEEN:]
        self._seen = {**self._seen, device: seen}
        self._platform.write_private(self._path, msgspec.json.encode(_Seen(1, self._seen)))

    def _turn_away(self, device: DeviceId, hello: MemberHello) -> ClonedIdentity:
        ticket = (device, hello.instance)
        if ticket not in self._tickets:
            self._audit.write(device, "copy_turned_away", name=hello.name)
        now = self._clock()
        self._tickets = {t: end for t, end in self._tickets.items() if end > now}
        self._tickets[ticket] = now + TICKET_SECONDS
        return ClonedIdentity(
            f"Another PC is the device {device} already: this one is a copy of its state folder."
        )

    def redeem(self, device: DeviceId, instance: str, to: DeviceId) -> None:
        """Return if the copy may have an identity of its own, once: ``to``.

        Asking again with the same key is allowed: the answer may have got lost.

        Raises:
            NotAMember: nobody has turned that start of an agent away lately.
            BadRequest: it has one already.
        """
        ticket = (device, instance)
        if self._tickets.get(ticket, 0.0) <= self._clock():
            raise NotAMember("This PC is no copy of another one, as far as the coordinator knows.")
        self._spent = {t: d for t, d in self._spent.items() if t in self._tickets}
        if self._spent.setdefault(ticket, to) != to:
            raise BadRequest("This copy was given an identity of its own already.")

    def reissued(self, device: DeviceId, to: DeviceId, name: str) -> None:
        """Write down that a copy of ``device`` is the device ``to`` from now on."""
        self._audit.write(device, "copy_renamed", device=to, name=name)
        said = (
            f"{name} was a copy of the device {device} (its state folder was copied); it is the "
            f"device {to} now, as a plain member. If you do not know of such a PC, revoke both."
        )
        self._warnings = [*self._warnings[1 - MAX_WARNINGS :], said]


def _read(path: Path) -> dict[str, tuple[str, ...]]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Seen).devices
    except FileNotFoundError:
        return {}
    except msgspec.MsgspecError:
        return {}  # only a memory of where devices were: the next greetings fill it again
    except OSError as exc:
        raise storage_error(exc, path) from exc

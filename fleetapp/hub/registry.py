"""Which members are connected, and since when they have been silent.

Pure bookkeeping: the caller passes monotonic time in, so a jump of the wall clock evicts nobody.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from msgspec import structs

from fleetapp.fleet.control import GONE_AFTER, SUSPECT_AFTER, FromHub, Heartbeat, MemberHello
from fleetapp.types import DeviceId

LATE = 3.0
"""Between two looks for silent ones; more than that, and this process did not run (s)."""

Liveness = Literal["online", "suspected", "gone"]


@dataclass(eq=False)
class Session:
    """One control connection of one member."""

    device_id: DeviceId
    spki: str
    hello: MemberHello
    hosts: tuple[str, ...]
    """Where its runners can be reached, best first."""
    send: Callable[[FromHub], Awaitable[None]]
    close: Callable[[], Awaitable[None]]
    last_heard: float
    memory_free: int
    disk_free: int
    contribute: bool
    told: int = -1
    """Epoch of the membership list that was last sent to it."""
    lends: tuple[str, ...] = ("CPU",)
    reason: str = ""
    """Why it contributes or not, as it said last."""
    draining: bool = False
    """It wants no new work and pauses as soon as what runs has ended."""
    remote: str = ""
    """Where the connection came from."""
    shards: dict[str, str] = field(default_factory=dict)
    """What it holds whole: digest of the shard's manifest -> of the model's."""
    certificate_ends: float | None = None
    temperature: float | None = None

    def liveness(self, now: float) -> Liveness:
        """State by silence; ``now`` is monotonic seconds."""
        silent = now - self.last_heard
        if silent > GONE_AFTER:
            return "gone"
        return "suspected" if silent > SUSPECT_AFTER else "online"


class Registry:
    """Sessions by device; a device has at most one, the newest (a quick rejoin replaces it)."""

    def __init__(self) -> None:
        self._sessions: dict[DeviceId, Session] = {}
        self._looked: float | None = None

    def attach(self, session: Session) -> Session | None:
        """Register a session; the one it replaces is returned for the caller to close."""
        if self._looked is None:
            self._looked = session.last_heard
        old = self._sessions.get(session.device_id)
        self._sessions[session.device_id] = session
        return old

    def detach(self, session: Session) -> bool:
        """Forget a session; False if a newer one has taken its place."""
        if self._sessions.get(session.device_id) is not session:
            return False
        del self._sessions[session.device_id]
        return True

    def get(self, device_id: DeviceId) -> Session | None:
        """The live session of a device."""
        return self._sessions.get(device_id)

    def sessions(self) -> tuple[Session, ...]:
        """All, in order of arrival."""
        return tuple(self._sessions.values())

    def heard(self, session: Session, beat: Heartbeat | None, now: float) -> bool:
        """Note a sign of life; True if what the beat says changes what people see."""
        session.last_heard = now
        if beat is None:
            return False
        if beat.certificate_ends is not None:
            session.certificate_ends = beat.certificate_ends
        session.temperature = beat.temperature
        was = session.contribute, session.reason, session.draining, session.lends
        changed = was != (beat.contribute, beat.reason, beat.draining, beat.lends)
        session.lends = beat.lends
        session.memory_free = beat.memory_free
        session.disk_free = beat.disk_free
        session.contribute, session.reason = beat.contribute, beat.reason
        session.draining = beat.draining
        if beat.shards is not None:
            session.shards = beat.shards
        if beat.devices is not None:
            hardware = structs.replace(session.hello.hardware, devices=beat.devices)
            session.hello = structs.replace(session.hello, hardware=hardware)
            changed = True
        return changed

    def silent(self, now: float) -> tuple[Session, ...]:
        """Sessions to be ended because nothing was heard for too long.

        Asked several times a second. If this hub itself has slept or was stopped in between, nobody
        else
        is to blame: all get time to be heard again.
        """
        looked, self._looked = self._looked, now
        if looked is not None and now - looked > LATE:
            for session in self._sessions.values():
                session.last_heard = max(session.last_heard, now - SUSPECT_AFTER)
        return tuple(s for s in self._sessions.values() if s.liveness(now) == "gone")

"""One formed ring at one stage: what comes in, signs of life, and how it ends.

Every stage gives the next one a sign of life several times a second, from a thread of its own, and
watches the one before. So a process that is frozen, or a cable that is pulled, is noticed by the
stage behind it and named, whatever anybody computes; how long computing may take is another
matter, and the head's. What is wrong is passed on around the ring by the threads that read.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from fleetapp.engine.neighbours import (
    Self,
    before,
    capital,
    name_of,
    name_of_previous,
    previous_stage,
)
from fleetapp.engine.pipe import Link
from fleetapp.engine.transport import LinkLost, Received, RingEvent
from fleetapp.errors import ChainBroken, FleetError, PeerTimeout, StageSilent
from fleetapp.wire.channel import Connection
from fleetapp.wire.frames import Fault, Passed, Ping
from fleetapp.wire.meter import Meter

log = logging.getLogger("fleetapp.engine.ring")

BEAT_SECONDS: Final = 0.25
TELLING_SECONDS: Final = 0.3
"""To tell the next stage of a fault; one that takes longer does not listen."""
_IDLE_SLICE: Final = 60.0
_RECENT: Final = 3.0
"""A hop that is lost so soon after this process stood still was given up for that."""


class Epoch:
    """One formed, or being formed, ring.

    Args:
        link: what the agent said of it.
        me: this stage.
        post: takes events.
        message_deadline: seconds for one whole message, in either direction.
        patience: seconds without a sign of life after which a neighbour is given up.
        lock: the ring's; it guards the fields.
        meter: hears how long transfers take.
    """

    def __init__(
        self,
        link: Link,
        me: Self,
        post: Callable[[RingEvent], None],
        *,
        message_deadline: float,
        patience: float,
        lock: threading.Lock,
        meter: Meter,
    ) -> None:
        self._meter = meter
        self.link = link
        self.heard: tuple[Passed, ...] = ()
        """What the stage before last said of the stages between the head and this one."""
        self.step = 0
        """The last one sent on."""
        self.fault: Fault | None = None
        """What broke it."""
        self._culprit: tuple[int, str] | None = None
        self.told = threading.Event()
        """The next stage knows of the fault, or will not."""
        self.next: Connection | None = None
        self.prev: Connection | None = None
        self.reading = False
        self.refused: FleetError | None = None
        self.changed = threading.Event()
        """Set when ``prev`` or ``refused`` is, and when the epoch is over."""
        self.stop = threading.Event()
        self._heard = math.inf
        """When the stage before was last heard."""
        self._still = (-math.inf, 0.0)
        """When this process last noticed that it had stood still, and for how long."""
        self._me = me
        self._post = post
        self._deadline = message_deadline
        self._patience = patience
        self._lock = lock

    def beat(self, connection: Connection) -> None:
        """Give the next stage signs of life until the epoch is over.

        One that does not take them is noticed by the stage behind it, or by whoever sends next.
        """
        count = 0
        while not self.stop.wait(BEAT_SECONDS):
            count += 1
            trail: tuple[Passed, ...] = ()
            if self.link.stage > 0:
                trail = (*self.heard, Passed(self._me.device_id, self.step))
            try:
                connection.send(Ping(self.link.epoch, count, trail), deadline=self._deadline)
            except FleetError:
                return

    def read(self, connection: Connection) -> None:
        """Post frames until the stage before leaves, falls silent or passes on a fault, or the
        epoch is over.
        """
        connection.patience = self._patience
        connection.transferred = partial(self._meter.transfer, before(self.link).device_id)
        self._heard = time.monotonic()
        while not self.stop.is_set():
            try:
                frame, payload = connection.recv(self._deadline, idle=_IDLE_SLICE)
            except FleetError as exc:
                if isinstance(exc, PeerTimeout) and not connection.closed:
                    continue
                lost = self._lost(exc)
                error = lost.error
                fault = Fault(lost.epoch, lost.stage, lost.device, error.code, error.message)
                self._over(fault, lost)
                break
            now = time.monotonic()
            if now - self._heard > self._patience:  # else the wait would have been given up
                self._still = (now, now - self._heard)
            self._heard = now
            if isinstance(frame, Ping):
                self.heard = frame.trail
            elif isinstance(frame, Fault) and frame.slot < 0 and frame.epoch == self.link.epoch:
                self._over(frame, Received(frame, payload))
                break
            else:
                self._post(Received(frame, payload))
        connection.close()

    @property
    def blamed(self) -> tuple[int, str] | None:
        """Stage and device that broke the ring, as far as it was told or is this one."""
        return self._culprit if self.fault is None else (self.fault.stage, self.fault.device)

    def own_fault(self, exc: FleetError) -> ChainBroken | None:
        """What to say of a hop that broke because this process had stood still; None if it ran.

        Who was not heard for so long without being given up was not listened to. The thread that
        sends may come to know of it before the one that reads.
        """
        now = time.monotonic()
        still = self._still[1] if now - self._still[0] < _RECENT else 0.0
        if not isinstance(exc, PeerTimeout) and now - self._heard > self._patience:
            still = now - self._heard
        if not still:
            return None
        self._culprit = (self.link.stage, self._me.device_id)
        return ChainBroken(
            f"{capital(name_of(self._me, self.link))} stood still for {still:.1f} s: {exc.message}"
        )

    def _lost(self, exc: FleetError) -> LinkLost:
        """The stage before left or is silent; or this process stood still and was left."""
        link = self.link
        if (own := self.own_fault(exc)) is not None:
            return LinkLost(link.epoch, own, link.stage, self._me.device_id)
        # Who fell silent is not to be linked again at once; who left may have come back.
        kind = StageSilent if isinstance(exc, PeerTimeout) else ChainBroken
        error = kind(f"{capital(name_of_previous(link))} left the chain: {exc.message}")
        return LinkLost(link.epoch, error, previous_stage(link), before(link).device_id)

    def _over(self, fault: Fault, event: RingEvent) -> None:
        """The ring is broken: tell the loop and the next stage, and free whoever waits for it."""
        with self._lock:
            if self.stop.is_set():
                return
            self.fault, following = fault, self.next
        self._post(event)
        assert following is not None, "nobody reads before both hops stand"
        try:
            following.send(fault, deadline=TELLING_SECONDS)
        except FleetError as exc:
            log.info("the next stage could not be told: %s", exc.message)
        finally:
            self.told.set()
            following.close()

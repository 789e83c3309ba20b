"""Tells the members of a new membership list: soon, once for many changes, and only what changed.

A list of 500 members weighs a quarter of a megabyte. Sent whole to everybody after each of 500
joins it would add up to gigabytes, so changes that come together are told together, and whoever has
the list before is told the difference; the authority's signature is over the whole all the same.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection

from fleetapp.fleet.control import (
    FromHub,
    MemberHello,
    MembershipUpdate,
    Signed,
)
from fleetapp.fleet.membership import Membership, difference, fingerprint
from fleetapp.hub.registry import Session

PAUSE = 0.2
"""Shortest time between two rounds; a change after a quiet while is told at once (s)."""
REMEMBERED = 64
"""Lists that a difference can be told from; who has an older one is sent the whole."""


class MembershipPush:
    """One per hub.

    Args:
        newest: the list that counts, opened and as it was signed.
        sessions: who is connected.
        send: writes one message to one session, in order, without waiting for it.
    """

    def __init__(
        self,
        newest: Callable[[], tuple[Membership, Signed]],
        sessions: Callable[[], Collection[Session]],
        send: Callable[[Session, FromHub], None],
    ) -> None:
        self._newest = newest
        self._sessions = sessions
        self._send = send
        self._lists: OrderedDict[int, Membership] = OrderedDict()
        self._print = (-1, "")
        self._timer: asyncio.TimerHandle | None = None
        self._earliest = 0.0

    def for_newcomer(self, hello: MemberHello) -> tuple[Signed | None, int]:
        """What the greeting of a member has to bring, None if it has it; and the epoch of that."""
        membership, signed = self._remember()
        if self._print[0] != membership.epoch:
            self._print = membership.epoch, fingerprint(signed)
        return None if hello.holds == self._print[1] else signed, membership.epoch

    def changed(self) -> None:
        """There is a new list: tell everybody who does not have it."""
        self._remember()
        if self._timer is not None or not self._sessions():
            return
        loop = asyncio.get_running_loop()
        if loop.time() >= self._earliest:
            self._tell()
        else:
            self._timer = loop.call_at(self._earliest, self._tell)

    def stop(self) -> None:
        """Tell nobody any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _tell(self) -> None:
        self._timer = None
        self._earliest = asyncio.get_running_loop().time() + PAUSE
        messages: dict[int, FromHub] = {}
        for session in self._sessions():
            self._tell_one(session, messages)

    def catch_up(self, session: Session) -> None:
        """Tell one member what changed while it was being greeted."""
        self._tell_one(session, {})

    def _tell_one(self, session: Session, messages: dict[int, FromHub]) -> None:
        """``messages``: what has been made already, by the epoch it starts from."""
        membership, signed = self._remember()
        told, session.told = session.told, membership.epoch
        if told == membership.epoch:
            return
        told = told if session.hello.holds else -1
        if told not in messages:
            before = self._lists.get(told)
            messages[told] = (
                MembershipUpdate(membership=signed)
                if before is None
                else difference(before, membership, signed)
            )
        self._send(session, messages[told])

    def _remember(self) -> tuple[Membership, Signed]:
        membership, signed = self._newest()
        self._lists[membership.epoch] = membership
        while len(self._lists) > REMEMBERED:
            self._lists.popitem(last=False)
        return membership, signed

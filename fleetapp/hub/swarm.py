"""Which members may give a shard's chunks to the one that is told to hold it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec
from msgspec import structs

from fleetapp.fleet.control import Assign, FromHub, Neighbour, Signed
from fleetapp.hub.registry import Session
from fleetapp.models.manifest import digest

MOST = 8
"""Sources named to one member."""


@dataclass(frozen=True)
class Holder:
    """A member that serves chunks, and the shards it holds: manifest digest -> model digest."""

    address: Neighbour
    shards: Mapping[str, str]


def choose(
    wanted: Mapping[str, str], holders: Iterable[Holder], receiver: str, most: int = MOST
) -> tuple[Neighbour, ...]:
    """The best sources, best first. Pure.

    Who holds the very shard comes before who holds another part of the same model, whose chunks
    may be the same ones. Beyond that every receiver has an order of its own, so that the same
    members are not asked by everybody.

    Args:
        wanted: manifest digest -> model digest of what is to be held.
        holders: who serves anything.
        receiver: device id of who is going to fetch.
        most: sources to name.
    """
    models = set(wanted.values())
    ranked = []
    for holder in holders:
        device = holder.address.device_id
        if device == receiver:
            continue
        exact = sum(name in holder.shards for name in wanted)
        if not exact and models.isdisjoint(holder.shards.values()):
            continue
        mixed = hashlib.sha256(f"{receiver}>{device}".encode()).digest()
        ranked.append((-exact, mixed, holder.address))
    return tuple(address for _, _, address in sorted(ranked, key=lambda r: r[:2])[:most])


class SourceBook:
    """Adds the sources to assignments on their way out.

    Args:
        sessions: who is connected.
        coordinator: device id of this PC, which serves everybody anyway.
    """

    def __init__(self, sessions: Callable[[], Collection[Session]], coordinator: str) -> None:
        self._sessions = sessions
        self._coordinator = coordinator

    def with_sources(self, receiver: str, message: FromHub) -> FromHub:
        """An assignment with its sources; any other message as it is."""
        if not isinstance(message, Assign) or receiver == self._coordinator:
            return message
        wanted = dict(_names(m) for m in (message.manifest, message.draft) if m is not None)
        holders = (
            Holder(Neighbour(s.device_id, s.spki, s.hosts, s.hello.shard_port), s.shards)
            for s in self._sessions()
            if s.contribute and s.hello.shard_port and s.device_id != self._coordinator
        )
        return structs.replace(message, sources=choose(wanted, holders, receiver))


class _Model(msgspec.Struct, frozen=True):
    model_digest: str


def _names(manifest: Signed) -> tuple[str, str]:
    model = msgspec.json.decode(manifest.payload, type=_Model)
    return digest(manifest.payload), model.model_digest

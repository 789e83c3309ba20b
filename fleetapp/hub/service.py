"""What the HTTP layer may ask of a hub: the seam between `api` and everything below it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from fleetapp.engine import pipe
from fleetapp.types import ChainView


class ServedModel(msgspec.Struct, frozen=True):
    """A model that has, or is getting, a chain."""

    model_id: str
    created: int
    """Unix seconds."""
    context_length: int
    ready: bool
    devices: tuple[str, ...] = ()
    """Names of the nodes of its chain, in stage order."""
    reason: str = ""
    """Why it is not ready; empty if it is."""


class Health(msgspec.Struct, frozen=True):
    """The truth, for ``/healthz``: ``ok`` only if a question would be answered now."""

    ok: bool
    reason: str
    nodes_online: int
    chains_live: int


class ChainReport(msgspec.Struct, frozen=True):
    """A chain and what its head has counted; None while it has no head that answers."""

    view: ChainView
    head: pipe.RunnerStats | None = None


class Queued(msgspec.Struct, frozen=True):
    """All chains are busy; ``place`` is the request's in the queue, from 1."""

    request_id: str
    place: int


class Served(msgspec.Struct, frozen=True):
    """Who serves an answer from now on: names of the PCs, in stage order."""

    request_id: str
    devices: tuple[str, ...]


Event = Queued | Served | pipe.Started | pipe.Delta | pipe.Finished


class CompletionService(Protocol):
    """Answers requests. Implemented by the hub's router, and by a proxy on other members."""

    def served(self) -> tuple[ServedModel, ...]:
        """Models that can be named in a request."""
        ...

    def health(self) -> Health:
        """State now; never blocks."""
        ...

    def generate(self, model: str, request: pipe.Generate) -> AsyncIterator[Event]:
        """Stream one answer.

        Perhaps ``Queued`` several times, then ``Served`` and ``Started``, and last ``Finished``;
        ``Served`` again before it if other PCs had to take over. A failure is
        raised, or is a ``Finished`` whose reason is "error". Closing the iterator early cancels
        the request.

        Raises:
            NotFound: no such model.
            FleetError: before ``Started``, anything that keeps the request from running.
        """
        ...

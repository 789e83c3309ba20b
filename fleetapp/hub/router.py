"""Brings a request to a chain, and its answer back: on the same stream, whatever breaks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Final, Protocol

from msgspec import structs

from fleetapp.engine import pipe
from fleetapp.engine.exchange import RequestEvent
from fleetapp.errors import (
    FleetError,
    FleetUnavailable,
    NoCapacity,
    NotFound,
    RunnerFailed,
    from_code,
)
from fleetapp.hub import affinity
from fleetapp.hub.admission import Admission
from fleetapp.hub.affinity import Affinity
from fleetapp.hub.chains import Chain
from fleetapp.hub.service import ChainReport, Event, Health, Queued, Served, ServedModel
from fleetapp.hub.serving import ModelServer
from fleetapp.hub.stage import Stage

log = logging.getLogger("fleetapp.hub.router")

WAIT_LIVE: Final = 60.0
"""How long a request waits for a chain that is being repaired (s)."""
STATS_SECONDS: Final = 2.0
"""How long the head of a chain may take to say what it has counted (s)."""
RETRYABLE: Final = ("chain_broken", "stage_silent", "runner_failed", "unavailable")
PLACES: Final = 32
"""Requests that run in a chain at once; more wait in the queue."""
RETRY_PAUSE: Final = 0.05


class Head(Protocol):
    """The head runner of a chain, on this PC or another."""

    def generate(self, request: pipe.Generate) -> AsyncIterator[RequestEvent]: ...
    async def stats(self, deadline: float = 5.0) -> pipe.RunnerStats: ...
    async def trace(self, deadline: float = 5.0) -> pipe.Trace: ...


class Router:
    """Implements ``CompletionService`` over the chains of this hub.

    Args:
        servers: of the wanted models, asked at each call.
        head: of a stage 0, or None while its runner is not there.
        nodes_online: for the health report.
        created: Unix seconds the fleet was made, reported per model.
        named: puts the names of PCs into a sentence that speaks of device ids.
    """

    def __init__(
        self,
        servers: Callable[[], tuple[ModelServer, ...]],
        head: Callable[[Stage], Head | None],
        nodes_online: Callable[[], int],
        created: int,
        named: Callable[[str], str] = lambda text: text,
    ) -> None:
        self._servers = servers
        self._head = head
        self._nodes_online = nodes_online
        self._created = created
        self._named = named
        self._affinity: Affinity[str] = Affinity()
        self._queues: dict[str, Admission] = {}
        self._closing = False

    def close(self) -> None:
        """What breaks from now on is not tried again: the coordinator stops."""
        self._closing = True

    def served(self) -> tuple[ServedModel, ...]:
        """One entry per wanted model."""
        found = []
        for server in self._servers():
            chains = server.live or server.chains
            found.append(
                ServedModel(
                    model_id=server.wanted.model_id,
                    created=self._created,
                    context_length=max((c.context_length for c in chains), default=0),
                    ready=bool(server.live),
                    devices=tuple(dict.fromkeys(d for c in chains for d in c.devices)),
                    reason="" if server.live else server.reason,
                )
            )
        return tuple(found)

    def health(self) -> Health:
        """Ok only if some chain is live."""
        servers = self._servers()
        live = sum(len(s.live) for s in servers)
        if live:
            reason = "Serving."
        elif servers:
            reason = servers[0].reason
        else:
            reason = "No model is being served; start one with 'fleetapp serve MODEL'."
        return Health(
            ok=live > 0, reason=reason, nodes_online=self._nodes_online(), chains_live=live
        )

    async def reports(self) -> tuple[ChainReport, ...]:
        """Every chain, and what its head has counted."""
        reports = []
        for server in self._servers():
            views = zip(server.chains, server.views(), strict=True)
            reports += [ChainReport(view, await self._counted(chain)) for chain, view in views]
        return tuple(reports)

    async def trace(self, model: str) -> tuple[pipe.StepRecord, ...]:
        """The most recent steps of a model's first chain.

        Raises:
            NotFound, NoCapacity: no such chain.
            RunnerFailed: its head is gone or does not answer.
        """
        server = self._pick(model)
        chain = next(iter(server.live), None) or server.chains[0]
        head = self._head_of(chain)
        if head is None:
            raise RunnerFailed("The head of the chain is gone.")
        return (await head.trace()).steps

    async def _counted(self, chain: Chain) -> pipe.RunnerStats | None:
        head = self._head_of(chain)
        if head is None:
            return None
        try:
            return await head.stats(STATS_SECONDS)
        except FleetError as exc:
            log.info("no counters of chain %s: %s", chain.name, exc.message)
            return None

    def _head_of(self, chain: Chain) -> Head | None:
        return self._head(chain.head) if chain.head is not None else None

    # ------------------------------------------------------------------ one answer

    async def generate(self, model: str, request: pipe.Generate) -> AsyncIterator[Event]:
        """See ``CompletionService.generate``.

        The tokens of an answer are remembered here. A chain that loses a PC goes on by itself as
        soon as it is whole again; one that loses its head, or is not mended in time, gives its
        answers back, and they go on in another chain from the token they had reached.
        """
        server = self._pick(model)
        names = affinity.names(request)
        queue = self._queue(server)
        async with contextlib.aclosing(queue.enter(request.sampling.priority)) as places:
            async for place in places:
                yield Queued(request.request_id, place)
        queue.started()  # nothing else runs before it is counted as waiting for a chain
        flight = _Flight(_with_seed(request))
        try:
            while True:
                chain = await self._chain_for(server, names, flight)
                head, used = self._head_of(chain), chain.head
                chain.running += 1
                try:
                    async with contextlib.aclosing(flight.run(head)) as events:
                        async for event in events:
                            if isinstance(event, pipe.Delta):
                                self._affinity.note(names, chain.name)
                            elif chain.devices != flight.devices and not _failed(event):
                                flight.devices = chain.devices
                                yield Served(request.request_id, chain.devices)
                            yield self._translated(flight.whole(event))
                finally:
                    chain.running -= 1
                    server.nodes_changed()
                if flight.failure is None:
                    return
                if self._closing:
                    raise FleetUnavailable(
                        "The coordinator is shutting down.",
                        remedy="Ask again when it is back, or another PC coordinates.",
                    )
                if time.monotonic() >= flight.until:
                    raise self._final(flight.failure)
                log.info("an answer is to go on elsewhere: %s", flight.failure.message)
                if chain.head is used and flight.attempts > 1:
                    chain.note_trouble()
                await asyncio.sleep(min(RETRY_PAUSE * 2**flight.attempts, 1.0))
        finally:
            queue.look()

    def _translated(self, event: Event) -> Event:
        if isinstance(event, pipe.Finished) and event.message:
            return structs.replace(event, message=self._named(event.message))
        return event

    def _final(self, failure: FleetError) -> FleetError:
        remedy = failure.remedy or "Ask again; 'fleetapp fleet status' shows which PCs are there."
        return from_code(failure.code, self._named(failure.message), remedy)

    async def _chain_for(
        self, server: ModelServer, names: tuple[bytes, ...], flight: _Flight
    ) -> Chain:
        """The chain for the next attempt.

        Raises:
            NoCapacity: there was none until then.
        """
        server.waiting += 1
        try:
            live = await server.wait_live(max(flight.until - time.monotonic(), 0.1))
        finally:
            server.waiting -= 1
        if not live:
            how = "cannot go on with this answer" if flight.failure else "is not being served yet"
            raise NoCapacity(
                f"{server.wanted.model_id} {how}: {self._named(server.reason)}",
                remedy="Somebody must let a PC contribute; 'fleetapp fleet nodes' shows why each "
                "does not."
                if server.short
                else "Wait a moment and ask again; 'fleetapp fleet status' shows the progress.",
            )
        chains: dict[str, Chain] = {c.name: c for c in server.live}
        name = self._affinity.choose(names, tuple(chains), lambda n: chains[n].running)
        return chains[name]

    def _queue(self, server: ModelServer) -> Admission:
        model = server.wanted.model_id
        queue = self._queues.get(model)
        if queue is None:
            queue = self._queues[model] = Admission(lambda: self._room(model))
        found = queue
        server.queued = lambda: found.waiting
        return queue

    def _room(self, model: str) -> int:
        """A model that nobody serves yet lets its first ones in: they wait for it to be ready."""
        server = next((s for s in self._servers() if s.wanted.model_id == model), None)
        if server is None:
            return PLACES
        return PLACES * max(1, len(server.live)) - server.running - server.waiting

    def _pick(self, model: str) -> ModelServer:
        servers = self._servers()
        for server in servers:
            if server.wanted.model_id == model:
                return server
        if not servers:
            raise NoCapacity(
                "No model is being served.",
                remedy="Start one with 'fleetapp serve MODEL' on the coordinator.",
            )
        names = ", ".join(s.wanted.model_id for s in servers)
        raise NotFound(
            f"There is no model '{model}' here.", remedy=f"Ask one that is served: {names}."
        )


def _failed(event: Event) -> bool:
    """An error that comes first deserves a status of its own: nothing is said before it."""
    return isinstance(event, pipe.Finished) and event.reason in ("error", "cancelled")


class _Flight:
    """One answer over all its attempts."""

    def __init__(self, request: pipe.Generate) -> None:
        self.until = time.monotonic() + WAIT_LIVE
        """When it is given up unless something comes of it before."""
        self.attempts = 0
        """Since the last token."""
        self.devices: tuple[str, ...] = ()
        """Who serves it, as the client was told last."""
        self.failure: FleetError | None = None
        """Why the last attempt ended, unless the answer did."""
        self._request = request
        self._said: list[int] = []
        self._started = False
        self._moved = False
        self._began = time.monotonic()
        self._first_token = 0.0

    def whole(self, event: Event) -> Event:
        """The end of an answer that several heads wrote has the time of all of it."""
        if not isinstance(event, pipe.Finished) or event.timings is None or not self._moved:
            return event
        timings = structs.replace(
            event.timings,
            total=time.monotonic() - self._began,
            first_token=self._first_token,
        )
        return structs.replace(event, timings=timings)

    async def run(self, head: Head | None) -> AsyncGenerator[Event]:
        """One attempt: events that the client has not seen, until the end or a failure."""
        self.failure = None
        if head is None:
            self._fail(RunnerFailed("The head of the chain is gone."))
            return
        stream = head.generate(structs.replace(self._request, said=tuple(self._said)))
        try:
            async for event in stream:
                if isinstance(event, pipe.Finished) and event.code in RETRYABLE:
                    self._fail(from_code(event.code, event.message, event.remedy))
                    return
                if isinstance(event, pipe.Delta):
                    if not self._said:
                        self._first_token = time.monotonic() - self._began
                    self._said += event.token_ids
                    self.attempts = 0
                if not isinstance(event, pipe.Started):
                    yield event
                elif not self._started:
                    self._started = True
                    yield event
        except RunnerFailed as exc:
            self._fail(exc)
        finally:
            await stream.aclose()  # type: ignore[attr-defined]

    def _fail(self, error: FleetError) -> None:
        self.failure = error
        self._moved = True
        self.attempts += 1
        if self.attempts == 1:
            self.until = time.monotonic() + WAIT_LIVE


def _with_seed(request: pipe.Generate) -> pipe.Generate:
    """Drawn here and not by a head, so that another head would choose the same tokens."""
    if request.sampling.seed is not None:
        return request
    seed = int.from_bytes(os.urandom(8), "big") >> 1
    return structs.replace(request, sampling=structs.replace(request.sampling, seed=seed))

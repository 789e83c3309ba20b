"""Brings a request to the head of a chain and its events back."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from msgspec import structs

from fleetapp.engine import pipe
from fleetapp.errors import FleetError, NoCapacity, NotFound, RunnerFailed
from fleetapp.hub.chains import ChainKeeper
from fleetapp.hub.service import ChainReport, Event, Health, ServedModel

log = logging.getLogger("fleetapp.hub.router")

WAIT_LIVE = 60.0
"""How long a request waits for a chain that is being repaired (s)."""
STATS_SECONDS = 2.0
"""How long the head of a chain may take to say what it has counted (s)."""
RETRYABLE = ("chain_broken", "runner_failed", "unavailable")


class Head(Protocol):
    """The head runner of a chain, held by this very PC."""

    def generate(self, request: pipe.Generate) -> AsyncIterator[Event]: ...
    async def stats(self, deadline: float = 5.0) -> pipe.RunnerStats: ...
    async def trace(self, deadline: float = 5.0) -> pipe.Trace: ...


class Router:
    """Implements ``CompletionService`` over the chains of this hub.

    Args:
        chains: the keepers, asked at each call.
        head: the head of an assignment, or None while it is not loaded.
        nodes_online: for the health report.
        created: Unix seconds the fleet was made, reported per model.
        named: puts the names of PCs into a sentence that speaks of device ids.
    """

    def __init__(
        self,
        chains: Callable[[], tuple[ChainKeeper, ...]],
        head: Callable[[str], Head | None],
        nodes_online: Callable[[], int],
        created: int,
        named: Callable[[str], str] = lambda text: text,
    ) -> None:
        self._chains = chains
        self._head = head
        self._nodes_online = nodes_online
        self._created = created
        self._named = named

    def served(self) -> tuple[ServedModel, ...]:
        """One entry per wanted model."""
        return tuple(
            ServedModel(
                model_id=c.wanted.model_id,
                created=self._created,
                context_length=c.context_length,
                ready=c.live,
                devices=c.devices,
            )
            for c in self._chains()
        )

    def health(self) -> Health:
        """Ok only if some chain is live."""
        chains = self._chains()
        live = sum(c.live for c in chains)
        if live:
            reason = "Serving."
        elif chains:
            reason = chains[0].reason
        else:
            reason = "No model is being served; start one with 'fleetapp serve MODEL'."
        return Health(
            ok=live > 0, reason=reason, nodes_online=self._nodes_online(), chains_live=live
        )

    async def reports(self) -> tuple[ChainReport, ...]:
        """Every chain, and what its head has counted."""
        return tuple([ChainReport(c.view(), await self._counted(c)) for c in self._chains()])

    async def trace(self, model: str) -> tuple[pipe.StepRecord, ...]:
        """The most recent steps of a model's chain.

        Raises:
            NotFound, NoCapacity: no such chain.
            RunnerFailed: its head is gone or does not answer.
        """
        head = self._head(self._pick(model).head_assignment)
        if head is None:
            raise RunnerFailed("The head of the chain is gone.")
        return (await head.trace()).steps

    async def _counted(self, keeper: ChainKeeper) -> pipe.RunnerStats | None:
        head = self._head(keeper.head_assignment)
        if head is None:
            return None
        try:
            return await head.stats(STATS_SECONDS)
        except FleetError as exc:
            log.info("no counters of chain %s: %s", keeper.chain, exc.message)
            return None

    async def generate(self, model: str, request: pipe.Generate) -> AsyncIterator[Event]:
        """See ``CompletionService.generate``.

        A chain that breaks before the first token costs the client nothing but time: the request
        is run again on the repaired chain.
        """
        keeper = self._pick(model)
        end = time.monotonic() + WAIT_LIVE
        started = False
        while True:
            keeper.waiting += 1
            try:
                await keeper.wait_live(max(end - time.monotonic(), 0.1))
            finally:
                keeper.waiting -= 1
            head = self._head(keeper.head_assignment)
            if head is None:
                raise RunnerFailed("The head of the chain is gone.")
            again = False
            delivered = False
            keeper.running += 1
            stream = head.generate(request)
            try:
                async for event in stream:
                    if isinstance(event, pipe.Started):
                        if not started:
                            started = True
                            yield event
                        continue
                    if isinstance(event, pipe.Finished) and not delivered:
                        again = event.code in RETRYABLE and time.monotonic() < end
                        if again:
                            log.info("request is run again: %s", event.message)
                            break
                    delivered = delivered or isinstance(event, pipe.Delta)
                    if isinstance(event, pipe.Finished) and event.message:
                        event = structs.replace(event, message=self._named(event.message))  # noqa: PLW2901
                    yield event
            finally:
                keeper.running -= 1
                keeper.nodes_changed()
                await stream.aclose()  # type: ignore[attr-defined]
            if not again:
                return
            keeper.note_trouble()

    def _pick(self, model: str) -> ChainKeeper:
        chains = self._chains()
        for keeper in chains:
            if keeper.wanted.model_id == model:
                return keeper
        if not chains:
            raise NoCapacity(
                "No model is being served.",
                remedy="Start one with 'fleetapp serve MODEL' on the coordinator.",
            )
        names = ", ".join(c.wanted.model_id for c in chains)
        raise NotFound(f"There is no model '{model}' here.", remedy=f"Served now: {names}.")

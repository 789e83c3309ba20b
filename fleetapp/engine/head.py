"""The generation loop: requests in, frames around the ring, text out.

One thread owns everything here. It reacts to events (``handle``) and begins at most one frame at
a time (``pump``), so that a cancel or a new request is seen between any two inferences. While a
frame travels, the text of the tokens before it is decoded and sent.

A ring comes and goes, requests stay: when it breaks they are held and go on in the next one.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetapp.engine import pipe
from fleetapp.engine.drafting.speculator import Speculator
from fleetapp.engine.neighbours import after, next_stage
from fleetapp.engine.orders import Opened, to_frame
from fleetapp.engine.pace import Pace
from fleetapp.engine.pipe_io import Outlet
from fleetapp.engine.prompts import Prepared, TextHost
from fleetapp.engine.requests import Requests
from fleetapp.engine.scheduler import Frame, Limits, Scheduler
from fleetapp.engine.stats import runner_stats
from fleetapp.engine.steplog import StepLog
from fleetapp.engine.transport import (
    LinkFailed,
    LinkLost,
    LinkUp,
    Received,
    RingEvent,
    Transport,
)
from fleetapp.engine.worker import Worker
from fleetapp.errors import (
    ChainBroken,
    FleetError,
    FleetUnavailable,
    KeptLost,
    StageSilent,
    StaleFrame,
    from_code,
)
from fleetapp.wire.frames import (
    Activations,
    Close,
    Drop,
    Fault,
    Keep,
    Open,
    Passed,
    Spill,
    Step,
    Tokens,
)
from fleetapp.wire.frames import Frame as WireFrame

log = logging.getLogger("fleetapp.engine.head")

LOOK_SECONDS: Final = 1.0
"""How often the head looks whether stages get on while it waits for them."""
_LONG: Final = 16
"""Positions of one sequence from which computing them is felt."""


def _draw_seed() -> int:
    return int.from_bytes(os.urandom(8), "big") >> 1


@dataclass(slots=True)
class _Chain:
    """One epoch. ``answered`` is when the ring last got on or, owing nothing, was asked."""

    link: pipe.Link
    scheduler: Scheduler
    answered: float
    pace: Pace
    progress: tuple[Passed, ...] = ()

    @property
    def alone(self) -> bool:
        return self.link.stages == 1

    @property
    def owes(self) -> bool:
        """The ring has yet to answer a frame."""
        return bool(self.scheduler.in_flight)


class Head:
    """Serves requests over one chain, epoch after epoch.

    Every Generate gets exactly one Finished. When the chain breaks or is formed anew, requests
    are held and go on, on the same stream, as soon as the next link is live; those that come
    meanwhile wait for it. Under ``exact`` they get the tokens that they would have got anyway.
    One for which there is no ring for ``hold_seconds`` ends with ``chain_broken``.

    Args:
        worker: stage 0.
        transport: this runner's hops.
        text: tokenizer; only ``stream`` is used here.
        submit: hands a request to the tokenizer's thread under a ticket; its Prepared comes
            back through ``handle``.
        out: writes to the agent.
        eos: every id that ends an answer.
        step_deadline: seconds after which the ring is broken if it owes an answer and no stage
            gets on. That processes and cables are alive is the transport's to watch.
        hold_seconds: see ``pipe.Load``.
        slots: the most requests in one running batch.
        speculator: proposes drafts; none if left out.
        clock: monotonic seconds.
        entropy: draws a seed for requests that bring none.
    """

    def __init__(
        self,
        worker: Worker,
        transport: Transport,
        text: TextHost,
        submit: Callable[[int, pipe.Generate], None],
        out: Outlet,
        *,
        eos: frozenset[int],
        step_deadline: float,
        hold_seconds: float = 60.0,
        slots: int = 32,
        speculator: Speculator | None = None,
        clock: Callable[[], float] = time.monotonic,
        entropy: Callable[[], int] = _draw_seed,
    ) -> None:
        self._worker = worker
        self._transport = transport
        self._out = out
        self._step_deadline = step_deadline
        self._slots = slots
        self._clock = clock
        self._forming: pipe.Link | None = None
        self._chain: _Chain | None = None
        self._generation = 0
        self._log = StepLog()
        self._speculator = speculator or Speculator()
        self._requests = Requests(
            text,
            submit,
            out,
            eos=eos,
            context=worker.executor.info.max_context,
            hold_seconds=hold_seconds,
            speculator=self._speculator,
            clock=clock,
            entropy=entropy,
        )

    def handle(self, event: pipe.ToRunner | RingEvent | Prepared) -> None:
        """React to a message of the agent, an event of the ring, or a tokenised prompt."""
        match event:
            case Received(frame, _, at):
                self._receive(frame, at)
            case Prepared():
                self._requests.prepared(event)
            case pipe.Generate():
                self._requests.generate(event)
            case pipe.Cancel(request_id):
                self._requests.cancel(request_id)
            case pipe.QueryStats() | pipe.QueryTrace():
                self._told(event)
            case pipe.Link():
                self._form(event)
            case pipe.Unlink():
                self._unlink(event)
            case LinkUp(epoch) if self._forming is not None and self._forming.epoch == epoch:
                self._live(self._forming)
            case LinkFailed(epoch, error) if self._forming and self._forming.epoch == epoch:
                self._forming = None
                self._requests.hold(error)
                self._out(pipe.Failed(error.code, error.message, error.remedy))
            case LinkLost(epoch, error, stage, device) if self._chain is not None:
                if self._chain.link.epoch == epoch:
                    self._break(self._chain, error, stage, device)
            case _:
                log.debug("%s is of no concern now", type(event).__name__)

    def pump(self) -> bool:
        """Begin one frame if there is one, then say what became safe to say.

        Call it only when every event at hand has been handled: an answer that lies in the
        queue must not be counted as missing.

        Returns:
            Whether there may be more to do at once.
        """
        if self._chain is None:
            self._requests.expire()
        elif not self._chain.alone:
            self._watch(self._chain)
        busy = self._chain is not None and self._launch_next(self._chain)
        self._requests.say()
        if self._chain is not None:
            self._obey(self._chain)  # what ended just now is not held until the next event
        return busy or self._speculator.idle()

    def wait_seconds(self) -> float | None:
        """How long ``pump`` need not be called if no event comes."""
        chain = self._chain
        if chain is None:
            end = self._requests.due()
            return None if end is None else max(0.0, end - self._clock())
        if chain.alone or not chain.owes:
            return None
        return min(LOOK_SECONDS, max(0.0, chain.answered + self._step_deadline - self._clock()))

    # -- the chain -------------------------------------------------------------------------

    def _form(self, link: pipe.Link) -> None:
        self._leave()
        self._requests.hold()
        self._forming = link
        self._worker.reset(link.epoch, link.stage)
        self._transport.link(link)

    def _live(self, link: pipe.Link) -> None:
        info = self._worker.executor.info
        limits = Limits(
            kv_blocks=min(link.kv_blocks, info.capacity_tokens // link.block_size),
            block_size=link.block_size,
            frames=link.stages,
            slots=self._slots,
            spill_blocks=link.spill_blocks,
        )
        scheduler = Scheduler(limits, first_generation=self._generation)
        pace = Pace(most=limits.frame_tokens)
        scheduler.pace(pace.chunk)
        self._forming = None
        self._speculator.relinked()
        self._chain = _Chain(link, scheduler, self._clock(), pace)
        self._out(pipe.Linked(link.epoch))
        self._requests.serve(scheduler, min(info.max_context, limits.tokens))

    def _unlink(self, order: pipe.Unlink) -> None:
        self._leave()
        if order.hold:
            self._requests.hold(ChainBroken(order.reason) if order.reason else None)
        elif order.reason:
            self._requests.shut(ChainBroken(order.reason))
        else:
            self._requests.shut(FleetUnavailable("This model is not being served now."))
        self._transport.unlink()

    def _leave(self) -> None:
        """Drop every slot; nothing is sent to a ring any more."""
        if self._chain is not None:
            self._generation = self._chain.scheduler.last_generation
        self._chain = self._forming = None
        self._log.reset()
        self._speculator.reset()
        self._worker.reset(0, 0)

    def _break(
        self, chain: _Chain, error: FleetError, stage: int, device: str, *, tell: bool = False
    ) -> None:
        """The ring is over; ``tell`` the other stages if they do not know."""
        log.error("chain fault: %s", error.message)
        self._leave()
        self._requests.hold(ChainBroken(error.message))
        epoch = chain.link.epoch
        self._out(pipe.ChainFault(epoch, error.code, error.message, stage, device))
        if tell and not chain.alone:
            try:
                self._transport.send(Fault(epoch, stage, device, error.code, error.message))
            except FleetError as exc:
                log.info("the next stage could not be told: %s", exc.message)
        self._transport.unlink()

    def _watch(self, chain: _Chain) -> None:
        """Notice that computing hangs somewhere. A slow stage is no fault: each that sends a step
        on is given as long again.
        """
        now = self._clock()
        if not chain.owes or now - chain.answered < LOOK_SECONDS:
            return
        progress = self._transport.progress
        if progress != chain.progress:
            chain.answered, chain.progress = now, progress
        if now - chain.answered < self._step_deadline:
            return
        step = chain.scheduler.in_flight[0]
        stage, device = next_stage(chain.link), after(chain.link).device_id
        for number, passed in enumerate(progress, 1):
            if passed.step < step:
                stage, device = number, passed.device
                break
        error = StageSilent(
            f"Stage {stage} (device {device}) did not answer step {step} within "
            f"{self._step_deadline:g} s."
        )
        self._break(chain, error, stage, device, tell=True)

    def _send(self, frame: WireFrame, payload: Activations | None = None) -> None:
        """To the next stage, if there is one; if it is gone, so is the chain."""
        chain = self._chain
        if chain is None or chain.alone:
            return
        try:
            self._transport.send(frame, payload)
        except (ChainBroken, StaleFrame) as exc:
            blame = self._transport.blame or (next_stage(chain.link), after(chain.link).device_id)
            self._break(chain, exc, *blame)

    def _obey(self, chain: _Chain) -> bool:
        """Do as the scheduler says here and have the other stages do it, in the same order.

        Returns:
            Whether the chain still stands.
        """
        for order in chain.scheduler.orders():
            if self._chain is not chain:
                return False
            frame: Open | Close | Keep | Drop | Spill
            if isinstance(order, Opened):
                told = self._requests.admitted(order)
                self._log.opened(order.request_id, order.slot)
                frame = Open(
                    epoch=chain.link.epoch,
                    slot=order.slot,
                    generation=order.generation,
                    sampling=told.sampling,
                    prefix=order.prefix,
                    history=told.history,
                    answered=told.answered,
                )
                self._worker.open(frame)
            else:
                frame = to_frame(order, chain.link.epoch)
                if isinstance(frame, Close):
                    self._worker.close(frame)
                else:
                    self._worker.arrange(frame)
            self._send(frame)
        return self._chain is chain

    # -- frames ----------------------------------------------------------------------------

    def _launch_next(self, chain: _Chain) -> bool:
        if self._chain is not chain:
            return False
        speculator = self._speculator
        frame = chain.scheduler.next_frame(speculator.propose if speculator.on else None)
        if not self._obey(chain) or frame is None:
            return False
        self._launch(chain, frame)
        return True

    def _launch(self, chain: _Chain, frame: Frame) -> None:
        ids = np.array(frame.tokens, dtype=np.int64)
        owed = len(chain.scheduler.in_flight) > 1
        self._log.launched(frame.step, frame.segments)
        self._speculator.launched(frame)
        if any(s.count > _LONG for s in frame.segments):
            self._requests.say()  # a piece of a prompt takes long: nobody's text waits for it
        try:
            outcome = self._worker.step(frame.step, frame.segments, ids)
        except FleetError as exc:
            self._break(chain, exc, chain.link.stage, self._worker.device_id, tell=True)
            return
        for fault in outcome.faults:
            self._fault(chain, fault)
        match outcome.frame:
            case Tokens():
                self._tokens(chain, outcome.frame)
            case Step():
                if not owed:
                    chain.answered = self._clock()
                self._send(outcome.frame, outcome.payload)

    def _receive(self, frame: WireFrame, at: float) -> None:
        chain = self._chain
        epoch = getattr(frame, "epoch", None)
        if chain is None or epoch != chain.link.epoch:
            now = "none" if chain is None else chain.link.epoch
            log.warning("stale_frame: %s of epoch %s, now %s", type(frame).__name__, epoch, now)
            return
        match frame:
            case Tokens():
                self._tokens(chain, frame, at)
            case Fault() if frame.slot >= 0:
                chain.answered = self._clock()
                self._fault(chain, frame)
            case Fault():
                error = from_code(frame.code, frame.message)
                self._break(chain, error, frame.stage, frame.device)
            case _:
                log.warning("a %s frame has no business at the head", type(frame).__name__)

    def _tokens(self, chain: _Chain, frame: Tokens, at: float | None = None) -> None:
        try:
            completion = chain.scheduler.complete(frame.step, frame.tokens)
        except StaleFrame as exc:
            log.warning("stale_frame: %s", exc.message)
            return
        chain.answered = self._clock()
        record = self._log.completed(frame.epoch, frame.step, frame.timings, at)
        self._speculator.answered(frame.step, record)
        self._speculator.completed(completion)
        if record is not None:
            self._requests.spent(record)
            chain.pace.learn(record)
            chain.scheduler.pace(chain.pace.chunk)
        self._requests.completed(completion)

    def _fault(self, chain: _Chain, fault: Fault) -> None:
        """One sequence could not go on; the others do."""
        request_id = chain.scheduler.drop(fault.step, fault.slot)
        if fault.step not in chain.scheduler.in_flight:
            self._log.dropped(fault.step)
            self._speculator.answered(fault.step, None)
        if request_id is None:
            return
        if fault.code == KeptLost.code:
            log.warning("%s is computed from its first token: %s", request_id, fault.message)
            chain.scheduler.again(request_id)
        else:
            self._requests.fail(request_id, from_code(fault.code, fault.message))

    def _told(self, query: pipe.QueryStats | pipe.QueryTrace) -> None:
        if isinstance(query, pipe.QueryTrace):
            self._out(pipe.Trace(self._log.recent))
            return
        running = self._chain.scheduler.running if self._chain is not None else 0
        waiting = len(self._requests) - running
        tally = self._speculator.controller.tally
        chain = self._log.stats(
            self._requests.ended, drafted=tally.drafted, accepted=tally.accepted
        )
        self._out(
            runner_stats(
                self._worker, self._transport, running=running, waiting=waiting, chain=chain
            )
        )

"""The loop of a stage that is not the head: frames in, forward, frames out."""

from __future__ import annotations

import logging

from fleetapp.engine import pipe
from fleetapp.engine.neighbours import after, next_stage
from fleetapp.engine.pipe_io import Outlet
from fleetapp.engine.prompts import Prepared
from fleetapp.engine.stats import runner_stats
from fleetapp.engine.transport import (
    LinkFailed,
    LinkLost,
    LinkUp,
    Received,
    RingEvent,
    Transport,
)
from fleetapp.engine.worker import Worker
from fleetapp.errors import BadRequest, ChainBroken, FleetError, Malformed
from fleetapp.types import Usage
from fleetapp.wire.activations import widen
from fleetapp.wire.frames import Close, Drop, Fault, Frame, Keep, Open, Spill, Step

log = logging.getLogger("fleetapp.engine.stage")


class Stage:
    """Reacts to one event at a time; never waits for anything but its executor and its next hop.

    Args:
        worker: the loaded layers.
        transport: this runner's hops.
        out: writes to the agent.
        device_id: named in faults.
    """

    def __init__(
        self,
        worker: Worker,
        transport: Transport,
        out: Outlet,
        *,
        device_id: str,
    ) -> None:
        self._worker = worker
        self._transport = transport
        self._out = out
        self._device_id = device_id
        self._link: pipe.Link | None = None
        self._up = False

    def handle(self, event: pipe.ToRunner | RingEvent | Prepared) -> None:
        """React to a message of the agent or an event of the ring."""
        match event:
            case Received(frame, payload, at):
                self._frame(frame, payload, at)
            case pipe.QueryStats():
                self._out(runner_stats(self._worker, self._transport))
            case pipe.QueryTrace():
                self._out(pipe.Trace(()))
            case pipe.Link():
                self._begin(event)
            case pipe.Unlink():
                self._end()
            case pipe.Generate(request_id=request_id):
                self._refuse(request_id)
            case LinkUp(epoch) if self._is_now(epoch):
                self._up = True
                self._out(pipe.Linked(epoch))
            case LinkFailed(epoch, error) if self._is_now(epoch):
                self._link = None
                self._out(pipe.Failed(error.code, error.message, error.remedy))
            case LinkLost(epoch, error, stage, device) if self._is_now(epoch):
                self._leave(pipe.ChainFault(epoch, error.code, error.message, stage, device))
            case _:
                log.debug("%s is of no concern now", type(event).__name__)

    def pump(self) -> bool:
        """Nothing is begun by a stage itself."""
        return False

    def wait_seconds(self) -> float | None:
        """A stage has no deadlines of its own: whoever waits for an answer is the head."""
        return None

    def _is_now(self, epoch: int) -> bool:
        return self._link is not None and self._link.epoch == epoch

    def _begin(self, link: pipe.Link) -> None:
        self._link, self._up = link, False
        self._worker.reset(link.epoch, link.stage)
        self._transport.link(link)

    def _end(self) -> None:
        self._link, self._up = None, False
        self._transport.unlink()
        self._worker.reset(0, 0)

    def _frame(self, frame: Frame, payload: memoryview, at: float) -> None:
        link = self._link
        epoch = getattr(frame, "epoch", None)
        if link is None or not self._up or epoch != link.epoch:
            now = "none" if link is None else link.epoch
            log.warning("stale_frame: %s of epoch %s, now %s", type(frame).__name__, epoch, now)
            return
        try:
            self._react(frame, payload, at)
        except ChainBroken as exc:
            blame = self._transport.blame or (next_stage(link), after(link).device_id)
            self._forget(pipe.ChainFault(link.epoch, exc.code, exc.message, *blame))
        except FleetError as exc:
            # The frame cannot be answered and the head waits for it: this epoch is over.
            self._break(Fault(link.epoch, link.stage, self._device_id, exc.code, exc.message))

    def _react(self, frame: Frame, payload: memoryview, at: float) -> None:
        last = self._worker.executor.info.last
        match frame:
            case Step():
                self._step(frame, payload, at)
            case Open():
                self._worker.open(frame)
                if not last:
                    self._transport.send(frame)
            case Close():
                self._worker.close(frame)
                if not last:
                    self._transport.send(frame)
            case Keep() | Drop() | Spill():
                self._worker.arrange(frame)
                if not last:
                    self._transport.send(frame)
            case Fault() if frame.slot < 0:  # the transport has passed it on
                self._leave(
                    pipe.ChainFault(
                        frame.epoch, frame.code, frame.message, frame.stage, frame.device
                    )
                )
            case Fault():
                self._transport.send(frame)
            case _:
                raise Malformed(
                    f"A {type(frame).__name__} frame has no business at this stage "
                    f"(device {self._device_id})."
                )

    def _step(self, frame: Step, payload: memoryview, at: float) -> None:
        hidden = self._worker.executor.info.hidden
        if frame.hidden != hidden:
            raise Malformed(
                f"Step {frame.step} brings hidden states of width {frame.hidden}, this stage "
                f"(device {self._device_id}) takes {hidden}."
            )
        outcome = self._worker.step(
            frame.step,
            frame.segments,
            widen(frame, payload),
            before=frame.timings,
            arrived=at,
        )
        for fault in outcome.faults:
            self._transport.send(fault)
        if outcome.frame is not None:
            self._transport.send(outcome.frame, outcome.payload)

    def _break(self, fault: Fault) -> None:
        """Tell the head through the rest of the ring, then wait to be linked anew."""
        try:
            self._transport.send(fault)
        except FleetError as exc:
            log.warning("the fault could not be sent on: %s", exc.message)
        self._forget(
            pipe.ChainFault(fault.epoch, fault.code, fault.message, fault.stage, fault.device)
        )

    def _leave(self, fault: pipe.ChainFault) -> None:
        """The ring is over."""
        self._forget(fault)
        self._transport.unlink()

    def _forget(self, fault: pipe.ChainFault) -> None:
        """Take no part any more, but leave the hops until the fault has come around: to the stage
        before, a hop that ends without a word would look as if this stage were to blame.
        """
        log.error("chain fault: %s", fault.message)
        self._out(fault)
        self._link, self._up = None, False
        self._worker.reset(0, 0)

    def _refuse(self, request_id: str) -> None:
        error = BadRequest("This runner is not the head of a chain.")
        self._out(
            pipe.Finished(
                request_id,
                "error",
                Usage(0, 0),
                code=error.code,
                message=error.message,
                remedy=error.remedy,
            )
        )

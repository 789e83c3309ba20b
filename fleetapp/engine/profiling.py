"""Times a loaded stage while nobody is answered, through what real steps go through.

The planner asks what a step costs at several widths; only the real layers on the real device know.
Slots and kept numbers used here are outside those a head gives out.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from typing import Final, TypeVar

import numpy as np

from fleetapp.engine import pipe
from fleetapp.engine.transport import Received
from fleetapp.engine.worker import Inputs, Worker
from fleetapp.errors import FleetError
from fleetapp.types import SamplingParams
from fleetapp.wire.frames import Close, Drop, Keep, Open, Ping, Prefix, Segment

E = TypeVar("E")

_FIRST_SLOT: Final = 1 << 20
_KEEP: Final = 1 << 40
_GENERATION: Final = 1
_REPEATS: Final = 15
_ENOUGH: Final = 3
"""Steps of one kind: at most, and those after which the time that is left decides."""
_OVERTIME: Final = 1.5
"""A slow device is measured at fewer sizes rather than for much longer than asked."""
_HISTORY_PIECE: Final = 32
_TOKEN: Final = 7
_SPREAD: Final = 0.5
"""Of made-up hidden states; their values do not matter for the time."""

Event = pipe.ToRunner | Received


class _Disturbed(Exception):
    """Somebody wants something: no error."""


def measure_idle(
    worker: Worker,
    order: pipe.Measure,
    inbox: queue.SimpleQueue[E],
    handle: Callable[[E], None],
    say: Callable[[pipe.Measured], None],
) -> list[E]:
    """Measure unless somebody is being answered, and say what was found.

    Args:
        worker: the loaded stage.
        order: what to measure.
        inbox: looked at between any two steps: whatever arrives ends the measuring. Only the
            pings of an idle ring are passed on at once, by ``handle``.
        handle: reacts to an event.
        say: sends the result.

    Returns:
        What arrived meanwhile and has yet to be handled.
    """
    waiting: list[E] = []

    def disturbed() -> bool:
        while not waiting:
            try:
                event = inbox.get_nowait()
            except queue.Empty:
                return False
            # Signs of life and the agent's counting, once a second, are answered in passing.
            ping = isinstance(event, Received) and isinstance(event.frame, Ping)
            if ping or isinstance(event, pipe.QueryStats):
                handle(event)
            else:
                waiting.append(event)
        return True

    if worker.open_slots:
        say(pipe.Measured((), (), (), complete=False, seconds=0.0))
    else:
        say(Profiler(worker, order, disturbed).run())
    return waiting


class Profiler:
    """One measurement.

    Args:
        worker: the loaded stage; no slot is open.
        order: what to measure.
        disturbed: asked before every step; true ends it.
        clock: seconds.
    """

    def __init__(
        self,
        worker: Worker,
        order: pipe.Measure,
        disturbed: Callable[[], bool],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._worker, self._order = worker, order
        self._disturbed, self._clock = disturbed, clock
        self._info = worker.executor.info
        self._opened: set[int] = set()
        self._decode: dict[int, float] = {}
        self._chosen: dict[int, float] = {}
        self._prefill: dict[int, float] = {}
        self._dice = np.random.default_rng(1)
        self._began = clock()
        kinds = len(order.widths) * (2 if self._info.last else 1) + len(order.pieces)
        self._share = order.seconds / max(1, kinds)

    def run(self) -> pipe.Measured:
        """Measure what fits the cache; leaves nothing behind in it."""
        complete = True
        before = self._worker.frames, self._worker.tokens, self._worker.compute_seconds
        try:
            self._steps()
        except (_Disturbed, FleetError):
            complete = False
        finally:
            self._close()
            # Counters tell what was done for people.
            self._worker.frames, self._worker.tokens, self._worker.compute_seconds = before
        chosen = self._chosen if self._info.last else self._decode
        return pipe.Measured(
            decode=_points(self._decode),
            chosen=_points(chosen),
            prefill=_points(self._prefill),
            complete=complete,
            seconds=self._clock() - self._began,
        )

    def _steps(self) -> None:
        """Decodes first: they are most of what a chain does."""
        room = min(self._info.max_context, self._worker.executor.free_blocks * self._size)
        history = self._past(room)
        past = history or 1
        for width in sorted(self._order.widths) if history else (1,):
            if width > self._worker.executor.free_blocks:
                break
            if not self._has_time(width, self._chosen if self._info.last else self._decode):
                break
            for number in range(1, width):
                if _FIRST_SLOT + number not in self._opened:
                    self._open(number, Prefix(_KEEP, history))
            self._decode[width] = self._time(self._segments(width, 1, past=past, sample=False))
            if self._info.last:
                segments = self._segments(width, 1, past=past, sample=True)
                self._chosen[width] = self._time(segments)
        self._close()
        for piece in sorted(self._order.pieces):
            if piece < room and self._has_time(piece, self._prefill):
                self._open(0)
                self._prefill[piece] = self._time(self._segments(1, piece, past=0, sample=False))

    def _past(self, room: int) -> int:
        """Compute and keep what all sequences have behind them: whole blocks, 0 if none fits.

        A slow device gets less of it.
        """
        self._open(0)
        wanted = min(self._order.history, room // 2) // self._size * self._size
        until, done = self._clock() + self._share, 0
        while done < wanted and (not done or self._clock() < until):
            count = min(max(_HISTORY_PIECE // self._size, 1) * self._size, wanted - done)
            self._step((Segment(_FIRST_SLOT, _GENERATION, done, count, sample=False),))
            done += count
        if not done:
            self._step(self._segments(1, 1, past=0, sample=False))
            return 0
        self._worker.arrange(Keep(0, _FIRST_SLOT, _GENERATION, _KEEP, done))
        return done

    def _close(self) -> None:
        for slot in self._opened:
            self._worker.close(Close(0, slot, _GENERATION))
        self._opened.clear()
        self._worker.arrange(Drop(0, _KEEP))

    @property
    def _size(self) -> int:
        return self._info.block_size

    def _open(self, number: int, prefix: Prefix | None = None) -> None:
        slot = _FIRST_SLOT + number
        self._worker.open(Open(0, slot, _GENERATION, SamplingParams(), prefix))
        self._opened.add(slot)

    @staticmethod
    def _segments(width: int, count: int, *, past: int, sample: bool) -> tuple[Segment, ...]:
        return tuple(
            Segment(_FIRST_SLOT + n, _GENERATION, past, count, sample) for n in range(width)
        )

    def _time(self, segments: tuple[Segment, ...]) -> float:
        """The lower quartile of some steps, after one that does not count.

        Whatever else the PC does only ever makes a step slower; wanted is what the device does by
        itself, and does again tomorrow.
        """
        until = self._clock() + self._share
        self._step(segments)
        taken: list[float] = []
        while len(taken) < _REPEATS:
            taken.append(self._step(segments))
            if self._clock() > until and (len(taken) >= _ENOUGH or self._late()):
                break
        return sorted(taken)[(len(taken) - 1) // 4]

    def _has_time(self, size: int, smaller: dict[int, float]) -> bool:
        """Whether two more steps of this size end in time, if they take as long in proportion; the
        smallest size is always measured.
        """
        if not smaller:
            return True
        largest = max(smaller)
        expected = 2 * smaller[largest] * size / largest
        return self._clock() - self._began + expected < _OVERTIME * self._order.seconds

    def _late(self) -> bool:
        return self._clock() - self._began > self._order.seconds

    def _step(self, segments: tuple[Segment, ...]) -> float:
        if self._disturbed():
            raise _Disturbed
        inputs = self._inputs(sum(s.count for s in segments))
        began = self._clock()
        outcome = self._worker.step(0, segments, inputs)
        took = self._clock() - began
        if outcome.faults:
            raise _Disturbed  # the cache is too small for so many
        return took

    def _inputs(self, tokens: int) -> Inputs:
        if self._info.first:
            return np.full(tokens, min(_TOKEN, self._info.vocab - 1), np.int64)
        shape = (tokens, self._info.hidden)
        return (self._dice.standard_normal(shape) * _SPREAD).astype(np.float32)


def _points(found: dict[int, float]) -> tuple[pipe.Point, ...]:
    return tuple(pipe.Point(size, seconds) for size, seconds in sorted(found.items()))

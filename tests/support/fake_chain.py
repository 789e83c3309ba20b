"""A whole chain in one thread: real head, real stages, real codec, hops that are queues.

Nothing happens until ``turn`` (or ``settle``) lets one queue deliver one event, so a test can
try any interleaving, hold a hop back, or cut it.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fleetapp.engine import pipe
from fleetapp.engine.drafting.speculator import Speculator
from fleetapp.engine.grammar import GrammarHost
from fleetapp.engine.head import Head
from fleetapp.engine.pipe_io import Outlet
from fleetapp.engine.prompts import Prepared, check_sampling, prompt_ids
from fleetapp.engine.stage import Stage
from fleetapp.engine.text import as_fleet_error
from fleetapp.engine.transport import LinkLost, LinkUp, Received
from fleetapp.engine.worker import Worker
from fleetapp.errors import ChainBroken
from fleetapp.types import SamplingParams
from fleetapp.wire import codec
from fleetapp.wire.frames import Fault, Frame, Passed
from tests.support.fake_executor import EOS, VOCAB, FakeExecutor, split
from tests.support.fake_text import VOCABULARY, ByteText

GRAMMARS = GrammarHost(lambda: VOCABULARY, frozenset({EOS}), VOCAB)


def _into(messages: list[pipe.FromRunner]) -> Outlet:
    def out(*more: pipe.FromRunner) -> None:
        messages.extend(more)

    return out


class Hop:
    """One direction of the ring; frames lie in it as bytes."""

    def __init__(self) -> None:
        self.frames: deque[bytes] = deque()
        self.cut = False


class FakeTransport:
    """Satisfies ``transport.Transport`` for stage ``index`` of a FakeChain."""

    def __init__(self, chain: FakeChain, index: int) -> None:
        self._chain = chain
        self._index = index
        self.linked: pipe.Link | None = None
        self.sent_bytes = 0
        self.received_bytes = 0
        self.progress: tuple[Passed, ...] = ()
        self.blame: tuple[int, str] | None = None

    def link(self, link: pipe.Link) -> None:
        self.linked, self.blame = link, None
        self._chain.events[self._index].append(LinkUp(link.epoch))

    def unlink(self) -> None:
        self.linked = None

    def send(self, frame: Frame, payload: Any = None) -> None:
        hop = self._chain.hops[self._index]
        if hop.cut or self.linked is None:
            raise ChainBroken(f"Stage {self._index + 1} (device d{self._index + 1}) is gone.")
        body = None if payload is None else np.ascontiguousarray(payload).data
        message = b"".join(codec.encode(frame, body))
        self.sent_bytes += len(message)
        hop.frames.append(message)


class FakeChain:
    """``stages`` stages of the tiny model.

    Args:
        executors: run instead of the tiny model's.
        before: given to stage 1's executor (stage 0's if it is alone).
    """

    def __init__(
        self,
        stages: int = 3,
        *,
        blocks: int = 64,
        block_size: int = 8,
        max_context: int = 256,
        slots: int = 32,
        fast: bool = False,
        spill_blocks: int = 0,
        before: Callable[[Any], None] | None = None,
        speculator: Speculator | None = None,
        executors: Sequence[Any] = (),
    ) -> None:
        self.stages = stages
        self.layers = split(stages)
        self.now = 100.0
        self.epoch = 0
        self.sent: list[pipe.FromRunner] = []
        self.stage_sent: list[list[pipe.FromRunner]] = [[] for _ in range(stages)]
        self.hops = [Hop() for _ in range(stages)]
        self.events: list[deque[Any]] = [deque() for _ in range(stages)]
        self.jobs: deque[tuple[int, pipe.Generate]] = deque()
        self.executors: list[Any] = list(executors) or [
            FakeExecutor(
                *layers,
                blocks=blocks,
                block_size=block_size,
                max_context=max_context,
                spill_blocks=spill_blocks,
                before=before if i == min(1, stages - 1) else None,
            )
            for i, layers in enumerate(split(stages))
        ]
        info = [e.info for e in self.executors]
        self.blocks, self.block_size = min(i.blocks for i in info), info[0].block_size
        self._fast = fast
        self.workers = [self._worker(i) for i in range(stages)]
        self.transports = [FakeTransport(self, i) for i in range(stages)]
        seeds = itertools.count(1)
        self.head = Head(
            self.workers[0],
            self.transports[0],
            ByteText(),
            lambda ticket, request: self.jobs.append((ticket, request)),
            _into(self.sent),
            eos=frozenset({EOS}),
            step_deadline=20.0,
            slots=slots,
            speculator=speculator,
            clock=lambda: self.now,
            entropy=lambda: next(seeds),
        )
        self.nodes: list[Head | Stage] = [self.head]
        self.nodes += [self._stage(i) for i in range(1, stages)]

    def _worker(self, index: int) -> Worker:
        return Worker(self.executors[index], GRAMMARS, device_id=f"d{index}", fast=self._fast)

    def _stage(self, index: int) -> Stage:
        out = _into(self.stage_sent[index])
        return Stage(self.workers[index], self.transports[index], out, device_id=f"d{index}")

    def replace(self, stages: int, *, blocks: int = 64, block_size: int = 8) -> None:
        """Other PCs take the place of all behind the head, which stays loaded: ``link`` next."""
        begin, end = self.layers[0][1], self.layers[-1][1]
        rest, others = end - begin, stages - 1
        assert others <= rest
        assert bool(others) == bool(rest), "somebody has to hold every layer"
        bounds = [begin + round(i * rest / max(others, 1)) for i in range(others + 1)]
        self.stages, self.layers = stages, [self.layers[0], *itertools.pairwise(bounds)]
        for name in ("executors", "workers", "transports", "nodes", "stage_sent", "events"):
            del getattr(self, name)[1:]
        self.hops = [Hop() for _ in range(stages)]
        for i in range(1, stages):
            self.executors.append(
                FakeExecutor(*self.layers[i], blocks=blocks, block_size=block_size)
            )
            self.stage_sent.append([])
            self.events.append(deque())
            self.transports.append(FakeTransport(self, i))
            self.workers.append(self._worker(i))
            self.nodes.append(self._stage(i))
        info = [e.info for e in self.executors]
        self.blocks = min(i.blocks for i in info)
        self.block_size = max(i.block_size for i in info)

    def link(self) -> None:
        """A new epoch for everybody."""
        self.epoch += 1
        for hop in self.hops:
            hop.frames.clear()
            hop.cut = False
        for i, node in enumerate(self.nodes):
            node.handle(self._link(i))
        for i, node in enumerate(self.nodes):
            node.handle(self.events[i].popleft())

    def _link(self, index: int) -> pipe.Link:
        def peer(i: int) -> pipe.PeerAddress | None:
            i %= self.stages
            return None if self.stages == 1 else pipe.PeerAddress(f"d{i}", f"spki{i}", (), 1)

        return pipe.Link(
            chain="c1",
            epoch=self.epoch,
            stage=index,
            stages=self.stages,
            model="m",
            next_layer=self.layers[(index + 1) % self.stages][0],
            next=peer(index + 1),
            prev=peer(index - 1),
            kv_blocks=self.blocks,
            block_size=self.block_size,
            spill_blocks=self.executors[index].info.spill_blocks,
        )

    def ask(
        self, request_id: str, prompt: str, said: tuple[int, ...] = (), **sampling: Any
    ) -> None:
        """A raw prompt."""
        params = SamplingParams(**{"max_tokens": 8, **sampling})
        self.head.handle(pipe.Generate(request_id, params, prompt=prompt, said=said))

    def choices(self) -> list[str]:
        """What could happen next: the tokenizer, the head's pump, or a hop by its number."""
        found = [f"hop {i}" for i, hop in enumerate(self.hops) if hop.frames and not hop.cut]
        if self.jobs:
            found.append("tokenizer")
        return found

    def turn(self, choice: str) -> None:
        """Let one thing happen."""
        if choice == "tokenizer":
            ticket, request = self.jobs.popleft()
            try:
                check_sampling(request.sampling, ByteText(), VOCAB)
                ids = prompt_ids(request, ByteText(), self.executors[0].info.vocab)
                self.head.handle(Prepared(request.request_id, ticket, ids))
            except Exception as exc:
                error = as_fleet_error(exc, "tokenising")
                self.head.handle(Prepared(request.request_id, ticket, error=error))
        elif choice == "pump":
            self.head.pump()
        else:
            index = int(choice.split()[1])
            self.deliver(index)

    def deliver(self, index: int) -> None:
        """Deliver the oldest frame of a hop to the stage at its end."""
        message = self.hops[index].frames.popleft()
        frame, payload = codec.decode(message)
        target = (index + 1) % self.stages
        self.transports[target].received_bytes += len(message)
        if isinstance(frame, Fault) and frame.slot < 0:
            self._over(target, frame)
        if self.transports[target].linked is not None:
            self.nodes[target].handle(Received(frame, payload))

    def _over(self, index: int, fault: Fault) -> None:
        """What a transport does by itself: the first fault of a ring goes on around it."""
        transport = self.transports[index]
        if transport.linked is None or transport.blame is not None:
            return
        transport.blame = fault.stage, fault.device
        if not self.hops[index].cut:
            self.hops[index].frames.append(b"".join(codec.encode(fault)))

    def settle(self, limit: int = 100_000) -> None:
        """Let things happen, oldest hop first, until nothing can."""
        for _ in range(limit):
            busy = self.head.pump()
            choices = self.choices()
            if choices:
                self.turn(choices[-1])
            elif not busy:
                return
        raise AssertionError("the chain never settles")

    def lose(self, index: int) -> None:
        """Stage ``index`` vanishes: its neighbours notice as they would with sockets."""
        before, after = (index - 1) % self.stages, (index + 1) % self.stages
        self.hops[before].cut = self.hops[index].cut = True
        error = ChainBroken(f"Stage {index} (device d{index}) left the chain: closed.")
        self._over(after, Fault(self.epoch, index, f"d{index}", error.code, error.message))
        self.nodes[after].handle(LinkLost(self.epoch, error, index, f"d{index}"))

    def finished(self) -> dict[str, pipe.Finished]:
        """All ends so far; a second one of the same request is an error."""
        ends = [m for m in self.sent if isinstance(m, pipe.Finished)]
        assert len({m.request_id for m in ends}) == len(ends)
        return {m.request_id: m for m in ends}

    def text(self, request_id: str) -> str:
        """What was shown of an answer."""
        return "".join(d.text for d in self._deltas(request_id))

    def ids(self, request_id: str) -> list[int]:
        """All committed tokens of an answer."""
        return [i for d in self._deltas(request_id) for i in d.token_ids]

    def _deltas(self, request_id: str) -> list[pipe.Delta]:
        return [m for m in self.sent if isinstance(m, pipe.Delta) and m.request_id == request_id]

    def assert_clean(self) -> None:
        """No slot, no request is left anywhere, and no block but those of kept sequences."""
        self.head.handle(pipe.QueryStats())
        stats = self.sent.pop()
        assert isinstance(stats, pipe.RunnerStats)
        assert (stats.running, stats.waiting, stats.open_slots) == (0, 0, 0)
        chain = self.head._chain
        for worker, executor in zip(self.workers, self.executors, strict=True):
            assert worker.open_slots == 0
            table = executor.slots
            assert table.free_blocks + table.idle_blocks() == executor.info.blocks
            kept = 0 if chain is None else chain.scheduler.memory.kept
            assert table.kept == kept
            if chain is not None and executor.info.block_size == self.block_size:
                assert table.idle_blocks() == chain.scheduler.memory.kept_blocks

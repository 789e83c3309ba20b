"""Process entry of one loaded shard: ``python -m fleetapp.engine.runner``.

Reads framed messages from stdin and writes framed messages to stdout, nothing else; everything
that prints, native code included, prints to stderr. When stdin closes the process is gone at
once, whatever it is doing: its agent is gone too.
"""

from __future__ import annotations

import faulthandler
import gc
import logging
import os
import queue
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from fleetapp.engine import pipe
from fleetapp.engine.drafting.speculator import speculator_of
from fleetapp.engine.executor.base import Executor
from fleetapp.engine.executor.spilled import Spilled
from fleetapp.engine.grammar import GrammarHost
from fleetapp.engine.head import Head
from fleetapp.engine.neighbours import Self
from fleetapp.engine.pipe_io import Outlet, PipeWriter, read_message
from fleetapp.engine.profiling import measure_idle
from fleetapp.engine.prompts import Prepared, Prompts, TextHost
from fleetapp.engine.ring import Ring, Security
from fleetapp.engine.stage import Stage
from fleetapp.engine.text import as_fleet_error
from fleetapp.engine.transport import Received, RingEvent
from fleetapp.engine.verify import read_manifest, verify_files
from fleetapp.engine.vocabulary import read_vocabulary
from fleetapp.engine.worker import Grammars, Worker
from fleetapp.errors import FleetError, Malformed, NotAMember, RunnerFailed
from fleetapp.fleet.enrolment import Credentials
from fleetapp.fleet.tls import client_context, hostname_of, peer_spki, server_context
from fleetapp.models.manifest import StageManifest
from fleetapp.platform import current
from fleetapp.platform.stdio import take_stdin
from fleetapp.types import DeviceId, FleetId

log = logging.getLogger("fleetapp.engine.runner")

FIRST_MESSAGE_SECONDS: Final = 60.0
EXIT_LOAD_FAILED: Final = 4
EXIT_PIPE_BROKEN: Final = 5
_COLLECT_EVERY: Final = 10_000
"""New objects between collections: some hundred steps."""

Event = pipe.ToRunner | RingEvent | Prepared


class Node(Protocol):
    """A head or another stage."""

    def handle(self, event: Event) -> None:
        """React to one event."""
        ...

    def pump(self) -> bool:
        """Do what can be done without another event; True if there may be more of it."""
        ...

    def wait_seconds(self) -> float | None:
        """When ``pump`` must be called even if no event comes; None: never."""
        ...


@dataclass(frozen=True)
class Engine:
    """A loaded shard. ``text`` is there on a head, ``grammars`` on a last stage, ``draft`` on a
    head that guesses with a model.
    """

    executor: Executor
    grammars: Grammars | None
    text: TextHost | None
    draft: Executor | None = None


Loader = Callable[[pipe.Load, StageManifest, Callable[[pipe.Progress], None]], Engine]


def load_openvino(
    load: pipe.Load, manifest: StageManifest, progress: Callable[[pipe.Progress], None]
) -> Engine:
    """Compile the shard with OpenVINO.

    Raises:
        FleetError: it cannot be loaded; says why.
    """
    # These load native code: only after verifying.
    from fleetapp.engine.drafting.loading import load_draft  # noqa: PLC0415
    from fleetapp.engine.executor import paged  # noqa: PLC0415
    from fleetapp.engine.text import TokenizerHost  # noqa: PLC0415

    folder = Path(load.stage_dir)
    executor = paged.load(
        folder,
        precision=load.precision,
        device=load.device,
        threads=load.threads,
        kv_bytes=load.kv_bytes,
        max_context=load.max_context,
        cache_dir=Path(load.cache_dir) if load.cache_dir else None,
        progress=lambda phase, done, total: progress(pipe.Progress(phase, done, total)),
        spilled=spill_store(load),
    )
    text = None
    if load.head:
        text = TokenizerHost(
            folder / "tokenizer",
            manifest.architecture.chat_template,
            context=executor.info.max_context,
        )
    grammars = None
    if manifest.last:
        grammars = GrammarHost(
            lambda: read_vocabulary(folder / "tokenizer"),
            frozenset(manifest.architecture.eos_ids),
            executor.info.vocab,
        )
    draft = load_draft(load, manifest) if load.head and load.draft_dir else None
    return Engine(executor, grammars, text, draft)


def spill_store(load: pipe.Load) -> Spilled:
    """Where kept sequences go that the cache has no room for, within what the agent allows."""
    folder = Path(load.cache_dir) / "kv" if load.cache_dir and load.spill_disk_bytes else None
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as exc:
            log.warning("nothing is spilled to disk: %s", exc)
            folder = None
    return Spilled(load.spill_bytes, load.spill_disk_bytes, folder)


class Runner:
    """One process's life: load, listen, serve.

    Args:
        read: blocks for the agent's next message; None when the agent is gone.
        write: sends a message to the agent.
        loader: makes the engine of a verified stage folder.
        die: ends the process at once with an exit code.
    """

    def __init__(
        self,
        read: Callable[[], pipe.ToRunner | None],
        write: Outlet,
        loader: Loader,
        die: Callable[[int], None],
    ) -> None:
        self._read = read
        self._write = write
        self._loader = loader
        self._die = die
        self._inbox: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._leaving: deque[pipe.Unlink] = deque()
        """Told to leave the ring, not yet taken up; filled by the reader of the agent's pipe."""

    def run(self) -> int:
        """Serve until the agent closes the pipe; returns only if loading failed."""
        threading.Thread(target=self._listen_to_agent, name="agent", daemon=True).start()
        started = time.monotonic()
        try:
            load = self._first_message()
            node = self._prepare(load, started)
        except Exception as exc:  # native code throws what it likes; the agent is told
            error = as_fleet_error(exc, "Loading the shard")
            log.critical("%s", error.message, exc_info=error is not exc)
            self._say(pipe.Failed(error.code, error.message, error.remedy))
            return EXIT_LOAD_FAILED
        return self._serve(node)

    def _listen_to_agent(self) -> None:
        """Also the watchdog: it ends the process even while the main thread is in native code."""
        try:
            while (message := self._read()) is not None:
                if isinstance(message, pipe.Unlink):
                    self._leaving.append(message)
                self._inbox.put(message)
        except (FleetError, OSError) as exc:
            log.critical("the agent's pipe broke: %s", exc)
            self._die(EXIT_PIPE_BROKEN)
        self._die(0)

    def _say(self, *messages: pipe.FromRunner) -> None:
        try:
            self._write(*messages)
        except OSError as exc:
            log.warning("the agent is gone: %s", exc)
            self._die(EXIT_PIPE_BROKEN)

    def _first_message(self) -> pipe.Load:
        try:
            message = self._inbox.get(timeout=FIRST_MESSAGE_SECONDS)
        except queue.Empty:
            raise RunnerFailed("No message came from the agent.") from None
        if not isinstance(message, pipe.Load):
            raise Malformed(f"The agent began with {type(message).__name__}, not with Load.")
        return message

    def _prepare(self, load: pipe.Load, started: float) -> Node:
        folder = Path(load.stage_dir)
        manifest = read_manifest(folder)
        verify_files(
            folder, manifest, lambda done, total: self._say(pipe.Progress("verifying", done, total))
        )
        self._load = load
        engine = self._loader(load, manifest, self._say)
        info = engine.executor.info
        me = Self(
            device_id=load.device_id,
            fleet=load.fleet,
            model=manifest.model_digest,
            first_layer=manifest.layers.start,
            precision=load.precision,
            runtime=info.runtime,
        )
        self._ring = ring = Ring(
            me,
            self._inbox.put,
            security_of(load),
            host=load.listen_host,
            port=load.listen_port,
            message_deadline=load.step_deadline,
            silence=load.silence,
        )
        self._worker = worker = Worker(
            engine.executor,
            engine.grammars,
            device_id=load.device_id,
            fast=load.precision == "fast",
        )
        node = self._node(load, manifest, engine, worker, ring)
        self._say(
            pipe.Loaded(
                port=ring.port,
                layers=manifest.layers,
                block_size=info.block_size,
                blocks=info.blocks,
                max_context=info.max_context,
                runtime=info.runtime,
                seconds=time.monotonic() - started,
                spill_blocks=info.spill_blocks,
            )
        )
        return node

    def _node(
        self,
        load: pipe.Load,
        manifest: StageManifest,
        engine: Engine,
        worker: Worker,
        ring: Ring,
    ) -> Node:
        if engine.text is None:
            return Stage(worker, ring, self._say, device_id=load.device_id)
        prompts = Prompts(engine.text, engine.executor.info.vocab, self._inbox.put)
        return Head(
            worker,
            ring,
            engine.text,
            prompts.submit,
            self._say,
            eos=frozenset(manifest.architecture.eos_ids),
            step_deadline=load.step_deadline,
            hold_seconds=load.hold_seconds,
            speculator=speculator_of(lookup=load.lookup, draft=engine.draft, fixed=load.drafts),
        )

    def _serve(self, node: Node) -> int:
        _settle()
        busy = False
        while True:
            try:
                self._handle(node, self._inbox.get(timeout=0 if busy else node.wait_seconds()))
                while True:
                    self._handle(node, self._inbox.get_nowait())
            except queue.Empty:
                busy = node.pump()

    def _handle(self, node: Node, event: Event) -> None:
        if isinstance(event, pipe.Unlink):
            self._leaving.popleft()
        elif self._leaving and isinstance(event, Received) and isinstance(node, Stage):
            return  # it waits before the word to leave, and nobody will want what it would compute
        if isinstance(event, pipe.Measure):
            later = measure_idle(self._worker, event, self._inbox, node.handle, self._say)
            for other in later:
                self._handle(node, other)
            return
        if isinstance(event, pipe.QueryHops):
            found = self._ring.meter.estimates()
            self._say(pipe.Hops(tuple(pipe.Hop(e.peer, e.rtt, e.bandwidth) for e in found)))
            return
        if not isinstance(event, pipe.Renew):
            node.handle(event)
            return
        try:
            self._ring.renew(security_of(self._load))
        except NotAMember as exc:
            log.warning("the old certificate stays in use: %s", exc.message)


def _settle() -> None:
    """What loading left behind stays: no collection shall walk through it while tokens wait."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_EVERY, 10, 10)


def security_of(load: pipe.Load) -> Security:
    """Mutual TLS of the fleet from the paths in a Load message.

    Raises:
        NotAMember: the certificate files cannot be read.
    """
    try:
        credentials = Credentials(
            device_id=DeviceId(load.device_id),
            fleet_id=FleetId(load.fleet),
            leaf_path=Path(load.cert_path),
            key_path=Path(load.key_path),
            authority_pem=Path(load.authority_path).read_bytes(),
        )
        server, client = server_context(credentials), client_context(credentials)
    except (OSError, ValueError) as exc:  # ssl.SSLError is an OSError
        raise NotAMember(f"The fleet's certificates of this PC cannot be read: {exc}.") from exc
    return Security(server, client, _spki, lambda device: hostname_of(device, load.fleet))


def _spki(tls: object) -> str:
    spki = peer_spki(tls)  # type: ignore[arg-type]
    if spki is None:
        raise NotAMember("The peer showed no certificate.")
    return spki


def take_stdio() -> tuple[BinaryIO, BinaryIO]:
    """Own the pipes: binary ones for messages, and file descriptor 1 becomes stderr.

    Done on the level of descriptors, because native libraries print there.
    """
    sys.stdout.flush()
    out = os.dup(1)
    os.dup2(2, 1)
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415

        msvcrt.setmode(out, os.O_BINARY)
    return take_stdin(), os.fdopen(out, "wb")


def main(loader: Loader = load_openvino) -> int:
    """Run one shard for the agent that started this process."""
    source, sink = take_stdio()
    faulthandler.enable()
    # Ctrl+C in a terminal reaches every process in it; when this one ends is the agent's decision.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s"
    )
    current().lower_priority()
    runner = Runner(lambda: read_message(source), PipeWriter(sink), loader, os._exit)
    code = runner.run()
    sink.flush()
    return code


if __name__ == "__main__":
    # Not sys.exit: threads in native code must not hold up the end.
    os._exit(main())

"""Runner processes driven directly: one of them, or a ring of them on 127.0.0.1.

What an agent does, without an agent: start, load, link, ask. Certificates are real and of a
throw-away fleet, so the hops speak the same TLS as in an office.
"""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import psutil

from fleetapp.bench.child import environment
from fleetapp.bench.link import Link, Shape
from fleetapp.engine import pipe
from fleetapp.engine.pipe_io import pack
from fleetapp.errors import RunnerFailed, from_code
from fleetapp.fleet.authority import Authority
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.secrets import SecretStore
from fleetapp.platform import current
from fleetapp.platform.paths import Paths
from fleetapp.types import Precision, SamplingParams

M = TypeVar("M")
_DECODER: msgspec.msgpack.Decoder[pipe.FromRunner] = msgspec.msgpack.Decoder(pipe.FromRunner)
_SLICE = 0.5


@dataclass
class Answer:
    """All that was said about one request; times are of ``perf_counter``, as heard here."""

    asked: float = field(default_factory=time.perf_counter)
    started: pipe.Started | None = None
    deltas: list[pipe.Delta] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    """Of each Delta."""
    finished: pipe.Finished | None = None
    ended: threading.Event = field(default_factory=threading.Event, repr=False)
    """Nobody is woken for every token: that would take time from the processes measured."""

    @property
    def text(self) -> str:
        """Everything said so far."""
        return "".join(d.text for d in self.deltas)

    @property
    def ids(self) -> list[int]:
        """Every token so far."""
        return [i for d in self.deltas for i in d.token_ids]

    @property
    def first_token(self) -> float:
        """Seconds from asking to the first Delta."""
        return self.times[0] - self.asked

    @property
    def gaps(self) -> list[float]:
        """Seconds between one Delta and the next."""
        return [b - a for a, b in itertools.pairwise(self.times)]


class RunnerClient:
    """One runner process.

    Args:
        module: what to run.
        env: environment of the process, None for this one's.
        core: the only one it may use, set before it loads anything.
    """

    def __init__(
        self,
        module: str = "fleetapp.engine.runner",
        env: Mapping[str, str] | None = None,
        *,
        core: int | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=current().runner_environment(environment(env)),
        )
        if core is not None:
            # It waits for its first message before it loads native code.
            psutil.Process(self.process.pid).cpu_affinity([core])
        self.messages: list[pipe.FromRunner] = []
        self.answers: dict[str, Answer] = {}
        self.stderr: list[str] = []
        self.garbage = b""
        self._news = threading.Condition()
        self._writing = threading.Lock()
        self._threads = [
            threading.Thread(target=self._read, name="runner-out", daemon=True),
            threading.Thread(target=self._read_stderr, name="runner-err", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def send(self, message: pipe.ToRunner) -> None:
        """Write one message."""
        self.send_raw(pack(message))

    def send_raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        assert self.process.stdin is not None
        with self._writing:
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def wait(self, what: Callable[[], M | None], seconds: float = 30.0) -> M:
        """Wait until ``what`` gives something.

        Raises:
            RunnerFailed: it does not in time, or the process ended; with its last words.
        """
        until = time.monotonic() + seconds
        with self._news:
            while (found := what()) is None:
                remaining = until - time.monotonic()
                if remaining <= 0 or not self._threads[0].is_alive():
                    said, words = self.messages[-5:], "\n".join(self.stderr[-15:])
                    code = self.process.poll()
                    raise RunnerFailed(f"the runner said {said} (exit {code})\n{words}")
                self._news.wait(min(remaining, _SLICE))
            return found

    def expect(self, kind: type[M], seconds: float = 30.0, **fields: Any) -> M:
        """Wait for a message that is not about a request, and take it out of the list."""

        def find() -> M | None:
            for message in self.messages:
                if isinstance(message, kind) and all(
                    getattr(message, k) == v for k, v in fields.items()
                ):
                    self.messages.remove(message)
                    return message
            return None

        return self.wait(find, seconds)

    def ask(self, request: pipe.Generate) -> Answer:
        """Send a request; what is said about it gathers in the answer."""
        with self._news:
            answer = self.answers[request.request_id] = Answer()
        self.send(request)
        return answer

    def answer(self, request_id: str, seconds: float = 60.0) -> Answer:
        """Wait for the end of a request."""
        found = self.answers[request_id]
        until = time.monotonic() + seconds
        while not found.ended.wait(_SLICE):
            if time.monotonic() > until or not self._threads[0].is_alive():
                break
        self.wait(lambda: found.finished, 0)
        return found

    def stats(self) -> pipe.RunnerStats:
        """Its counters now."""
        self.send(pipe.QueryStats())
        return self.expect(pipe.RunnerStats)

    def trace(self) -> tuple[pipe.StepRecord, ...]:
        """Its most recent steps."""
        self.send(pipe.QueryTrace())
        return self.expect(pipe.Trace).steps

    def close(self, seconds: float = 10.0) -> int:
        """Close stdin, as an agent does, and wait for the exit code."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        return self.ended(seconds)

    def ended(self, seconds: float = 10.0) -> int:
        """The exit code; the process is killed if it does not end by itself."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
            raise
        finally:
            for thread in self._threads:
                thread.join(10)
            for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
                assert stream is not None
                with contextlib.suppress(OSError):
                    stream.close()
        return code

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while len(prefix := stream.read(4)) == 4:
            size = int.from_bytes(prefix, "big")
            if size > pipe.MAX_MESSAGE:
                self.garbage = prefix + stream.read(200)
                break
            message = _DECODER.decode(stream.read(size))
            with self._news:
                self._file(message)
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def _file(self, message: pipe.FromRunner) -> None:
        if not isinstance(message, pipe.Started | pipe.Delta | pipe.Finished):
            self.messages.append(message)
            return
        answer = self.answers[message.request_id]
        assert answer.finished is None, "something was said after Finished"
        if isinstance(message, pipe.Started):
            answer.started = message
        elif isinstance(message, pipe.Delta):
            answer.deltas.append(message)
            answer.times.append(time.perf_counter())
        else:
            answer.finished = message
            answer.ended.set()

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr.append(line.decode("utf-8", "replace").rstrip())


@dataclass(frozen=True)
class Member:
    """One device of a throw-away fleet."""

    identity: Identity
    fleet_id: str
    leaf: Path
    authority: Path
    issue: Callable[[], bytes] | None = field(default=None, repr=False, compare=False)
    """A further leaf (PEM) for the same key, where the authority is at hand."""

    @classmethod
    def enrol(cls, root: Path, count: int) -> list[Member]:
        """A new fleet of so many devices below ``root``."""
        platform = current()
        paths = Paths(root / "authority")
        store = SecretStore(paths.hub, platform, {"FLEETAPP_KEYRING": "off"})
        authority = Authority.create(paths, platform, store)
        pem = root / "authority.pem"
        pem.write_bytes(authority.certificate_pem)
        members = []
        for number in range(count):
            identity = Identity.load_or_create(Paths(root / f"node{number}"), platform)
            leaf = root / f"node{number}.crt"
            issue = partial(authority.issue, identity.csr())
            leaf.write_bytes(issue())
            members.append(cls(identity, authority.fleet_id, leaf, pem, issue))
        return members

    def load_message(
        self, stage_dir: Path, *, head: bool, precision: Precision = "exact", **other: Any
    ) -> pipe.Load:
        """A Load for this device, on 127.0.0.1."""
        fields: dict[str, Any] = {
            "device": "CPU",
            "threads": 1,
            "kv_bytes": 64 << 20,
            "max_context": 0,
            "cache_dir": "",
            "listen_host": "127.0.0.1",
            "listen_port": 0,
            "step_deadline": 20.0,
            **other,
        }
        return pipe.Load(
            stage_dir=str(stage_dir),
            head=head,
            precision=precision,
            cert_path=str(self.leaf),
            key_path=str(self.identity.key_path),
            authority_path=str(self.authority),
            fleet=self.fleet_id,
            device_id=self.identity.device_id,
            **fields,
        )


@dataclass(frozen=True)
class Layout:
    """What a ring is made of.

    Attributes:
        folders: one verified stage folder per stage, in order.
        starts: first layer of each.
        model: digest of the model's manifest.
    """

    folders: tuple[Path, ...]
    starts: tuple[int, ...]
    model: str


class RunnerRing:
    """A chain of runner processes with certificates of one fleet.

    Args:
        root: for keys and certificates.
        layout: the stages.
        module: what to run.
        env: environment of the processes, None for this one's.
        cores: one per process, pinned; None leaves them free.
        shape: if given, an emulated link on every hop.
        load: fields of every Load.
    """

    def __init__(
        self,
        root: Path,
        layout: Layout,
        *,
        module: str = "fleetapp.engine.runner",
        env: Mapping[str, str] | None = None,
        cores: Sequence[int] | None = None,
        shape: Shape | None = None,
        load_seconds: float = 120.0,
        **load: Any,
    ) -> None:
        count = len(layout.folders)
        self.members = Member.enrol(root, count)
        self.layout = layout
        self.epoch = 0
        self._module, self._env, self._cores = module, env, cores
        self._load_seconds = load_seconds
        self._loads = [
            member.load_message(folder, head=i == 0, **load)
            for i, (member, folder) in enumerate(zip(self.members, layout.folders, strict=True))
        ]
        self._numbers = itertools.count()
        self.runners: list[RunnerClient] = []
        self.loaded: list[pipe.Loaded] = []
        self.links: list[Link] = []
        try:
            self.runners = [self._spawn(i) for i in range(count)]
            self.loaded = [self._when_loaded(r) for r in self.runners]
            if shape is not None and count > 1:
                self.links = [
                    Link(self.loaded[i].port, shape, seed=i) for i in range(count)
                ]  # links[i] leads to stage i
        except BaseException:
            self.close()
            raise

    @property
    def head(self) -> RunnerClient:
        """Stage 0."""
        return self.runners[0]

    def _spawn(self, index: int) -> RunnerClient:
        core = None if self._cores is None else self._cores[index]
        runner = RunnerClient(self._module, self._env, core=core)
        runner.send(self._loads[index])
        return runner

    def _when_loaded(self, runner: RunnerClient) -> pipe.Loaded:
        def said() -> pipe.Loaded | pipe.Failed | None:
            for message in runner.messages:
                if isinstance(message, pipe.Loaded | pipe.Failed):
                    return message
            return None

        found = runner.wait(said, self._load_seconds)
        if isinstance(found, pipe.Failed):
            raise from_code(found.code, found.message, found.remedy)
        return runner.expect(pipe.Loaded)

    def restart(self, index: int) -> None:
        """A new process for a stage whose old one is dead."""
        self.runners[index].ended()
        self.runners[index] = self._spawn(index)
        self.loaded[index] = self._when_loaded(self.runners[index])

    def link_message(self, index: int, **changes: Any) -> pipe.Link:
        """What a stage is told for the present epoch."""
        count = len(self.runners)

        def peer(i: int) -> pipe.PeerAddress:
            identity = self.members[i % count].identity
            port = self.loaded[i % count].port
            if self.links:
                port = self.links[i % count].port
            return pipe.PeerAddress(identity.device_id, identity.spki, ("127.0.0.1",), port)

        link = pipe.Link(
            chain="chain",
            epoch=self.epoch,
            stage=index,
            stages=count,
            model=self.layout.model,
            next_layer=self.layout.starts[(index + 1) % count],
            next=peer(index + 1) if count > 1 else None,
            prev=peer(index - 1) if count > 1 else None,
            kv_blocks=min(m.blocks for m in self.loaded),
            block_size=max(m.block_size for m in self.loaded),
            spill_blocks=min(m.spill_blocks for m in self.loaded),
        )
        return msgspec.structs.replace(link, **changes)

    def link(self) -> None:
        """A new epoch, and both hops of every stage."""
        self.epoch += 1
        for index, runner in enumerate(self.runners):
            runner.send(self.link_message(index))
        for runner in self.runners:
            runner.expect(pipe.Linked, epoch=self.epoch)

    def reshape(self, shape: Shape) -> None:
        """Every hop is like this from now on."""
        for link in self.links:
            link.reshape(shape)

    def begin(
        self, prompt: str | Sequence[pipe.ChatMessage] | Sequence[int], **sampling: Any
    ) -> str:
        """Ask, do not wait; returns the request's id."""
        request_id = f"r{next(self._numbers)}"
        params = SamplingParams(**sampling)
        if isinstance(prompt, str):
            request = pipe.Generate(request_id, params, prompt=prompt)
        elif prompt and isinstance(prompt[0], int):
            request = pipe.Generate(request_id, params, token_ids=tuple(prompt))  # type: ignore[arg-type]
        else:
            request = pipe.Generate(request_id, params, messages=tuple(prompt))  # type: ignore[arg-type]
        self.head.ask(request)
        return request_id

    def stats(self) -> list[pipe.RunnerStats]:
        """Of every process, in order."""
        return [runner.stats() for runner in self.runners]

    def close(self) -> None:
        """End every process; none is left behind."""
        for runner in self.runners:
            with contextlib.suppress(subprocess.TimeoutExpired):
                runner.close()
        for link in self.links:
            link.close()

    def __enter__(self) -> RunnerRing:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

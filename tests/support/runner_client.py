"""Runner processes driven by hand: one of them, or a ring of them on 127.0.0.1."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import psutil

from fleetapp.engine import pipe
from fleetapp.engine.pipe_io import MAX_MESSAGE, pack
from fleetapp.types import Precision, SamplingParams
from tests.support.fleet import TestFleet, TestMember

ROOT = Path(__file__).parents[2]
_DECODER = msgspec.msgpack.Decoder(pipe.FromRunner)
M = TypeVar("M")


@dataclass
class Answer:
    """All that was said about one request."""

    started: pipe.Started | None = None
    deltas: list[pipe.Delta] = field(default_factory=list)
    finished: pipe.Finished | None = None

    @property
    def text(self) -> str:
        return "".join(d.text for d in self.deltas)

    @property
    def ids(self) -> list[int]:
        return [i for d in self.deltas for i in d.token_ids]


class RunnerClient:
    """One runner process.

    Args:
        module: what to run; the tests' own entry loads the fake executor.
        env: environment of the process, None for this one's.
    """

    def __init__(
        self, module: str = "fleetapp.engine.runner", env: dict[str, str] | None = None
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=env,
        )
        self.messages: list[pipe.FromRunner] = []
        self.answers: dict[str, Answer] = {}
        self.stderr: list[str] = []
        self.garbage = b""
        self._news = threading.Condition()
        self._writing = threading.Lock()
        self._threads = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def send(self, message: pipe.ToRunner) -> None:
        self.send_raw(pack(message))

    def send_raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        with self._writing:
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def wait(self, what: Callable[[], M | None], seconds: float = 30.0) -> M:
        """Wait until ``what`` gives something."""
        until = time.monotonic() + seconds
        with self._news:
            while (found := what()) is None:
                remaining = until - time.monotonic()
                if remaining <= 0 or not self._threads[0].is_alive():
                    said, words = self.messages[-5:], "\n".join(self.stderr[-15:])
                    code = self.process.poll()
                    raise AssertionError(f"the runner said {said} (exit {code})\n{words}")
                self._news.wait(min(remaining, 0.5))
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

    def ask(self, request: pipe.Generate) -> None:
        with self._news:
            self.answers[request.request_id] = Answer()
        self.send(request)

    def answer(self, request_id: str, seconds: float = 60.0) -> Answer:
        """Wait for the end of a request."""
        found = self.answers[request_id]
        self.wait(lambda: found.finished, seconds)
        return found

    def stats(self) -> pipe.RunnerStats:
        self.send(pipe.QueryStats())
        return self.expect(pipe.RunnerStats)

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
            if size > MAX_MESSAGE:
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
        else:
            answer.finished = message

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr.append(line.decode("utf-8", "replace").rstrip())


def load_message(
    member: TestMember, stage_dir: Path, *, head: bool, precision: Precision = "exact", **other: Any
) -> pipe.Load:
    """A Load for one member of a fleet, on 127.0.0.1."""
    credentials = member.enrolment.credentials
    authority = credentials.leaf_path.with_name("test-authority.pem")
    authority.write_bytes(credentials.authority_pem)
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
        cert_path=str(credentials.leaf_path),
        key_path=str(credentials.key_path),
        authority_path=str(authority),
        fleet=credentials.fleet_id,
        device_id=credentials.device_id,
        **fields,
    )


class RunnerRing:
    """A chain of runner processes with certificates of one fleet.

    Args:
        root: for keys and certificates.
        stage_dirs: one verified stage folder per stage, in order.
        layers_start: first layer of each.
        model: digest of the model's manifest.
    """

    def __init__(
        self,
        root: Path,
        stage_dirs: list[Path],
        layers_start: list[int],
        model: str,
        *,
        module: str = "fleetapp.engine.runner",
        env: dict[str, str] | None = None,
        **load: Any,
    ) -> None:
        self.fleet = TestFleet(root)
        self.members = [self.fleet.enrol(f"node{i}") for i in range(len(stage_dirs))]
        self.starts = layers_start
        self.model = model
        self.epoch = 0
        self._module, self._env = module, env
        self._loads = [
            load_message(member, folder, head=i == 0, **load)
            for i, (member, folder) in enumerate(zip(self.members, stage_dirs, strict=True))
        ]
        self._numbers = itertools.count()
        self.runners: list[RunnerClient] = []
        self.loaded: list[pipe.Loaded] = []
        try:
            self.runners = [self._spawn(i) for i in range(len(stage_dirs))]
            self.loaded = [r.expect(pipe.Loaded, 120) for r in self.runners]
        except BaseException:
            self.close()
            raise

    @property
    def head(self) -> RunnerClient:
        return self.runners[0]

    def _spawn(self, index: int) -> RunnerClient:
        runner = RunnerClient(self._module, self._env)
        runner.send(self._loads[index])
        return runner

    def restart(self, index: int) -> None:
        """A new process for a stage whose old one is dead."""
        self.runners[index].ended()
        self.runners[index] = self._spawn(index)
        self.loaded[index] = self.runners[index].expect(pipe.Loaded, 120)

    def link_message(self, index: int, **changes: Any) -> pipe.Link:
        count = len(self.runners)

        def peer(i: int) -> pipe.PeerAddress | None:
            identity = self.members[i % count].identity
            port = self.loaded[i % count].port
            return pipe.PeerAddress(identity.device_id, identity.spki, ("127.0.0.1",), port)

        link = pipe.Link(
            chain="chain",
            epoch=self.epoch,
            stage=index,
            stages=count,
            model=self.model,
            next_layer=self.starts[(index + 1) % count],
            next=peer(index + 1) if count > 1 else None,
            prev=peer(index - 1) if count > 1 else None,
            kv_blocks=min(m.blocks for m in self.loaded),
            block_size=max(m.block_size for m in self.loaded),
        )
        return msgspec.structs.replace(link, **changes)

    def link(self) -> None:
        """A new epoch, and both hops of every stage."""
        self.epoch += 1
        for index, runner in enumerate(self.runners):
            runner.send(self.link_message(index))
        for runner in self.runners:
            runner.expect(pipe.Linked, epoch=self.epoch)

    def begin(self, prompt: str | list[pipe.ChatMessage] | list[int], **sampling: Any) -> str:
        """Ask, do not wait; returns the request's id."""
        request_id = f"r{next(self._numbers)}"
        params = SamplingParams(**sampling)
        if isinstance(prompt, str):
            request = pipe.Generate(request_id, params, prompt=prompt)
        elif prompt and isinstance(prompt[0], int):
            request = pipe.Generate(request_id, params, token_ids=tuple(prompt))
        else:
            request = pipe.Generate(request_id, params, messages=tuple(prompt))
        self.head.ask(request)
        return request_id

    def chat(self, question: str, **sampling: Any) -> str:
        """Begin an answer to one user message."""
        return self.begin([pipe.ChatMessage("user", question)], **sampling)

    def assert_clean(self, seconds: float = 5.0) -> None:
        """No slot, no block, no request is left in any process, once the last Close is around."""
        until = time.monotonic() + seconds
        while any(map(self._unclean, found := self.stats())):
            assert time.monotonic() < until, found

    def stats(self) -> list[pipe.RunnerStats]:
        """Of every process, in order."""
        return [runner.stats() for runner in self.runners]

    @staticmethod
    def _unclean(stats: pipe.RunnerStats) -> bool:
        busy = stats.open_slots or stats.running or stats.waiting
        return bool(busy) or stats.free_blocks != stats.blocks

    def resources(self) -> list[tuple[int, int]]:
        """Threads and open files (handles on Windows) of each process."""
        found = []
        for runner in self.runners:
            process = psutil.Process(runner.process.pid)
            files = process.num_handles() if sys.platform == "win32" else process.num_fds()
            found.append((process.num_threads(), files))
        return found

    def close(self) -> None:
        """End every process; a test must leave none."""
        for runner in self.runners:
            runner.close()

    def __enter__(self) -> RunnerRing:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

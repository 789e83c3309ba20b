"""Starts a runner process, speaks with it, and knows how it ended.

A native fault may kill or hang a runner; it must never reach the agent. The agent sees an exit
code and the last lines of stderr, and everybody who waited gets a typed error.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable

from fleetapp.engine import pipe, pipe_io
from fleetapp.engine.exchange import Exchange, RequestEvent
from fleetapp.errors import FleetError, RunnerFailed, from_code
from fleetapp.platform import current

log = logging.getLogger("fleetapp.agent.supervisor")

STOP_GRACE = 3.0
RunnerEvent = (
    pipe.Progress | pipe.Loaded | pipe.Linked | pipe.Failed | pipe.ChainFault | pipe.RunnerStats
)


class RunnerProcess:
    """One child process holding one shard.

    Args:
        name: for logs, e.g. "stage 1 of chain c3".
        on_event: called on the event loop for every message that belongs to no request.
        on_exit: called once with the cause when the process ended without being asked to.
        module: what is run; tests have one that needs no model.
    """

    def __init__(
        self,
        name: str,
        on_event: Callable[[RunnerEvent], None],
        on_exit: Callable[[RunnerFailed], None],
        module: str = "fleetapp.engine.runner",
    ) -> None:
        self._name = name
        self._module = module
        self._on_event = on_event
        self._on_exit = on_exit
        self._process: asyncio.subprocess.Process | None = None
        self._stderr: deque[str] = deque(maxlen=40)
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._write_lock = asyncio.Lock()
        self._exchange = Exchange(self.send, name)
        self.exited = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process and not self.exited.is_set() else None

    async def start(self, load: pipe.Load) -> None:
        """Spawn and send the first message.

        Raises:
            RunnerFailed: the process could not be started.
        """
        flags = 0x08000000 if sys.platform == "win32" else 0  # CREATE_NO_WINDOW
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                # A folder that happens to be called like one of our modules must not be taken for
                # it, wherever the agent was started.
                *(["-P"] if self._module.startswith("fleetapp.") else []),
                "-m",
                self._module,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                creationflags=flags,
                env=current().runner_environment(os.environ),
            )
        except OSError as exc:
            self.exited.set()
            raise RunnerFailed(f"The runner for {self._name} could not be started: {exc}") from exc
        self._tasks = [
            asyncio.create_task(self._read_messages()),
            asyncio.create_task(self._read_stderr()),
        ]
        await self.send(load)

    async def send(self, message: pipe.ToRunner) -> None:
        """Write one message.

        Raises:
            RunnerFailed: the process is gone.
        """
        process = self._process
        if process is None or process.stdin is None or self.exited.is_set():
            raise self._cause()
        async with self._write_lock:
            try:
                async with asyncio.timeout(10.0):
                    await pipe_io.write_async(process.stdin, message)
            except (OSError, TimeoutError) as exc:
                raise self._cause() from exc

    def generate(self, request: pipe.Generate) -> AsyncIterator[RequestEvent]:
        """Run one request; leaving the iterator early cancels it within a step."""
        return self._exchange.generate(request)

    async def stats(self, deadline: float = 5.0) -> pipe.RunnerStats:
        """Ask for counters.

        Raises:
            RunnerFailed: no answer in time, or the process is gone.
        """
        return await self._exchange.stats(deadline)

    async def trace(self, deadline: float = 5.0) -> pipe.Trace:
        """Ask for the most recent steps; only a head has any.

        Raises:
            RunnerFailed: no answer in time, or the process is gone.
        """
        return await self._exchange.trace(deadline)

    async def measure(self, order: pipe.Measure, deadline: float = 30.0) -> pipe.Measured:
        """Have it time its layers while nobody is answered.

        Raises:
            RunnerFailed: no answer in time, or the process is gone.
        """
        return await self._exchange.measure(order, deadline)

    async def hops(self, deadline: float = 5.0) -> pipe.Hops:
        """What it saw of its links.

        Raises:
            RunnerFailed: no answer in time, or the process is gone.
        """
        return await self._exchange.hops(deadline)

    async def stop(self) -> None:
        """Close stdin, wait a little, then kill. Idempotent."""
        self._stopping = True
        process = self._process
        if process is None or self.exited.is_set():
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(STOP_GRACE):
                await self.exited.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            async with asyncio.timeout(STOP_GRACE):
                await self.exited.wait()

    async def _read_messages(self) -> None:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        try:
            while (message := await pipe_io.read_async(process.stdout)) is not None:
                self._dispatch(message)
        except FleetError as exc:
            log.warning("runner %s wrote garbage and is ended: %s", self._name, exc.message)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await process.wait()
        with contextlib.suppress(Exception):
            async with asyncio.timeout(1.0):
                await self._tasks[1]
        self.exited.set()
        cause = self._cause()
        self._exchange.fail(cause)
        if not self._stopping:
            log.error("%s", cause.message)
            self._on_exit(cause)

    def _dispatch(self, message: pipe.FromRunner) -> None:
        heard = self._exchange.hear(message)
        if isinstance(message, pipe.RunnerStats) or not heard:
            self._on_event(message)  # type: ignore[arg-type]

    async def _read_stderr(self) -> None:
        process = self._process
        assert process is not None
        assert process.stderr is not None
        while line := await process.stderr.readline():
            text = line.decode("utf-8", "replace").rstrip()
            self._stderr.append(text)
            log.debug("runner %s: %s", self._name, text)

    def _cause(self) -> RunnerFailed:
        code = self._process.returncode if self._process else None
        tail = next((line for line in reversed(self._stderr) if line.strip()), "")
        how = "was stopped" if self._stopping else f"ended with exit code {code}"
        detail = f" Its last words: {tail[:300]}" if tail and not self._stopping else ""
        return RunnerFailed(f"The runner for {self._name} {how}.{detail}")


def error_of(event: pipe.Failed | pipe.Finished | pipe.ChainFault) -> FleetError:
    """The typed error that an event carries."""
    return from_code(event.code, event.message, getattr(event, "remedy", ""))

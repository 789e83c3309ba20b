"""Long work on one model of the library: a child process, and where it stands.

Crash-only: to end it is to close its stdin. What it has half done is resumed or removed by whoever
works on the library next.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import sys
import time
from collections import deque
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from fleetapp.errors import Cancelled, FleetError, from_code
from fleetapp.models.child import Line, WorkerDied
from fleetapp.models.job import Order
from fleetapp.models.manifest import Signer
from fleetapp.models.progress import Progress
from fleetapp.platform.processes import Descendants
from fleetapp.types import JobError, ModelJob

log = logging.getLogger("fleetapp.agent.models")

SILENCE = 2 * 3600.0
"""Seconds without a word after which a child counts as hung; it may wait an hour for another one
that has the library, and every other wait within it has a shorter deadline of its own."""
GRACE = 5.0
"""Seconds a child and its own children have to end by themselves."""
_WRITE_DEADLINE = 10.0
_LINE = 64 * 2**20
"""Bytes; a manifest to be signed is a line."""


def new_id() -> str:
    """A name for a job."""
    return secrets.token_hex(6)


class Remaining:
    """How long a phase will take yet, from its speed in the last seconds. Pure."""

    WINDOW = 20.0
    LEAST = 2.0

    def __init__(self) -> None:
        self._phase = ("", 0)
        self._seen: deque[tuple[float, int]] = deque()

    def after(self, progress: Progress, now: float) -> float | None:
        """Seconds left, or None if that cannot be told (yet)."""
        phase = (progress.phase, progress.total)
        if phase != self._phase or (self._seen and progress.done < self._seen[-1][1]):
            self._phase = phase
            self._seen.clear()
        self._seen.append((now, progress.done))
        while now - self._seen[0][0] > self.WINDOW and len(self._seen) > 2:
            self._seen.popleft()
        began, done = self._seen[0]
        if progress.unit != "bytes" or now - began < self.LEAST or progress.done <= done:
            return None
        return max(progress.total - progress.done, 0) * (now - began) / (progress.done - done)


class Job:
    """One piece of work.

    Args:
        order: what is to be done.
        asked: the same in the words of whoever asked.
        signer: vouches for what is imported.
        changed: called whenever ``view`` is another.
        silence: seconds without a word after which the child counts as hung.
    """

    def __init__(
        self,
        order: Order,
        asked: str,
        signer: Callable[[], Signer],
        changed: Callable[[], None],
        *,
        silence: float = SILENCE,
    ) -> None:
        self.view = ModelJob(new_id(), order.kind, order.model, asked=asked)
        self._order = order
        self._signer = signer
        self._changed = changed
        self._silence = silence
        self._process: asyncio.subprocess.Process | None = None
        self._noise: deque[str] = deque(maxlen=6)
        self._remaining = Remaining()
        self._ending = False
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether anything of it may still run."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._run())

    async def end(self) -> None:
        """Break it off; returns when nothing of it runs any more. Harmless if it has ended."""
        self._ending = True
        if self._task is None:
            return
        if self._process is not None:
            await self._end_process(self._process)
        await asyncio.wait({self._task}, timeout=4 * GRACE)

    async def _run(self) -> None:
        try:
            said = await self._work()
        except Cancelled:
            self._show(state="cancelled", seconds_left=None)
        except FleetError as exc:
            error = JobError(exc.code, exc.message, exc.remedy)
            self._show(state="failed", seconds_left=None, error=error)
        except Exception as exc:  # the outermost frame of a task: nobody above could tell
            log.exception("work on the model %s failed", self.view.model)
            error = JobError(FleetError.code, f"Something went wrong: {type(exc).__name__}.")
            self._show(state="failed", seconds_left=None, error=error)
        else:
            self._show(state="done", seconds_left=None, message=said)

    def _show(self, **changes: object) -> None:
        self.view = replace(self.view, **changes)
        self._changed()

    async def _work(self) -> str:
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "fleetapp.models.job",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_LINE,
                env=os.environ | {"PYTHONUTF8": "1", "PYTHONFAULTHANDLER": "1"},
                creationflags=0x08000000 if sys.platform == "win32" else 0,  # CREATE_NO_WINDOW
            )
        except OSError as exc:
            raise WorkerDied(f"No process could be started for {self.view.model}: {exc}.") from exc
        self._process = process
        listening = asyncio.create_task(self._listen(process))
        try:
            if self._ending:
                raise Cancelled("It was cancelled.")
            await self._tell(process, self._order)
            said = await self._follow(process)
            if said is not None:
                return said
            async with asyncio.timeout(GRACE):  # it has closed stdout: all that is left is to end
                await process.wait()
                await asyncio.wait({listening})
            raise self._obituary(process)
        except TimeoutError:
            raise WorkerDied(
                f"The process for {self.view.model} gave no sign of life and was ended."
            ) from None
        finally:
            await self._end_process(process)
            listening.cancel()

    async def _follow(self, process: asyncio.subprocess.Process) -> str | None:
        """Return what the child says in the end, or None if it ends without."""
        assert process.stdout is not None
        while True:
            async with asyncio.timeout(self._silence):
                raw = await process.stdout.readline()
            if not raw:
                return None
            try:
                line = msgspec.json.decode(raw, type=Line)
            except msgspec.MsgspecError:
                continue  # a library has printed something
            if line.progress is not None:
                self._progress(line.progress)
            elif line.sign:
                await self._tell(process, await asyncio.to_thread(self._signer().sign, line.sign))
            elif line.error is not None:
                raise from_code(*line.error)
            elif line.result:
                return msgspec.json.decode(line.result, type=str)

    def _progress(self, progress: Progress) -> None:
        same = progress.phase == self.view.phase
        self._show(
            phase=progress.phase,
            done=progress.done,
            total=progress.total,
            unit=progress.unit,
            message=progress.message or (self.view.message if same else ""),
            seconds_left=self._remaining.after(progress, time.monotonic()),
        )

    async def _tell(self, process: asyncio.subprocess.Process, value: object) -> None:
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # it has died: what it said last tells why
            process.stdin.write(msgspec.json.encode(value) + b"\n")
            async with asyncio.timeout(_WRITE_DEADLINE):
                await process.stdin.drain()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        async for raw in process.stderr:
            if text := raw.decode("utf-8", "replace").strip():
                self._noise.append(text)

    def _obituary(self, process: asyncio.subprocess.Process) -> FleetError:
        if self._ending:
            return Cancelled("It was cancelled.")
        last = f" Its last words: {' | '.join(self._noise)}" if self._noise else ""
        return WorkerDied(
            f"The process for {self.view.model} ended with code {process.returncode}.{last}"
        )

    async def _end_process(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is not None:
            return
        below = await asyncio.to_thread(Descendants, process.pid)
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(GRACE):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    await process.wait()
        await asyncio.to_thread(below.end, GRACE)

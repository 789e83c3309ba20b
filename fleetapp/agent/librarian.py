"""The model library of this PC: what is there, what is being got, and what may be asked of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from fleetapp.agent.bell import Bell
from fleetapp.agent.modeljob import Job, new_id
from fleetapp.agent.pc import PC
from fleetapp.agent.shelf import Found, Shelf
from fleetapp.errors import (
    BadRequest,
    Busy,
    FleetError,
    FleetUnavailable,
    Interrupted,
    NotFound,
    StorageError,
)
from fleetapp.hub.hub import Hub
from fleetapp.models import fetch
from fleetapp.models.catalog import CATALOG, Entry, find
from fleetapp.models.disk import require_space
from fleetapp.models.facts import safe_id
from fleetapp.models.importing import locate
from fleetapp.models.job import Order
from fleetapp.platform.files import write_atomic
from fleetapp.types import JobError, ModelJob, ModelsView

log = logging.getLogger("fleetapp.agent.models")

_T = TypeVar("_T")

MOST = 4
"""Jobs at a time."""
KEPT = 16
"""Outcomes that are kept."""
DISK_DEADLINE = 30.0
LOOK_EVERY = 2.0
"""Other processes change the library too (s)."""
BURST = 0.1


class ModelCalls(Protocol):
    """What the loopback API may ask. All raise FleetError and bound their own time."""

    async def view(self) -> ModelsView:
        """Library, catalogue and jobs now."""
        ...

    def events(self) -> AsyncIterator[ModelsView]:
        """The view now, and again on every change; closing the iterator ends it."""
        ...

    async def get(self, model: str, name: str, accept_licence: bool) -> ModelJob:
        """Begin to fetch a model of the catalogue, or ``hf:OWNER/REPO[@REVISION][/FILE.gguf]``."""
        ...

    async def import_path(self, path: str, name: str) -> ModelJob:
        """Begin to import a GGUF file or a folder with an OpenVINO IR."""
        ...

    async def verify(self, model: str) -> ModelJob:
        """Begin to hash a model and its stages again."""
        ...

    async def cancel(self, job: str) -> ModelJob:
        """End a job; returns when nothing of it runs any more."""
        ...

    async def remove(self, model: str) -> None:
        """Delete a model and every stage made of it; Busy while it is served or worked on."""
        ...


class Librarian:
    """``ModelCalls`` of one agent.

    Args:
        pc: this PC as it is now.
        hub: of this PC, if it is a coordinator.
        over: whether the agent is ending.
        entries: the catalogue.
    """

    def __init__(
        self,
        pc: Callable[[], PC],
        hub: Callable[[], Hub | None],
        over: Callable[[], bool],
        entries: Sequence[Entry] = CATALOG,
    ) -> None:
        self._pc = pc
        self._hub = hub
        self._over = over
        self._entries = entries
        self._bell = Bell()
        self._beginning = asyncio.Lock()
        self._jobs: dict[str, Job] = {}
        """Those that run, by model."""
        self._ended: dict[str, ModelJob] = {}
        """The last outcome for each model, oldest first."""
        self._leaving: set[str] = set()
        self._shelf = Shelf(pc, entries)
        self._stopping = False
        self._chores: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Show what an earlier agent could not finish, and clear away what it left half done."""
        for job in await asyncio.to_thread(self._recall):
            why = Interrupted(f"The agent ended while it was at work on {job.model}.")
            error = JobError(why.code, why.message, why.remedy)
            self._ended[job.model] = replace(job, state="failed", seconds_left=None, error=error)
        self._tidy_soon()

    async def stop(self) -> None:
        """End all jobs; the next agent shows them as interrupted."""
        self._stopping = True
        for chore in self._chores:
            chore.cancel()
        jobs = list(self._jobs.values())
        if jobs:
            try:
                await self._remember()
            except FleetError as exc:
                log.warning("the next agent will not know of %d jobs: %s", len(jobs), exc)
        await asyncio.gather(*(job.end() for job in jobs))

    def ring(self) -> None:
        """Have those who watch look, at whether the agent ends for example."""
        self._bell.ring()

    # ------------------------------------------------------------------ ModelCalls

    async def view(self) -> ModelsView:
        """Library, catalogue and jobs now."""
        return self._show(await self._disk(self._shelf.look, 0.0))

    async def events(self) -> AsyncIterator[ModelsView]:
        """The view now, and again on every change."""
        shown = None
        async for _ in self._bell.ticks(self._over, LOOK_EVERY, BURST):
            view = self._show(await self._disk(self._shelf.look, LOOK_EVERY / 2))
            if view != shown:
                shown = view
                yield view

    async def get(self, model: str, name: str = "", accept_licence: bool = False) -> ModelJob:
        """Begin to fetch a model.

        Raises:
            NotFound, BadRequest: there is no such model, or it is no address of one; or another
                model has that name.
            LicenceNotAccepted: it has terms that somebody has to agree to.
            DiskFull: it does not fit; nothing was begun.
            Busy: something else is being done with a model of that name, or too much at once.
        """
        entry = find(model, self._entries)
        model_id = safe_id(name) if name.strip() else entry.model_id
        if not accept_licence:
            fetch.require_accepted(entry)
        async with self._beginning:
            if (running := self._running("get", model_id, model)) is not None:
                return running
            library = await self._disk(self._shelf.library)
            if await self._disk(fetch.already, library, model_id, entry.sha256):
                said = f"{model_id} is here already."
                return self._keep(
                    ModelJob(new_id(), "get", model_id, "done", message=said, asked=model)
                )
            if entry.size:
                await self._disk(fetch.require_room, library, entry)
            order = Order("get", str(library.root), model_id, self._spki(), entry=entry)
            return await self._begin(order, model)

    async def import_path(self, path: str, name: str = "") -> ModelJob:
        """Begin to import a GGUF file or a folder with an OpenVINO IR.

        Raises:
            BadRequest: the path is not absolute.
            NotAModel: nothing there can be a model.
            DiskFull: it does not fit; nothing was begun.
            Busy: something is being done with a model of that name, or too much at once.
        """
        if "\0" in path or not Path(path).is_absolute():
            raise BadRequest(
                "The path of a model has to be absolute.",
                remedy="Give it from the drive or the root on.",
                param="path",
            )
        found = await self._disk(locate, Path(path))
        model_id = safe_id(name) if name.strip() else found.name
        async with self._beginning:
            if (running := self._running("import", model_id, path)) is not None:
                return running
            library = await self._disk(self._shelf.library)
            space = await self._disk(lambda: found.space)
            what = f"Importing {found.path.name}"
            await self._disk(require_space, library.root, space, what, library.free)
            order = Order("import", str(library.root), model_id, self._spki(), str(found.path))
            return await self._begin(order, path)

    async def verify(self, model: str) -> ModelJob:
        """Begin to hash a model and its stages again.

        Raises:
            NotFound: there is no such model.
            Busy: something else is being done with it, or too much at once.
        """
        async with self._beginning:
            if (running := self._running("verify", model, model)) is not None:
                return running
            library = await self._disk(self._shelf.library)
            await self._disk(library.get, model)
            return await self._begin(Order("verify", str(library.root), model, self._spki()), model)

    async def cancel(self, job: str) -> ModelJob:
        """End a job, or put an outcome away; returns when nothing of it runs any more.

        Raises:
            NotFound: there is no such job.
        """
        for running in list(self._jobs.values()):
            if running.view.job == job:
                await running.end()
                return running.view
        for model, ended in list(self._ended.items()):
            if ended.job == job:
                del self._ended[model]
                await self._remember()
                self._bell.ring()
                return ended
        raise NotFound("There is no such work on a model.", remedy="It may have ended long ago.")

    async def remove(self, model: str) -> None:
        """Delete a model and every stage made of it.

        Raises:
            NotFound: there is no such model.
            Busy: it is served, drafts for one that is, or is being worked on; or other work has
                the library.
        """
        async with self._beginning:
            self.require_settled(model)
            if model in self._jobs:
                raise Busy(
                    f"'{model}' is being worked on.", remedy="Cancel that, or wait for its end."
                )
            hub = self._hub()
            if hub is not None and (users := hub.models.in_use(model)):
                what = "is being served" if model in users else f"drafts for {', '.join(users)}"
                raise Busy(
                    f"'{model}' {what}.", remedy=f"Stop it first: fleetapp unserve {users[0]}."
                )
            self._leaving.add(model)
        try:
            library = await self._disk(self._shelf.library)
            await asyncio.to_thread(library.remove, model)
        except FleetUnavailable:
            raise Busy(
                f"'{model}' cannot be removed while another model is being imported or checked.",
                remedy="Try again when that has ended.",
            ) from None
        finally:
            self._leaving.discard(model)
        self._ended.pop(model, None)
        self._shelf.forget()
        self._bell.ring()

    def require_settled(self, model: str) -> None:
        """Raise Busy while a model is being removed."""
        if model in self._leaving:
            raise Busy(f"'{model}' is being removed.")

    # ------------------------------------------------------------------ jobs

    def _running(self, kind: str, model: str, asked: str) -> ModelJob | None:
        """The same work if it goes on already; asking twice is no mistake.

        Raises:
            Busy: other work on that model does, or as much as may.
        """
        self.require_settled(model)
        if (job := self._jobs.get(model)) is not None:
            if (job.view.kind, job.view.asked) == (kind, asked):
                return job.view
            raise Busy(f"'{model}' is being worked on already.", remedy="Wait for its end.")
        if len(self._jobs) >= MOST:
            raise Busy(
                f"{MOST} models are being worked on already.", remedy="Wait for one of them."
            )
        return None

    async def _begin(self, order: Order, asked: str) -> ModelJob:
        self._ended.pop(order.model, None)
        job = Job(order, asked, lambda: self._pc().identity, self._job_changed)
        self._jobs[order.model] = job
        try:
            await self._remember()
        except FleetError:
            del self._jobs[order.model]
            raise
        job.start()
        self._bell.ring()
        return job.view

    def _job_changed(self) -> None:
        ended = [job for job in self._jobs.values() if job.view.state != "running"]
        for job in ended:
            del self._jobs[job.view.model]
            self._keep(job.view)
        if ended:
            self._shelf.forget()
            if not self._stopping:  # else it is for the next agent to tell
                self._tidy_soon()
        self._bell.ring()

    def _keep(self, ended: ModelJob) -> ModelJob:
        self._ended.pop(ended.model, None)
        self._ended[ended.model] = ended
        while len(self._ended) > KEPT:
            del self._ended[next(iter(self._ended))]
        self._bell.ring()
        return ended

    def _tidy_soon(self) -> None:
        task = asyncio.create_task(self._tidy())
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    async def _tidy(self) -> None:
        try:
            await self._remember()
            await asyncio.to_thread(self._shelf.tidy)
        except FleetError as exc:
            log.warning("the model library was not tidied: %s", exc)

    async def _remember(self) -> None:
        """So that the next agent can say what this one did not finish."""
        kept = [job.view for job in self._jobs.values()]
        kept += [job for job in self._ended.values() if _interrupted(job)]
        file = self._pc().paths.model_jobs_file
        await asyncio.to_thread(write_atomic, file, msgspec.json.encode(kept))

    def _recall(self) -> list[ModelJob]:
        try:
            raw = self._pc().paths.model_jobs_file.read_bytes()
            return msgspec.json.decode(raw, type=list[ModelJob])
        except FileNotFoundError:
            return []
        except (OSError, msgspec.MsgspecError) as exc:
            log.warning("what was under way is not known any more: %s", exc)
            return []

    # ------------------------------------------------------------------ helpers

    def _spki(self) -> str:
        return self._pc().identity.spki

    def _show(self, found: Found) -> ModelsView:
        here = {model.id for model in found.models}
        ended = [
            job
            for job in self._ended.values()
            # not what somebody else has got since
            if not (_interrupted(job) and job.kind != "verify" and job.model in here)
        ]
        return ModelsView(
            library=found.models,
            catalog=found.catalog,
            jobs=(*ended, *(job.view for job in self._jobs.values())),
            folder=str(found.folder),
        )

    async def _disk(self, work: Callable[..., _T], *args: object) -> _T:
        """Blocking work that looks at the disk, which may be one that does not answer."""
        try:
            async with asyncio.timeout(DISK_DEADLINE):
                return await asyncio.to_thread(work, *args)
        except TimeoutError:
            raise StorageError(
                f"The disk gave no answer within {DISK_DEADLINE:g} s.",
                remedy="Check that it is connected, a network drive above all.",
            ) from None


def _interrupted(job: ModelJob) -> bool:
    return job.error is not None and job.error.code == Interrupted.code

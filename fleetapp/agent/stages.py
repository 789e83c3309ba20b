"""This PC's assignments: fetch the shard, start its runner, link it, say how it goes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import structs

from fleetapp.agent.fetching import ShardFetcher
from fleetapp.agent.held import (
    HeldStage,
    LinkedStage,
    RunnerSetup,
    failure,
    reject,
    resolve,
)
from fleetapp.agent.limiter import UNLIMITED, Limiter
from fleetapp.agent.peers import Peers
from fleetapp.agent.supervisor import RunnerEvent, RunnerProcess
from fleetapp.agent.swarm import ChunkSource
from fleetapp.engine import pipe
from fleetapp.errors import BadSignature, FleetError, NotAMember, PeerTimeout, RunnerFailed
from fleetapp.fleet.control import (
    Assign,
    FaultReport,
    Held,
    LinkStage,
    Neighbour,
    StageStatus,
)
from fleetapp.models.manifest import decode_stage
from fleetapp.models.store import ShardStore
from fleetapp.types import AssignmentView, Phase

log = logging.getLogger("fleetapp.agent.stages")

LOAD_DEADLINE = 900.0
"""Compiling a large shard for a GPU takes minutes the first time (s)."""
LINK_DEADLINE = 8.0
REPORT_INTERVAL = 0.1
"""Shortest time between two progress reports of one phase (s)."""

Outgoing = StageStatus | FaultReport


def _peer(neighbour: Neighbour | None) -> pipe.PeerAddress | None:
    if neighbour is None:
        return None
    return pipe.PeerAddress(
        device_id=neighbour.device_id,
        spki=neighbour.spki,
        hosts=neighbour.hosts,
        port=neighbour.port,
    )


class StageHost:
    """Owns the runners of this PC.

    Args:
        store: shards on disk.
        source: where missing chunks come from.
        setup: asked at each start, so that changed settings take effect.
        made_here: the folder of a shard that this very PC made, by manifest digest (the
            coordinator links it instead of fetching it from itself).
        verify: raises BadSignature unless a coordinator of this fleet signed the manifest.
        trusted: whether a key (hex SPKI hash) is an active member's.
        report: sends a message to the hub; must not raise.
        changed: called after every change, for the tray.
        peers: other members as sources of chunks; none without.
        limiter: of what is fetched.
    """

    def __init__(
        self,
        store: ShardStore,
        source: ChunkSource,
        setup: Callable[[], RunnerSetup],
        made_here: Callable[[str], Path | None],
        verify: Callable[[Assign], None],
        trusted: Callable[[str], bool],
        report: Callable[[Outgoing], Awaitable[None]],
        changed: Callable[[], None],
        runner: Callable[..., RunnerProcess] = RunnerProcess,
        peers: Peers | None = None,
        limiter: Limiter = UNLIMITED,
    ) -> None:
        self._setup = setup
        self._verify = verify
        self._trusted = trusted
        self._report = report
        self._changed = changed
        self._runner = runner
        self._fetcher = ShardFetcher(store, source, made_here, peers, limiter)
        self._held: dict[str, HeldStage] = {}

    def runner(self, assignment: str) -> RunnerProcess | None:
        """The running process of an assignment, if it is loaded."""
        held = self._held.get(assignment)
        return held.alive if held is not None else None

    def held(self) -> tuple[Held, ...]:
        """What is loaded, for a hub that may use it as it is."""
        return tuple(
            h.told() for h in self._held.values() if h.ready is not None and h.alive is not None
        )

    def phases(self) -> dict[str, Phase]:
        """Assignments of this PC and where they stand."""
        return {a: h.status.phase for a, h in self._held.items()}

    def linked(self) -> tuple[LinkedStage, ...]:
        """What is in use now, for measuring it."""
        device = self._setup().device
        linked = (h.linked(device) for h in self._held.values())
        return tuple(stage for stage in linked if stage is not None)

    def sent_bytes(self) -> dict[str, int]:
        """Application bytes each runner sent to its next hop."""
        return {a: h.sent_bytes for a, h in self._held.items()}

    def views(self) -> tuple[AssignmentView, ...]:
        """For tray and status."""
        setup = self._setup()
        return tuple(h.view(setup.device_id, setup.name) for h in self._held.values())

    async def assign(self, assign: Assign) -> None:
        """Begin to hold a shard; returns at once, progress is reported."""
        if assign.assignment in self._held:
            return
        status = StageStatus(assignment=assign.assignment, phase="waiting")
        try:
            self._verify(assign)
            manifest = decode_stage(assign.manifest.payload)
        except FleetError as exc:
            await self._report(failure(status, exc))
            return
        except ValueError as exc:
            error = BadSignature(f"The shard's manifest cannot be read: {exc}")
            await self._report(failure(status, error))
            return
        held = HeldStage(assign=assign, manifest=manifest, status=status)
        self._held[assign.assignment] = held
        held.task = asyncio.create_task(self._prepare(held))

    async def link(self, link: LinkStage) -> None:
        """Form the ring for a new epoch; the outcome is reported."""
        held = self._held.get(link.assignment)
        if held is None or held.runner is None:
            status = StageStatus(assignment=link.assignment, phase="failed", epoch=link.epoch)
            error = RunnerFailed("This PC no longer holds that shard.")
            await self._report(failure(status, error))
            return
        self._forget_ring(held, link.epoch)
        held.neighbours = tuple(n for n in (link.prev, link.next) if n is not None)
        held.link = asyncio.get_running_loop().create_future()
        try:
            self._refuse_strangers(held)
            await held.runner.send(
                pipe.Link(
                    chain=link.chain,
                    epoch=link.epoch,
                    stage=held.assign.stage,
                    stages=held.assign.stages,
                    model=link.model_digest,
                    next_layer=link.next_layer,
                    next=_peer(link.next),
                    prev=_peer(link.prev),
                    kv_blocks=link.kv_blocks,
                    block_size=link.block_size,
                    spill_blocks=link.spill_blocks,
                    deadline=LINK_DEADLINE - 2,
                )
            )
            async with asyncio.timeout(LINK_DEADLINE):
                await held.link
        except TimeoutError:
            timeout = PeerTimeout(
                f"{self._setup().name} could not reach its neighbours in the ring in time.",
                remedy="Check that the firewall allows fleetapp between these PCs.",
            )
            await self._fail(held, timeout)
        except FleetError as exc:
            await self._fail(held, exc)
        else:
            if held.epoch == link.epoch:  # or another one has begun meanwhile
                size = held.manifest.size
                await self._set(held, "linked", size, size, epoch=link.epoch)

    def _forget_ring(self, held: HeldStage, epoch: int) -> None:
        """Whoever still waits for the ring of another epoch waits no more, and reports nothing."""
        held.epoch, held.neighbours = epoch, ()
        resolve(held.link, epoch)

    def _refuse_strangers(self, held: HeldStage) -> None:
        for neighbour in held.neighbours:
            if not self._trusted(neighbour.spki):
                raise NotAMember(
                    f"device {neighbour.device_id} is no member of this fleet any more."
                )

    async def leave_strangers(self) -> None:
        """End every ring in which a neighbour is no member any more; the shards stay loaded.

        The other end may not play along, so this end closes the connections.
        """
        for held in list(self._held.values()):
            try:
                self._refuse_strangers(held)
            except NotAMember as exc:
                log.warning("a ring is left: %s", exc.message)
                await self._leave(held, pipe.Unlink(exc.message, hold=True))

    async def leave_rings(self, unlink: pipe.Unlink) -> None:
        """Leave every ring at the next step boundary; the shards stay loaded."""
        await asyncio.gather(*(self._leave(h, unlink) for h in list(self._held.values())))

    async def _leave(self, held: HeldStage, unlink: pipe.Unlink) -> None:
        self._forget_ring(held, 0)
        if held.status.phase == "linked":
            held.status = structs.replace(held.status, phase="ready", epoch=0)
        if held.runner is not None:
            with contextlib.suppress(RunnerFailed):
                await held.runner.send(unlink)
        self._changed()

    async def release(self, assignment: str) -> None:
        """Stop the runner; the shard stays on disk."""
        held = self._held.pop(assignment, None)
        if held is None:
            return
        if held.task is not None:
            held.task.cancel()
            await asyncio.gather(held.task, return_exceptions=True)
        if held.runner is not None:
            await held.runner.stop()
        self._changed()

    async def release_unready(self) -> None:
        """Let go what is not loaded: a hub that comes back will deal it anew."""
        names = [n for n, h in self._held.items() if h.ready is None or h.status.phase == "failed"]
        await asyncio.gather(*(self.release(n) for n in names))

    async def release_all(self) -> None:
        """Stop every runner."""
        await asyncio.gather(*(self.release(a) for a in list(self._held)))

    async def renew(self) -> None:
        """Let every runner show the new leaf on new connections."""
        for held in list(self._held.values()):
            if held.runner is not None:
                with contextlib.suppress(RunnerFailed):
                    await held.runner.send(pipe.Renew())

    async def counters(self) -> list[pipe.RunnerStats]:
        """What each loaded runner has counted.

        Raises:
            RunnerFailed: one does not answer in time.
        """
        loaded = [h.runner for h in self._held.values() if h.status.phase in ("ready", "linked")]
        return [await runner.stats() for runner in loaded if runner is not None]

    async def refresh_counters(self) -> None:
        """Ask each linked runner for its counters; a silent one is left to its own deadlines."""
        for held in list(self._held.values()):
            if held.runner is not None and held.status.phase == "linked":
                with contextlib.suppress(FleetError):
                    held.sent_bytes = (await held.runner.stats(2.0)).sent_bytes

    async def _prepare(self, held: HeldStage) -> None:
        try:
            draft = await self._fetch_draft(held)
            folder = await self._fetch(held)
            await self._load(held, folder, draft)
        except FleetError as exc:
            await self._fail(held, exc)
        except Exception as exc:
            log.exception("preparing %s failed", held.assign.assignment)
            await self._fail(held, RunnerFailed(f"Preparing the shard failed: {exc}"))

    async def _fetch(self, held: HeldStage) -> Path:
        async def tell(done: int, total: int, before: int) -> None:
            await self._set(held, "downloading", done, total, from_cache=before)

        assign = held.assign
        return await self._fetcher.fetch(assign, assign.manifest, held.manifest.size, tell)

    async def _fetch_draft(self, held: HeldStage) -> Path | None:
        """The whole draft model of a head, by the same road as its shard."""
        if held.assign.draft is None:
            return None

        async def tell(done: int, total: int, _before: int) -> None:
            if total:
                await self._set(held, "downloading", done, total, "Fetching the draft model.")

        return await self._fetcher.fetch(held.assign, held.assign.draft, 0, tell)

    async def _load(self, held: HeldStage, folder: Path, draft: Path | None) -> None:
        setup, assign = self._setup(), held.assign
        loop = asyncio.get_running_loop()
        held.loaded = loop.create_future()
        held.runner = self._runner(
            f"layers {assign.layers} of {assign.model}",
            on_event=lambda event: self._on_event(held, event),
            on_exit=lambda cause: self._on_exit(held, cause),
        )
        await held.runner.start(
            pipe.Load(
                stage_dir=str(folder),
                head=assign.head,
                precision=assign.precision,
                device=assign.device or setup.device,
                threads=setup.threads or assign.threads,
                kv_bytes=assign.kv_bytes or setup.kv_bytes,
                max_context=_smaller(assign.max_context, setup.max_context),
                cache_dir=str(setup.cache_dir) if setup.cache_dir else "",
                spill_bytes=setup.spill_bytes,
                spill_disk_bytes=setup.spill_disk_bytes if setup.cache_dir else 0,
                listen_host=setup.listen_host,
                listen_port=self._port(held, setup.listen_port),
                cert_path=str(setup.cert_path),
                key_path=str(setup.key_path),
                authority_path=str(setup.authority_path),
                fleet=setup.fleet,
                device_id=setup.device_id,
                lookup=assign.lookup,
                draft_dir=str(draft) if draft is not None else "",
            )
        )
        try:
            async with asyncio.timeout(LOAD_DEADLINE):
                loaded = await held.loaded
        except TimeoutError as exc:
            await held.runner.stop()
            raise RunnerFailed("The shard did not load in time and was stopped.") from exc
        await self._set(
            held,
            "ready",
            held.manifest.size,
            held.manifest.size,
            port=loaded.port,
            blocks=loaded.blocks,
            block_size=loaded.block_size,
            spill_blocks=loaded.spill_blocks,
            max_context=loaded.max_context,
            runtime=loaded.runtime,
        )
        held.ready = held.status

    def _port(self, held: HeldStage, first: int) -> int:
        """The first of the ports from the one that was laid down that no other runner has."""
        if not first:
            return 0
        taken = {h.port for h in self._held.values() if h is not held and h.runner is not None}
        held.port = next(p for p in range(first, first + len(taken) + 1) if p not in taken)
        return held.port

    def _on_event(self, held: HeldStage, event: RunnerEvent) -> None:
        if isinstance(event, pipe.Progress):
            if time.monotonic() - held.last_report >= REPORT_INTERVAL or event.done == 0:
                self._spawn(self._set(held, event.phase, event.done, event.total, event.message))
        elif isinstance(event, pipe.Loaded):
            resolve(held.loaded, event)
        elif isinstance(event, pipe.Linked):
            if event.epoch == held.epoch:
                resolve(held.link, event.epoch)
        elif isinstance(event, pipe.Failed):
            error = RunnerFailed(event.message, remedy=event.remedy)
            reject(held.loaded, error)
            reject(held.link, error)
        elif isinstance(event, pipe.ChainFault):
            self._spawn(
                self._report(
                    FaultReport(
                        assignment=held.assign.assignment,
                        epoch=event.epoch,
                        code=event.code,
                        message=event.message,
                        device=event.device,
                    )
                )
            )
        else:
            held.sent_bytes = event.sent_bytes

    def _on_exit(self, held: HeldStage, cause: RunnerFailed) -> None:
        reject(held.loaded, cause)
        reject(held.link, cause)
        if held.status.phase in ("ready", "linked"):
            self._spawn(self._died(held, cause))

    async def _died(self, held: HeldStage, cause: RunnerFailed) -> None:
        await self._report(
            FaultReport(
                assignment=held.assign.assignment,
                epoch=held.epoch,
                code=cause.code,
                message=cause.message,
                device=self._setup().device_id,
                runner_died=True,
            )
        )
        await self._fail(held, cause)

    def _spawn(self, coroutine: Awaitable[None]) -> None:
        task = asyncio.ensure_future(coroutine)
        _BACKGROUND.add(task)
        task.add_done_callback(_BACKGROUND.discard)

    async def _set(
        self,
        held: HeldStage,
        phase: str,
        done: int = 0,
        total: int = 0,
        message: str = "",
        **more: object,
    ) -> None:
        now = time.monotonic()
        same = phase == held.status.phase and done < total
        if same and now - held.last_report < REPORT_INTERVAL:
            return
        held.last_report = now
        fields = {
            "assignment": held.assign.assignment,
            "phase": phase,
            "done": done,
            "total": total,
            "message": message,
            "from_cache": held.status.from_cache,
            **more,
        }
        held.status = StageStatus(**fields)  # type: ignore[arg-type]
        self._changed()
        await self._report(held.status)

    async def _fail(self, held: HeldStage, error: FleetError) -> None:
        held.status = failure(held.status, error)
        self._changed()
        await self._report(held.status)


_BACKGROUND: set[asyncio.Future[None]] = set()
"""Keeps fire-and-forget reports alive until they are sent."""


def _smaller(a: int, b: int) -> int:
    """The smaller of two limits of which 0 is none."""
    return min(a, b) if a and b else a or b

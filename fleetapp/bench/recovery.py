"""``fleetapp bench recovery``: PCs of a fleet are killed, frozen, cut off and taken back while
four answers stream; every answer must go on with the tokens of an undisturbed run.

The coordinator only coordinates; three other PCs hold a stage each and two more hold copies. All
of them are processes of this one machine, so the pauses are those of a busy one.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp

from fleetapp.bench import common
from fleetapp.bench.havoc import SILENT, Havoc
from fleetapp.bench.prompts import PROMPTS
from fleetapp.bench.streams import Read, read
from fleetapp.bench.throwaway import ThrowAwayFleet
from fleetapp.errors import FleetError, RunnerFailed
from fleetapp.models.library import Library
from fleetapp.types import ChainView

STAGES: Final = 3
SPARES: Final = 2
STREAMS: Final = 4
PHASES: Final = ("decode", "prefill", "replay", "load")
PLACES: Final = ("head", "middle", "last")
KILLS: Final = 60
PAUSE_TARGET: Final = 3.0
DETECT_TARGET: Final = 6.0
STALL: Final = 5.0
CASE_SECONDS: Final = 120.0
_TOKENS: Final = 64
_LONG: Final = 200
"""Words of the prompts whose reading is disturbed."""


@dataclass(frozen=True)
class Effort:
    """How much is done."""

    kills: int
    stalls: int


FULL: Final = Effort(kills=63, stalls=2)
QUICK: Final = Effort(kills=3, stalls=0)


@dataclass
class Case:
    """One disturbance and what became of the answers."""

    kind: str
    place: int
    phase: str
    pauses: list[float] = field(default_factory=list)
    """Per answer, from the moment it was noticed (s)."""
    detect: float = 0.0
    wrong: int = 0
    hangs: int = 0
    errors: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    """Per wrong answer: which one, and at which token it began to differ."""

    def __str__(self) -> str:
        pauses = " ".join(f"{p:.2f}" for p in self.pauses)
        bad = [*self.differing, *self.errors, *(["hangs"] * self.hangs)]
        return f"noticed after {self.detect:.2f} s, paused {pauses} s. {', '.join(bad)}".rstrip()


@dataclass(frozen=True)
class _State:
    at: float
    state: str
    epoch: int


class Range:
    """A fleet to disturb.

    Args:
        fleet: formed, and serving ``model``.
        model: its name.
    """

    def __init__(self, fleet: ThrowAwayFleet, model: str, session: aiohttp.ClientSession) -> None:
        self._fleet = fleet
        self._model = model
        self._session = session
        self._havoc = Havoc(fleet)
        self._states: list[_State] = []
        self._chain: ChainView | None = None
        self._changed = asyncio.Event()
        self._watcher = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Stop watching."""
        self._watcher.cancel()
        await asyncio.gather(self._watcher, return_exceptions=True)

    async def _watch(self) -> None:
        async for view in self._fleet.watch():
            chain = next((c for c in view.chains if c.model == self._model), None)
            if chain is not None:
                self._chain = chain
                self._states.append(_State(time.monotonic(), chain.state, chain.epoch))
                self._changed.set()

    async def ready(self, deadline: float = 90.0) -> ChainView:
        """Wait until the chain serves on as many PCs as it should, each stage with a copy.

        Raises:
            RunnerFailed: it does not become so.
        """
        end = time.monotonic() + deadline
        while time.monotonic() < end:
            chain = self._chain
            if chain is not None and _whole(chain):
                return chain
            self._changed.clear()
            with_deadline = min(1.0, end - time.monotonic())
            try:
                async with asyncio.timeout(max(with_deadline, 0.0)):
                    await self._changed.wait()
            except TimeoutError:
                continue
        raise RunnerFailed(f"The fleet did not become whole again: {_sentence(self._chain)}")

    def _now(self, before: ChainView) -> ChainView:
        """The chain as it is; a change of PCs that had begun may have ended since ``before``."""
        now = self._chain
        return now if now is not None and len(now.assignments) == STAGES else before

    def bodies(self, phase: str) -> list[dict[str, Any]]:
        """Four different requests: two greedy, one with a seed, one with penalties."""
        texts = list(PROMPTS.values())[:STREAMS]
        if phase == "prefill":
            texts = [f"{text}\n{_filler(i)}" for i, text in enumerate(texts)]
        kinds: tuple[dict[str, Any], ...] = (
            {},
            {},
            {"temperature": 0.8, "seed": 7},
            {"temperature": 0.7, "seed": 9, "frequency_penalty": 0.5},
        )
        common_fields = {"model": self._model, "max_tokens": _TOKENS, "ignore_eos": True}
        return [
            {**common_fields, **kind, "messages": [{"role": "user", "content": text}]}
            for text, kind in zip(texts, kinds, strict=True)
        ]

    def ask(self, phase: str) -> tuple[list[Read], list[asyncio.Task[None]]]:
        """Begin the answers."""
        answers, tasks = [], []
        for body in self.bodies(phase):
            answer = Read(time.monotonic())
            coroutine = read(self._session, self._fleet.api_url, self._fleet.api_key, body, answer)
            answers.append(answer)
            tasks.append(asyncio.create_task(coroutine))
        return answers, tasks

    async def undisturbed(self, phase: str) -> list[Read]:
        """The answers as they should be.

        Raises:
            RunnerFailed: even these failed.
        """
        answers, tasks = self.ask(phase)
        await asyncio.gather(*tasks)
        for answer in answers:
            if not answer.complete:
                raise RunnerFailed(f"An undisturbed answer failed: {answer.error} {answer.message}")
        return answers

    async def disturb(self, case: Case, expected: Sequence[Read]) -> None:
        """Let one case happen and judge the answers.

        Raises:
            FleetError: the fleet itself is not to be had any more.
        """
        chain = await self.ready()
        node = self._havoc.node(chain, case.place)
        answers, tasks = self.ask(case.phase)
        moment = time.monotonic()
        try:
            async with asyncio.timeout(CASE_SECONDS):
                await self._until_phase(case.phase, answers)
                chain = self._now(chain)
                node = self._havoc.node(chain, case.place)
                if case.phase in ("load", "replay"):
                    chain = await self._break_first(chain, case)
                    node = self._havoc.node(chain, case.place)
                moment = time.monotonic()
                await self._havoc.do(case.kind, chain, case.place)
                case.detect = await self._noticed(moment, chain.epoch)
                await asyncio.gather(*tasks)
        except TimeoutError:
            case.hangs += sum(not t.done() for t in tasks)
        finally:
            await self._havoc.undo(case.kind, node)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._judge(case, answers, expected, moment)

    async def stall(self, place: int, kind: str, expected: Sequence[Read]) -> tuple[bool, Case]:
        """Freeze something for five seconds; whether anybody was put out for it."""
        chain = await self.ready()
        case = Case(f"{kind} {STALL:g} s", place, "decode")
        answers, tasks = self.ask("decode")
        await self._until_phase("decode", answers)
        moment = time.monotonic()
        await self._havoc.do(kind, chain, place)
        await asyncio.sleep(STALL)
        await self._havoc.undo(kind, self._havoc.node(chain, place))
        await asyncio.wait(tasks, timeout=CASE_SECONDS)
        self._judge(case, answers, expected, moment)
        evicted = any(s.at > moment and s.epoch != chain.epoch for s in self._states)
        return evicted, case

    def _judge(
        self, case: Case, answers: Sequence[Read], expected: Sequence[Read], moment: float
    ) -> None:
        for number, (answer, right) in enumerate(zip(answers, expected, strict=True), 1):
            if answer.hung:
                case.hangs += 1
            elif answer.error:
                case.errors.append(answer.error)
            elif answer.ids != right.ids or answer.text != right.text:
                case.wrong += 1
                same = itertools.takewhile(
                    lambda pair: pair[0] == pair[1], zip(answer.ids, right.ids, strict=False)
                )
                case.differing.append(f"answer {number} from token {len(list(same))}")
            case.pauses.append(max(0.0, _lost(answer, right, moment) - case.detect))

    async def _until_phase(self, phase: str, answers: Sequence[Read]) -> None:
        if phase == "prefill":
            await asyncio.sleep(0.3)
            return
        for answer in answers:
            await answer.begun.wait()
        await asyncio.sleep(0.3)

    async def _break_first(self, chain: ChainView, case: Case) -> ChainView:
        """Kill another stage's runner and return when the chain has just been linked again, or,
        for "load", is about to be.
        """
        other = (case.place + 1) % STAGES
        await self._havoc.do("kill runner", chain, other)
        wanted = ("live",) if case.phase == "replay" else ("preparing", "linking", "live")
        end = time.monotonic() + 30.0
        while time.monotonic() < end:
            now = self._chain
            moved = now is not None and now.epoch > chain.epoch
            if now is not None and len(now.assignments) == STAGES:
                if case.phase == "replay" and moved and now.state in wanted:
                    return now
                if case.phase == "load" and now.state in wanted and (moved or now.state != "live"):
                    return now
            self._changed.clear()
            try:
                async with asyncio.timeout(0.5):
                    await self._changed.wait()
            except TimeoutError:
                continue
        raise RunnerFailed("The chain was not mended after the first disturbance.")

    async def _noticed(self, moment: float, epoch: int) -> float:
        """Seconds until the hub has noticed; 0 for what it may take its time with."""
        end = moment + 30.0
        while time.monotonic() < end:
            hit = next(
                (
                    s
                    for s in self._states
                    if s.at > moment and (s.state != "live" or s.epoch != epoch)
                ),
                None,
            )
            if hit is not None:
                return hit.at - moment
            self._changed.clear()
            try:
                async with asyncio.timeout(0.25):
                    await self._changed.wait()
            except TimeoutError:
                continue
        return 30.0


def _lost(answer: Read, right: Read, moment: float) -> float:
    """Seconds that an answer stood still because of what happened at ``moment``.

    For one that had not begun it is how much later its first token came than undisturbed.
    """
    after = [t for t in answer.times if t > moment]
    if not after:
        return 0.0
    if answer.times[0] > moment:
        late = answer.times[0] - answer.began - (right.times[0] - right.began)
        return max(0.0, late)
    # A token that was on its way when it happened is not the answer going on: the longest gap is.
    marks = [moment, *after]
    return max(b - moment for a, b in itertools.pairwise(marks) if b - a == _longest(marks))


def _longest(marks: Sequence[float]) -> float:
    return max(b - a for a, b in itertools.pairwise(marks))


def _whole(chain: ChainView) -> bool:
    stages = sorted(chain.assignments, key=lambda a: a.stage)
    copies = {a.stage for a in chain.standbys if a.phase in ("ready", "linked")}
    return (
        chain.state == "live"
        and len(stages) == STAGES
        and len({a.node for a in stages}) == STAGES
        and copies >= set(range(STAGES))
    )


def _sentence(chain: ChainView | None) -> str:
    if chain is None:
        return "it is not served."
    ready = sum(a.phase in ("ready", "linked") for a in chain.standbys)
    return f"{chain.state}, {chain.reason} {len(chain.assignments)} stages, {ready} copies."


def _filler(salt: int) -> str:
    words = ("river", "lamp", "seven", "quiet", "stone", "garden", "paper", "window")
    return " ".join(words[(i * 7 + salt + i // 5) % len(words)] for i in range(_LONG))


def cases(count: int, kinds: Sequence[str]) -> list[Case]:
    """So many, spread over kinds, places and phases."""
    found = []
    for number in range(count):
        turn, which = divmod(number, len(kinds))
        place = (which + turn) % STAGES
        found.append(Case(kinds[which], place, PHASES[(which + turn) % len(PHASES)]))
    return found


async def measure(
    library: Library, model: str, effort: Effort, progress: common.Progress
) -> common.Report:
    """Run all cases.

    Raises:
        FleetError: the fleet cannot be formed, or does not become whole again.
    """
    nodes = 1 + STAGES + SPARES
    extra = {"FLEETAPP_KV_MEMORY_MB": "128", "FLEETAPP_THREADS": "1"}
    done: list[Case] = []
    stalls: list[bool] = []
    async with (
        ThrowAwayFleet(
            nodes,
            library.root,
            progress,
            extra,
            each={1: {"FLEETAPP_CONTRIBUTE": "0"}},
            restarts=1000,
        ) as fleet,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session,
    ):
        await fleet.form()
        await fleet.serve(model, "exact", stages=STAGES, draft="off")
        field_ = Range(fleet, model, session)
        try:
            await field_.ready()
            expected = {p: await field_.undisturbed(p) for p in ("decode", "prefill")}
            for number, case in enumerate(cases(effort.kills, Havoc.possible()), 1):
                progress(
                    f"{number} of {effort.kills}: {case.kind}, {PLACES[case.place]}, {case.phase}"
                )
                right = expected["prefill" if case.phase == "prefill" else "decode"]
                await field_.disturb(case, right)
                progress(str(case))
                done.append(case)
            for number in range(effort.stalls):
                kind = ("freeze runner", "freeze agent")[number % 2]
                progress(f"{kind} for {STALL:g} s")
                evicted, case = await field_.stall(1 + number % 2, kind, expected["decode"])
                progress(str(case))
                stalls.append(evicted)
                done.append(case)
        finally:
            await field_.close()
    return report(done, stalls, effort)


def report(done: Sequence[Case], stalls: Sequence[bool], effort: Effort) -> common.Report:
    """Tables and checks of what happened."""
    kills = [c for c in done if " s" not in c.kind]
    rows: list[dict[str, Any]] = []
    for kind in dict.fromkeys(c.kind for c in done):
        mine = [c for c in done if c.kind == kind]
        pauses = sorted(p for c in mine for p in c.pauses)
        rows.append(
            {
                "what": kind,
                "times": len(mine),
                "pause_p50_s": round(_quantile(pauses, 0.5), 2),
                "pause_p95_s": round(_quantile(pauses, 0.95), 2),
                "noticed_s": round(max(c.detect for c in mine), 2),
                "wrong": sum(c.wrong for c in mine),
                "errors": sum(len(c.errors) for c in mine),
                "hangs": sum(c.hangs for c in mine),
            }
        )
    pauses = sorted(p for c in kills for p in c.pauses)
    silent = [c.detect for c in kills if c.kind in SILENT]
    checks = [
        common.at_least("kills", len(kills), min(KILLS, effort.kills)),
        common.at_most("wrong_tokens", sum(c.wrong + len(c.errors) for c in done), 0),
        common.at_most("hangs", sum(c.hangs for c in done), 0),
        common.at_most("p95_pause_s", _quantile(pauses, 0.95), PAUSE_TARGET),
    ]
    if silent:
        checks.append(common.at_most("detect_s", max(silent), DETECT_TARGET))
    if stalls:
        checks.append(common.at_most("evicted_by_a_stall", sum(stalls), 0))
    return common.Report("recovery", common.machine(2), tuple(rows), tuple(checks))


def _quantile(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def run(
    library: Library, model: str, *, effort: Effort, progress: common.Progress
) -> common.Report:
    """Measure; see ``measure``."""
    return asyncio.run(measure(library, model, effort, progress))


__all__ = ["FULL", "QUICK", "FleetError", "run"]

"""``bench users``: many people on one PC, ours against what they would use instead.

One core. Ours is a head runner with the whole model, asked through its pipe as an agent does;
beside it openvino-genai's continuous batching with the same token ids, and its LLMPipeline for
one user.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from fleetapp.bench import common, rounds
from fleetapp.bench.child import Conversation
from fleetapp.bench.rounds import Case, Ids, Measured, Prompts
from fleetapp.bench.runners import RunnerRing
from fleetapp.engine import genai_child
from fleetapp.engine.genai_child import CONTINUOUS_BATCHING, LLM_PIPELINE, Job, Line, Round
from fleetapp.models.library import Library
from fleetapp.types import Precision

OURS: Final = "one stage"
BATCHING_TARGET: Final = 1.1
ALONE_TARGET: Final = 1.0
_DEADLINE: Final = 300.0
_CACHE_BYTES: Final = 512 << 20


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int
    users: tuple[int, ...]
    tokens: int = 128
    warmups: int = 2


FULL: Final = Effort(rounds=7, users=(1, 2, 4, 8))
QUICK: Final = Effort(rounds=3, users=(1, 8), tokens=64, warmups=1)


def run(
    library: Library,
    model: str,
    *,
    precision: Precision = "fast",
    device: str = "CPU",
    effort: Effort = FULL,
    progress: common.Progress = lambda _: None,
) -> common.Report:
    """Measure; arguments and errors as ``parity.run``."""
    manifest, _ = library.get(model)
    architecture = manifest.architecture
    progress("loading")
    core = common.idlest_core()
    with ExitStack() as stack:
        stack.enter_context(common.aside([core]))
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleetapp-bench-")))
        ours = stack.enter_context(
            RunnerRing(
                root,
                rounds.layout(library, model, (0, architecture.layers)),
                cores=[core],
                precision=precision,
                device=device,
                kv_bytes=_CACHE_BYTES,
            )
        )
        ours.link()
        prompts = Prompts(ours.layout.folders[0] / "tokenizer", architecture.context_length)

        def genai(kind: Literal["llm", "batching"]) -> Conversation[Line]:
            job = Job(str(library.folder(model)), kind, precision, core, device)
            talk = Conversation(genai_child.__name__, job, Line, deadline=_DEADLINE)
            return stack.enter_context(talk)

        batching, llm = genai("batching"), genai("llm")
        cases: dict[Case, Callable[[int], Measured]] = {}
        for users in effort.users:
            ids = prompts.rounds(users)
            cases[Case(OURS, users)] = _ours(ours, ids, effort.tokens)
            cases[Case(CONTINUOUS_BATCHING, users)] = _theirs(batching, ids, effort.tokens)
            if users == 1:
                cases[Case(LLM_PIPELINE, users)] = _theirs(llm, ids, effort.tokens)
        found = rounds.alternate(
            cases, rounds=effort.rounds, warmups=effort.warmups, progress=progress
        )
    rows: list[dict[str, Any]] = []
    for case, measured in found.items():
        over = round(rounds.ratio(found, Case(OURS, case.users), case), 3)
        rows.append({**rounds.row(case, measured), "ours_over_it": over})
    eight = rounds.ratio(found, Case(OURS, 8), Case(CONTINUOUS_BATCHING, 8))
    one = rounds.ratio(found, Case(OURS, 1), Case(LLM_PIPELINE, 1))
    checks = (
        common.at_least("users8_vs_genai_cb", eight, BATCHING_TARGET),
        common.at_least("users1_vs_llmpipeline", one, ALONE_TARGET),
    )
    return common.Report("users", common.machine(cores_used=1), tuple(rows), checks)


def _ours(
    ring: RunnerRing, ids: Callable[[int], list[Ids]], tokens: int
) -> Callable[[int], Measured]:
    return lambda number: rounds.ask_all([ring], ids(number), tokens)


def _theirs(
    talk: Conversation[Line], ids: Callable[[int], list[Ids]], tokens: int
) -> Callable[[int], Measured]:
    return lambda number: Measured.of_line(talk.ask(Round(tuple(ids(number)), tokens)))

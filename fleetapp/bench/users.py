"""``bench users``: many people on one PC, ours against what they would use instead.

One core. Ours is a head runner with the whole model, asked through its pipe as an agent does;
beside it openvino-genai's continuous batching with the same token ids, and its LLMPipeline for
one user.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from fleetapp.bench import common, rounds
from fleetapp.bench.child import Conversation
from fleetapp.bench.rounds import Ids, Measured, Prompts, Way
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

        def genai(kind: Literal["llm", "batching"]) -> Way:
            job = Job(str(library.folder(model)), kind, precision, core, device)
            talk = stack.enter_context(
                Conversation(genai_child.__name__, job, Line, deadline=_DEADLINE)
            )
            return lambda ids: Measured.of_line(talk.ask(Round(tuple(ids), effort.tokens)))

        ways: dict[str, Way] = {
            OURS: lambda ids: rounds.ask_all([ours], ids, effort.tokens),
            CONTINUOUS_BATCHING: genai("batching"),
        }
        alone = {**ways, LLM_PIPELINE: genai("llm")}
        found = {
            users: rounds.alternate(
                alone if users == 1 else ways,
                fresh(prompts, users),
                rounds=effort.rounds,
                warmups=effort.warmups,
                progress=rounds.say_under(progress, f"{users} at once"),
            )
            for users in effort.users
        }
    rows: list[dict[str, Any]] = []
    for users, by_way in found.items():
        for way, measured in by_way.items():
            ratio = statistics.median(rounds.ratios(by_way, OURS, way))
            rows.append({**rounds.row(way, users, measured), "ours_over_it": round(ratio, 3)})
    eight = statistics.median(rounds.ratios(found[8], OURS, CONTINUOUS_BATCHING))
    one = statistics.median(rounds.ratios(found[1], OURS, LLM_PIPELINE))
    checks = (
        common.at_least("users8_vs_genai_cb", eight, BATCHING_TARGET),
        common.at_least("users1_vs_llmpipeline", one, ALONE_TARGET),
    )
    return common.Report("users", common.machine(cores_used=1), tuple(rows), checks)


def fresh(prompts: Prompts, users: int) -> Callable[[int], Sequence[Ids]]:
    """The prompts of a round, the same however often they are asked for."""
    made: dict[int, list[Ids]] = {}

    def of_round(number: int) -> Sequence[Ids]:
        if number not in made:
            made[number] = prompts.take(users)
        return made[number]

    return of_round

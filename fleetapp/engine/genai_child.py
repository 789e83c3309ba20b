"""The process in which openvino-genai answers the requests that a bench also puts to us.

Started as ``python -m fleetapp.engine.genai_child``: a job as the first line of JSON on stdin,
then one round of requests per line; one line of JSON on stdout for each. A process of its own
because it must be pinned before OpenVINO is imported.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
import psutil

from fleetapp.platform import current
from fleetapp.types import Precision

LLM_PIPELINE = "openvino-genai LLMPipeline"
CONTINUOUS_BATCHING = "openvino-genai ContinuousBatchingPipeline"


class Job(msgspec.Struct, frozen=True):
    """What to load."""

    model_dir: str
    """An imported model: openvino_model.xml and tokenizer/."""
    kind: Literal["llm", "batching"]
    precision: Precision
    core: int
    """The process runs on this one."""
    device: str = "CPU"


class Round(msgspec.Struct, frozen=True):
    """Requests that come at once; greedy, end-of-sequence ignored."""

    prompts: tuple[tuple[int, ...], ...]
    tokens: int


class Served(msgspec.Struct, frozen=True):
    """One request of a round."""

    tokens: tuple[int, ...]
    first_token: float
    """Seconds from the beginning of the round."""
    gaps: tuple[float, ...]
    """Seconds from token to token."""


class Line(msgspec.Struct, frozen=True):
    """One line of output: an empty one once loaded, then one per round."""

    seconds: float = 0.0
    """From the beginning of the round to its last token."""
    served: tuple[Served, ...] = ()


def load(job: Job) -> Callable[[Round], Line]:
    """From here on OpenVINO is in the process."""
    from fleetapp.engine.reference import BatchingReference, Reference  # noqa: PLC0415

    folder = Path(job.model_dir)
    options = {"precision": job.precision, "device": job.device, "threads": 1}
    if job.kind == "llm":
        alone = Reference(folder, **options)  # type: ignore[arg-type]

        def one_by_one(asked: Round) -> Line:
            began = time.perf_counter()
            found = [alone.generate(ids, asked.tokens) for ids in asked.prompts]
            took = time.perf_counter() - began
            return Line(
                seconds=took,
                served=tuple(_served(g.tokens, g.times, began) for g in found),
            )

        return one_by_one

    batching = BatchingReference(folder, **options)  # type: ignore[arg-type]

    def together(asked: Round) -> Line:
        began = time.perf_counter()
        found = batching.generate(asked.prompts, asked.tokens)
        took = time.perf_counter() - began
        return Line(
            seconds=took,
            served=tuple(_served(g.tokens, g.times, began) for g in found),
        )

    return together


def _served(tokens: list[int], times: list[float], began: float) -> Served:
    gaps = tuple(b - a for a, b in itertools.pairwise(times))
    return Served(tuple(tokens), times[0] - began, gaps)


def say(line: Line) -> None:
    """Write one line."""
    sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
    sys.stdout.buffer.flush()


def main() -> int:
    """Entry of the process."""
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)
    psutil.Process().cpu_affinity([job.core])
    current().lower_priority()  # as a runner does, or the comparison would be of priorities
    serve = load(job)
    say(Line())
    for line in sys.stdin.buffer:
        say(serve(msgspec.json.decode(line, type=Round)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

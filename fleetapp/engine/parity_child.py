"""The process in which whole model and stages are measured against each other.

Started as ``python -m fleetapp.engine.parity_child``: a job as one line of JSON on stdin, lines
of JSON on stdout. A process of its own because it must be pinned before OpenVINO is imported:
its threads would otherwise be spread over cores that the measurement does not count.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import psutil

from fleetapp.types import Precision

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleetapp.engine.inprocess import Generated

    Run = Callable[[Sequence[int], int], Generated]

LLM_PIPELINE = "openvino-genai LLMPipeline"
ONE_STAGE = "one stage"
THREE_STAGES = "three stages"
WAYS = (LLM_PIPELINE, ONE_STAGE, THREE_STAGES)


class Job(msgspec.Struct, frozen=True):
    """What to measure."""

    model_dir: str
    """An imported model: openvino_model.xml and tokenizer/."""
    one: tuple[str, ...]
    """Stage folders; so is ``three``."""
    three: tuple[str, ...]
    precision: Precision
    core: int
    """The process runs on this one."""
    tokens: int
    speed_prompt: str
    equal_prompts: tuple[str, ...]
    """Prompts whose tokens are compared."""
    warmups: int
    rounds: int
    loads_first: int = 0
    """Which way is loaded first; see ``bench.parity`` for why it matters."""
    device: str = "CPU"


class Speeds(msgspec.Struct, frozen=True):
    """Decode tokens per second of one way, one entry per round, prefill excluded."""

    case: str
    tokens_per_second: tuple[float, ...]


class Difference(msgspec.Struct, frozen=True):
    """Where a way first differed from LLMPipeline."""

    case: str
    prompt: str
    position: int


class Result(msgspec.Struct, frozen=True):
    """What was measured."""

    speeds: tuple[Speeds, ...]
    compared: int
    """Sequences compared."""
    differences: tuple[Difference, ...]


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of output."""

    progress: str = ""
    result: Result | None = None


def say(line: Line) -> None:
    """Write one line."""
    sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
    sys.stdout.buffer.flush()


def ways(job: Job) -> tuple[dict[str, Run], Callable[[str], list[int]]]:
    """Load everything; from here on OpenVINO is in the process."""
    # After pinning, hence not at the top.
    from fleetapp.engine.executor.paged import load  # noqa: PLC0415
    from fleetapp.engine.inprocess import InProcessPipeline  # noqa: PLC0415
    from fleetapp.engine.reference import Reference  # noqa: PLC0415

    def staged(folders: tuple[str, ...]) -> Run:
        executors = [
            load(
                Path(folder),
                precision=job.precision,
                device=job.device,
                threads=1,
                kv_bytes=_CACHE_BYTES // len(folders),
            )
            for folder in folders
        ]
        pipeline = InProcessPipeline(executors)
        return lambda ids, tokens: pipeline.generate(ids, tokens, ignore_eos=True)

    say(Line(progress=f"loading under {job.precision}"))
    encode: Callable[[str], list[int]] | None = None
    runs: dict[str, Run] = {}
    for i in range(len(WAYS)):
        way = WAYS[(i + job.loads_first) % len(WAYS)]
        if way == LLM_PIPELINE:
            reference = Reference(
                Path(job.model_dir), precision=job.precision, device=job.device, threads=1
            )
            encode = reference.encode
            runs[way] = reference.generate
        else:
            runs[way] = staged(job.one if way == ONE_STAGE else job.three)
    assert encode is not None
    return runs, encode


_CACHE_BYTES = 256 << 20


def measure(job: Job) -> Result:
    """Compare tokens, then speeds; the ways take turns, and who begins changes every round."""
    runs, encode = ways(job)
    differences: list[Difference] = []
    for number, prompt in enumerate(job.equal_prompts, 1):
        say(Line(progress=f"comparing tokens, prompt {number} of {len(job.equal_prompts)}"))
        ids = encode(prompt)
        expected = runs[LLM_PIPELINE](ids, job.tokens).tokens
        for case in (ONE_STAGE, THREE_STAGES):
            got = runs[case](ids, job.tokens).tokens
            if got != expected:
                pairs = zip(got, expected, strict=False)
                at = next((i for i, (a, b) in enumerate(pairs) if a != b), len(got))
                differences.append(Difference(case, prompt, at))
    ids = encode(job.speed_prompt)
    speeds: dict[str, list[float]] = {case: [] for case in runs}
    order = list(runs)
    for number in range(job.warmups + job.rounds if job.rounds else 0):
        warm = number >= job.warmups
        done = f"round {number - job.warmups + 1} of {job.rounds}" if warm else "warming up"
        say(Line(progress=f"decoding under {job.precision}, {done}"))
        for case in order:
            times = runs[case](ids, job.tokens).times
            if warm:
                speeds[case].append((len(times) - 1) / (times[-1] - times[0]))
        order.append(order.pop(0))
    return Result(
        speeds=tuple(Speeds(case, tuple(values)) for case, values in speeds.items() if values),
        compared=2 * len(job.equal_prompts),
        differences=tuple(differences),
    )


def merged(results: Sequence[Result]) -> Result:
    """What several processes measured, as one."""
    rounds = {
        case: [v for r in results for s in r.speeds if s.case == case for v in s.tokens_per_second]
        for case in WAYS
    }
    return Result(
        speeds=tuple(Speeds(case, tuple(values)) for case, values in rounds.items() if values),
        compared=sum(r.compared for r in results),
        differences=tuple(d for r in results for d in r.differences),
    )


def ratios(result: Result, case: str) -> list[float]:
    """Speed of a way over LLMPipeline's, round by round: slow drift of the machine cancels."""
    by_case = {s.case: s.tokens_per_second for s in result.speeds}
    return [a / b for a, b in zip(by_case[case], by_case[LLM_PIPELINE], strict=True)]


def ratio(result: Result, case: str) -> float:
    """Median of ``ratios``."""
    return statistics.median(ratios(result, case))


def main() -> int:
    """Entry of the process."""
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)
    psutil.Process().cpu_affinity([job.core])
    say(Line(result=measure(job)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Real processes die in the middle of real answers; others take their place, and nobody sees it."""

from __future__ import annotations

import itertools
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fleetapp.engine import pipe
from fleetapp.models.library import Library
from fleetapp.types import Grammar, LayerRange, SamplingParams
from tests.support.runner_client import Answer, RunnerRing
from tests.support.sample_model import MODEL, NobodySigns

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]

CUTS = (0, 10, 20, 30)
TOKENS = 24
LONG = "Explain this: " + "a very long and winding road, " * 30
ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("What is the capital of France?", {"ignore_eos": True}),
    (
        "Write one sentence about rain.",
        {"temperature": 0.9, "top_p": 0.95, "seed": 7, "logprobs": 2, "ignore_eos": True},
    ),
    (
        "Say hello to 日本 👩‍👩‍👧.",
        {
            "temperature": 0.7,
            "top_k": 20,
            "seed": 3,
            "repetition_penalty": 1.15,
            "presence_penalty": 0.3,
            "stop": ("\n\n\n",),
            "ignore_eos": True,
        },
    ),
    ("Name a city.", {"grammar": Grammar("regex", r"(Paris|Lyon|Berlin|, | and ){30,40}")}),
)

Folders = Callable[..., list[Path]]


@pytest.fixture(scope="module")
def folders(library: Path) -> Folders:
    """Stage folders between these layers."""
    models = Library(library, NobodySigns())

    def of(*cuts: int) -> list[Path]:
        return [models.stage(MODEL, LayerRange(a, b)).path for a, b in itertools.pairwise(cuts)]

    return of


@pytest.fixture(scope="module")
def processes(
    folders: Folders, library: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunnerRing]:
    """Three stages; the head guesses from the text."""
    models = Library(library, NobodySigns())
    with RunnerRing(
        tmp_path_factory.mktemp("fleet"),
        folders(*CUTS),
        list(CUTS[:-1]),
        models.stage(MODEL, LayerRange(0, 10)).manifest.model_digest,
        kv_bytes=256 << 20,
        cache_dir=str(tmp_path_factory.mktemp("blobs")),
        lookup=True,
    ) as made:
        yield made


@pytest.fixture
def ring(processes: RunnerRing) -> RunnerRing:
    """The same processes in a ring of their own: nothing is cached."""
    processes.link()
    for runner in processes.runners:
        runner.messages[:] = [m for m in runner.messages if not isinstance(m, pipe.ChainFault)]
    return processes


def begin(ring: RunnerRing, first: str = "") -> list[Answer]:
    questions = [first or ASKED[0][0], *(q for q, _ in ASKED[1:])]
    ids = [
        ring.chat(question, max_tokens=TOKENS, **sampling)
        for question, (_, sampling) in zip(questions, ASKED, strict=True)
    ]
    return [ring.head.answers[i] for i in ids]


Outcome = tuple[str, list[int], tuple[str, int]]


def ended(ring: RunnerRing, answers: list[Answer]) -> list[Outcome]:
    """What was said in all, once everything has been."""
    found: list[Outcome] = []
    for answer in answers:
        assert answer.ended.wait(120)
        end = answer.finished
        assert end is not None
        found.append((answer.text, answer.ids, (end.reason, end.usage.completion_tokens)))
        if answer is answers[1]:
            assert [r.token for d in answer.deltas for r in d.logprobs] == answer.ids
    ring.assert_clean()
    return found


def some(ring: RunnerRing, answers: list[Answer], tokens: int) -> None:
    """Wait until each has more tokens, or has ended."""
    goal = [len(a.ids) + tokens for a in answers]
    ring.head.wait(
        lambda: (
            all(a.finished or len(a.ids) >= n for a, n in zip(answers, goal, strict=True)) or None
        )
    )


@pytest.fixture(scope="module")
def short(processes: RunnerRing) -> list[Outcome]:
    """What is said if nothing happens."""
    processes.link()
    return ended(processes, begin(processes))


@pytest.fixture(scope="module")
def long(processes: RunnerRing) -> list[Outcome]:
    """The same with one long prompt."""
    processes.link()
    return ended(processes, begin(processes, LONG))


def test_answers_go_on_after_kill_9_in_the_middle(short: list[Outcome], ring: RunnerRing) -> None:
    answers = begin(ring)
    for victim in (1, 2):
        some(ring, answers, 4)
        ring.runners[victim].process.kill()
        fault = ring.head.expect(pipe.ChainFault, 5)
        assert fault.device == ring.members[victim].identity.device_id
        ring.restart(victim)
        ring.link()
    assert ended(ring, answers) == short


@pytest.mark.slow
def test_another_number_of_pcs_may_go_on(
    folders: Folders, short: list[Outcome], ring: RunnerRing
) -> None:
    answers = begin(ring)
    for cuts in ((10, 30), (10, 20, 30)):
        some(ring, answers, 4)
        ring.replace_others(folders(*cuts), list(cuts[:-1]))
        ring.link()
    assert ended(ring, answers) == short


@pytest.mark.slow
@pytest.mark.parametrize("victim", [1, 2])
def test_a_prompt_that_is_being_computed_is_computed_again(
    long: list[Outcome], ring: RunnerRing, victim: int
) -> None:
    answers = begin(ring, LONG)
    first = answers[0]
    ring.head.wait(lambda: first.started)
    ring.runners[victim].process.kill()
    ring.head.expect(pipe.ChainFault, 5)
    assert first.deltas == []
    ring.restart(victim)
    ring.link()
    assert ended(ring, answers) == long


@pytest.mark.slow
def test_another_head_goes_on_where_one_was_killed(short: list[Outcome], ring: RunnerRing) -> None:
    answers = begin(ring)
    some(ring, answers, 8)
    ring.head.process.kill()
    assert ring.runners[1].expect(pipe.ChainFault, 5).stage == 0
    ring.restart(0)
    ring.link()
    for number, ((question, sampling), answer) in enumerate(zip(ASKED, answers, strict=True)):
        params = SamplingParams(max_tokens=TOKENS, **sampling)
        rest = pipe.Generate(
            f"again {number}", params, (pipe.ChatMessage("user", question),),
            said=tuple(answer.ids),
        )  # fmt: skip
        more = ring.head.ask(rest)
        assert more.ended.wait(120)
        answer.deltas += more.deltas
        answer.finished = more.finished
        answer.ended.set()
    assert ended(ring, answers) == short


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
@pytest.mark.parametrize("state", ["idle", "prefill", "decode"])
def test_a_frozen_pc_is_found_within_six_seconds(
    short: list[Outcome], long: list[Outcome], ring: RunnerRing, state: str
) -> None:
    answers: list[Answer] = []
    if state != "idle":
        answers = begin(ring, LONG if state == "prefill" else "")
        first = answers[0]
        if state == "prefill":
            ring.head.wait(lambda: first.started)
        else:
            some(ring, answers, 5)
    ring.runners[1].process.send_signal(signal.SIGSTOP)
    stopped = time.monotonic()
    fault = ring.head.expect(pipe.ChainFault, 10)
    assert time.monotonic() - stopped <= 6.0
    assert fault.device == ring.members[1].identity.device_id
    ring.runners[1].process.send_signal(signal.SIGCONT)
    ring.runners[1].expect(pipe.ChainFault, 10)
    ring.link()
    if answers:
        assert ended(ring, answers) == (long if state == "prefill" else short)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
@pytest.mark.parametrize("frozen", [0, 1, 2])
def test_a_pause_of_five_seconds_evicts_nobody(
    short: list[Outcome], ring: RunnerRing, frozen: int
) -> None:
    answers = begin(ring)
    some(ring, answers, 5)
    ring.runners[frozen].process.send_signal(signal.SIGSTOP)
    time.sleep(5.0)  # the pause is the test
    ring.runners[frozen].process.send_signal(signal.SIGCONT)
    assert ended(ring, answers) == short
    assert not [m for r in ring.runners for m in r.messages if isinstance(m, pipe.ChainFault)]

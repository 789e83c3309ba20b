"""Real runner processes, the real sample model, a TLS ring on 127.0.0.1."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fleetapp.engine import pipe
from fleetapp.models.library import Library
from fleetapp.types import LayerRange, Precision
from tests.support.runner_client import RunnerRing
from tests.support.sample_model import MODEL, NobodySigns

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]

CUTS = {1: (0, 30), 2: (0, 15, 30), 3: (0, 10, 20, 30)}
QUESTION = "What is the capital of France?"
PROMPTS = (
    QUESTION,
    "Write one sentence about rain.",
    "Count from one to ten.",
    "List three fruits.",
    "日本の首都はどこですか。",
    "def fibonacci(n):",
    "Say hello 👩‍👩‍👧.",
    "What is " + "very " * 200 + "important?",
)

Make = Callable[..., RunnerRing]


@pytest.fixture(scope="module")
def make(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Starts a ring of so many stages; the caller closes it."""
    models = Library(library, NobodySigns())
    blobs = tmp_path_factory.mktemp("blobs")

    def build(stages: int, precision: Precision = "exact", **load: object) -> RunnerRing:
        cuts = CUTS[stages]
        folders = [models.stage(MODEL, LayerRange(a, b)) for a, b in itertools.pairwise(cuts)]
        return RunnerRing(
            tmp_path_factory.mktemp("fleet"),
            [f.path for f in folders],
            list(cuts[:-1]),
            folders[0].manifest.model_digest,
            precision=precision,
            cache_dir=str(blobs),
            **{"kv_bytes": 256 << 20, **load},
        )

    return build


@dataclass
class Results:
    alone: list[int]
    text: str
    sampled: list[int]
    together: list[list[int]]


@pytest.fixture(scope="module")
def results(make: Make) -> dict[int, Results]:
    """The same requests to one, two and three stages."""
    found = {}
    for stages in CUTS:
        with make(stages) as ring:
            ring.link()
            alone = ring.head.answer(ring.chat(QUESTION, max_tokens=128, ignore_eos=True))
            asked = ring.chat(QUESTION, max_tokens=64, temperature=0.9, top_p=0.95, seed=7)
            sampled = ring.head.answer(asked)
            ids = [ring.chat(p, max_tokens=40, ignore_eos=True) for p in PROMPTS]
            together = [ring.head.answer(i) for i in ids]
            ring.assert_clean()
        found[stages] = Results(alone.ids, alone.text, sampled.ids, [a.ids for a in together])
    return found


def test_it_knows_the_capital(results: dict[int, Results]) -> None:
    assert all("Paris" in r.text for r in results.values())


@pytest.mark.parametrize("stages", [2, 3])
def test_exact_tokens_do_not_depend_on_the_number_of_stages(
    results: dict[int, Results], stages: int
) -> None:
    assert len(results[1].alone) == 128
    assert results[stages].alone == results[1].alone


@pytest.mark.parametrize("stages", [2, 3])
def test_neither_do_sampled_ones_nor_those_of_eight_at_once(
    results: dict[int, Results], stages: int
) -> None:
    assert results[stages].sampled == results[1].sampled
    assert results[stages].together == results[1].together


def test_being_batched_changes_nothing(results: dict[int, Results]) -> None:
    assert results[3].together[0] == results[3].alone[:40]


@pytest.fixture(scope="module")
def ring(make: Make) -> Iterator[RunnerRing]:
    """Three stages under ``fast``, for tests about lives and deaths."""
    with make(3, "fast") as made:
        made.link()
        yield made


def test_the_answer_ends_by_itself_and_has_no_special_tokens(ring: RunnerRing) -> None:
    answer = ring.head.answer(ring.chat(QUESTION, max_tokens=200))
    assert answer.finished is not None
    assert answer.finished.reason == "stop"
    assert "Paris" in answer.text
    assert "<|" not in answer.text
    assert answer.finished.usage.completion_tokens == len(answer.ids)


def test_bad_prompts_are_refused_and_hurt_nobody(ring: RunnerRing) -> None:
    running = ring.chat(QUESTION, max_tokens=60, ignore_eos=True)
    long = "word " * 9000
    cases = {
        "": "bad_request",
        "   ": "bad_request",
        long: "context_length_exceeded",
    }
    for prompt, code in cases.items():
        for ask in (ring.begin, ring.chat):
            finished = ring.head.answer(ask(prompt, max_tokens=4)).finished
            assert finished is not None
            assert (finished.reason, finished.code) == ("error", code)
            assert finished.message
            assert finished.remedy
    finished = ring.head.answer(running).finished
    assert finished is not None
    assert finished.reason == "length"


def test_kill_9_of_a_middle_runner_is_noticed_at_once(ring: RunnerRing) -> None:
    request_id = ring.chat(QUESTION, max_tokens=2000, ignore_eos=True)
    answer = ring.head.answers[request_id]
    ring.head.wait(lambda: answer.deltas or None)
    ring.runners[1].process.kill()
    assert ring.head.expect(pipe.ChainFault, 5).device == ring.members[1].identity.device_id
    ring.head.send(pipe.Unlink("Nobody takes its place."))
    finished = ring.head.answer(request_id, 5).finished
    assert finished is not None
    assert (finished.code, "its place" in finished.message) == ("chain_broken", True)
    ring.restart(1)
    ring.link()
    again = ring.head.answer(ring.chat(QUESTION, max_tokens=30))
    assert "Paris" in again.text
    ring.assert_clean()


def test_cancels_at_random_leave_the_others_alone_and_nothing_behind(ring: RunnerRing) -> None:
    ring.head.answer(ring.chat("warm up", max_tokens=3))
    before = ring.resources()
    dice = random.Random(3)
    ids = [ring.chat(PROMPTS[i % 8], max_tokens=30, ignore_eos=True) for i in range(24)]
    cancelled = set(dice.sample(ids, 12))
    for request_id in cancelled:
        answer = ring.head.answers[request_id]
        wanted = dice.randrange(5)
        ring.head.wait(lambda a=answer, n=wanted: a.finished or len(a.ids) >= n or None)  # type: ignore[misc]
        ring.head.send(pipe.Cancel(request_id))
    for request_id in ids:
        finished = ring.head.answer(request_id).finished
        assert finished is not None
        assert finished.reason in (
            ("cancelled", "length") if request_id in cancelled else ("length",)
        )
    ring.assert_clean()
    assert ring.resources() == before


@pytest.mark.parametrize("rounds", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_two_at_a_time_never_block_each_other(ring: RunnerRing, rounds: int) -> None:
    dice = random.Random(rounds)
    before = ring.resources()
    for _ in range(rounds):
        pair = [ring.chat(dice.choice(PROMPTS[:7]), max_tokens=dice.randint(1, 8)) for _ in "ab"]
        if dice.random() < 0.5:
            time.sleep(dice.random() * 0.05)  # the delay is the test, nothing is hoped for
            ring.head.send(pipe.Cancel(pair[0]))
        for request_id in pair:
            assert ring.head.answer(request_id, 30).finished is not None
    ring.assert_clean()
    assert ring.resources() == before

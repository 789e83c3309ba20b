"""Sampling's whole offer over real runner processes and the real model."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from fleetapp.models.library import Library
from fleetapp.types import Grammar, LayerRange
from tests.support.runner_client import Answer, RunnerRing
from tests.support.sample_model import MODEL, NobodySigns

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]

CUTS = {1: (0, 30), 3: (0, 10, 20, 30)}
QUESTION = "What is the capital of France?"
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 20},
        "population": {"type": "integer", "minimum": 0, "maximum": 99_999_999},
        "tags": {"type": "array", "items": {"enum": ["old", "large", "日本"]}, "maxItems": 2},
    },
    "required": ["city", "population", "tags"],
    "additionalProperties": False,
}
ASKED = {
    "penalties": {
        "temperature": 0.8,
        "seed": 3,
        "repetition_penalty": 1.15,
        "presence_penalty": 0.3,
        "frequency_penalty": 0.2,
        "min_p": 0.02,
        "ignore_eos": True,
    },
    "logprobs": {"logprobs": 5, "temperature": 0.7, "seed": 9},
    "schema": {
        "temperature": 1.2,
        "seed": 4,
        "grammar": Grammar("json_schema", json.dumps(SCHEMA)),
    },
    "regex": {"grammar": Grammar("regex", r"(Paris|Lyon)( is the capital)?\.")},
    "plain": {"ignore_eos": True},
}


@dataclass
class Results:
    answers: dict[str, Answer]
    refused: Answer


@pytest.fixture(scope="module")
def results(library: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Results]:
    """The same requests, all at once, to one and to three stages."""
    models = Library(library, NobodySigns())
    blobs = tmp_path_factory.mktemp("blobs")
    found = {}
    for stages, cuts in CUTS.items():
        folders = [models.stage(MODEL, LayerRange(a, b)) for a, b in itertools.pairwise(cuts)]
        with RunnerRing(
            tmp_path_factory.mktemp("fleet"),
            [f.path for f in folders],
            list(cuts[:-1]),
            folders[0].manifest.model_digest,
            precision="exact",
            cache_dir=str(blobs),
            kv_bytes=128 << 20,
        ) as ring:
            ring.link()
            ids = {
                name: ring.chat(QUESTION, max_tokens=100, **sampling)
                for name, sampling in ASKED.items()
            }
            bad = ring.chat(QUESTION, grammar=Grammar("json_schema", '{"type": "strin"}'))
            answers = {name: ring.head.answer(i) for name, i in ids.items()}
            found[stages] = Results(answers, ring.head.answer(bad))
            ring.assert_clean()
    return found


@pytest.mark.parametrize("name", ASKED)
def test_nothing_depends_on_the_number_of_stages(results: dict[int, Results], name: str) -> None:
    one, three = results[1].answers[name], results[3].answers[name]
    assert one.ids == three.ids
    assert one.text == three.text
    assert one.finished is not None
    assert one.finished.reason in ("stop", "length")


def test_a_schema_is_followed(results: dict[int, Results]) -> None:
    answer = results[3].answers["schema"]
    assert answer.finished is not None
    assert answer.finished.reason == "stop"
    value = json.loads(answer.text)
    assert value.keys() == SCHEMA["properties"].keys()
    assert set(value["tags"]) <= {"old", "large", "日本"}


def test_an_expression_is_matched(results: dict[int, Results]) -> None:
    assert results[3].answers["regex"].text.startswith("Paris")


def test_log_probabilities_belong_to_the_text(results: dict[int, Results]) -> None:
    answer = results[3].answers["logprobs"]
    reports = [r for d in answer.deltas for r in d.logprobs]
    assert b"".join(r.text for r in reports).decode() == answer.text
    assert [r.token for r in reports] == answer.ids[: len(reports)]
    for report in reports:
        assert len(report.top) == 5
        assert report.logprob <= report.top[0].logprob <= 0
    one = [r for d in results[1].answers["logprobs"].deltas for r in d.logprobs]
    assert [r.token for r in one] == [r.token for r in reports]
    assert [r.logprob for r in one] == pytest.approx([r.logprob for r in reports], abs=1e-3)


def test_a_schema_that_cannot_be_followed_is_refused(results: dict[int, Results]) -> None:
    for result in results.values():
        finished = result.refused.finished
        assert finished is not None
        assert (finished.reason, finished.code) == ("error", "bad_request")
        assert "strin" in finished.message

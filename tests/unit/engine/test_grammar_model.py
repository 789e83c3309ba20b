"""Grammars, log probabilities and penalties on the real model."""

from __future__ import annotations

import functools
import json
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetapp.bench.prompts import PROMPTS
from fleetapp.engine.grammar import GrammarHost
from fleetapp.engine.inprocess import InProcessPipeline, Prompt
from fleetapp.engine.text import TokenizerHost
from fleetapp.engine.vocabulary import read_vocabulary
from fleetapp.types import Grammar, SamplingParams
from tests.support.sample_model import MODEL
from tests.support.stages import LAYERS, executors, library, shard, shards

pytestmark = pytest.mark.model

LIMIT = 160
PROMPT = "Write a short JSON object that describes a person.\n"


@functools.cache
def host() -> TokenizerHost:
    return TokenizerHost(shard(0, LAYERS) / "tokenizer", None, context=1024)


@functools.cache
def split(stages: int) -> InProcessPipeline:
    manifest, _ = library().get(MODEL)
    last = shards(stages)[-1] / "tokenizer"
    eos = frozenset(manifest.architecture.eos_ids)
    size = manifest.architecture.vocab_size
    grammars = GrammarHost(lambda: read_vocabulary(last), eos, size)
    return InProcessPipeline(executors(stages), eos_ids=sorted(eos), grammars=grammars)


def answers(stages: int, prompts: list[Prompt], limit: int = LIMIT) -> list[str]:
    results = split(stages).generate_batch(prompts, limit)
    eos = split(stages)._eos
    for result in results:
        assert result.tokens[-1] in eos, "cut off: allow more tokens"
    return [host().decode(result.tokens) for result in results]


def small_schema(rng: random.Random, depth: int = 2) -> dict:
    """Of bounded length, so that every answer ends by itself."""
    kinds = ["enum", "boolean", "integer", "string", "null"] + ["object", "array"] * bool(depth)
    match rng.choice(kinds):
        case "enum":
            return {"enum": rng.sample(["red", "grün", "日本", 7, True], 2)}
        case "integer":
            return {"type": "integer", "minimum": 0, "maximum": rng.choice([5, 300])}
        case "string":
            return {"type": "string", "maxLength": rng.randrange(3, 12)}
        case "array":
            items = small_schema(rng, depth - 1)
            return {"type": "array", "items": items, "maxItems": 2, "minItems": 1}
        case "object":
            names = rng.sample(["name", "age", "città", "x y"], rng.randrange(1, 4))
            properties = {n: small_schema(rng, depth - 1) for n in names}
            return {
                "type": "object",
                "properties": properties,
                "required": names,
                "additionalProperties": False,
            }
        case kind:
            return {"type": kind}


def follows(value: object, schema: dict) -> bool:
    if "enum" in schema:
        return value in schema["enum"]
    match schema["type"], value:
        case "object", dict():
            inner = schema["properties"]
            return value.keys() == inner.keys() and all(follows(value[k], inner[k]) for k in inner)
        case "array", list():
            return 1 <= len(value) <= 2 and all(follows(v, schema["items"]) for v in value)
        case "string", str():
            return len(value) <= schema["maxLength"]
        case "boolean", bool():
            return True
        case "integer", int():
            return 0 <= value <= schema["maximum"]
        case "null", None:
            return True
    return False


@pytest.mark.parametrize("round_", range(3))
def test_answers_of_random_schemas_always_parse(round_: int) -> None:
    """Eight random schemas with random seeds at once, hot and cold."""
    rng = random.Random(round_)
    schemas = [small_schema(rng) for _ in range(8)]
    ids = host().encode_prompt(PROMPT)
    prompts = [
        Prompt(
            ids,
            SamplingParams(
                temperature=rng.choice([0.0, 0.8, 2.0]),
                seed=rng.randrange(2**40),
                grammar=Grammar("json_schema", json.dumps(schema)),
            ),
        )
        for schema in schemas
    ]
    texts = answers(1, prompts, 400)
    for text, schema in zip(texts, schemas, strict=True):
        assert follows(json.loads(text), schema), (text, schema)


def test_a_grammar_gives_the_same_answer_however_the_model_is_split() -> None:
    pattern = r"(Paris|Rome|Berlin), \d{2} km[.!]"
    schema = json.dumps(
        {
            "type": "object",
            "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
            "required": ["name", "age"],
            "additionalProperties": False,
        }
    )
    ids = host().encode_prompt(PROMPT)
    prompts = [
        Prompt(ids, SamplingParams(0.9, seed=1, grammar=Grammar("regex", pattern))),
        Prompt(ids, SamplingParams(0.9, seed=2, grammar=Grammar("json_schema", schema))),
        Prompt(ids, SamplingParams(grammar=Grammar("regex", pattern))),
    ]
    whole = answers(1, prompts)
    assert answers(3, prompts) == whole
    assert [answers(1, [p])[0] for p in prompts] == whole
    assert re.fullmatch(pattern, whole[0])
    assert re.fullmatch(pattern, whole[2])
    assert json.loads(whole[1]).keys() == {"name", "age"}


def test_penalties_give_the_same_answer_however_the_model_is_split() -> None:
    settings_ = SamplingParams(
        temperature=0.8,
        seed=5,
        min_p=0.02,
        repetition_penalty=1.2,
        presence_penalty=0.4,
        frequency_penalty=0.3,
        logit_bias=((28, -100.0),),
    )
    prompts = [Prompt(host().encode_prompt(PROMPTS[kind]), settings_) for kind in list(PROMPTS)[:4]]
    one = [r.tokens for r in split(1).generate_batch(prompts, 32, ignore_eos=True)]
    three = [r.tokens for r in split(3).generate_batch(prompts, 32, ignore_eos=True)]
    alone = [
        split(3).generate(p.token_ids, 32, settings_, ignore_eos=True).tokens for p in prompts[:2]
    ]
    assert three == one
    assert alone == one[:2]
    assert not any(28 in tokens for tokens in one)
    plain = split(1).generate(prompts[0].token_ids, 48, SamplingParams(0.8, seed=5)).tokens
    assert one[0] != plain


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_the_vocabulary_is_that_of_the_tokenizer(text: str) -> None:
    if not text.strip():
        return
    ids = host().encode_prompt(text)
    vocabulary = host().vocabulary()
    # it has no token for some bytes and leaves them out
    whole = b"".join(vocabulary.text(i) for i in ids).decode("utf-8", "ignore")
    assert whole == host().decode(ids)


def test_special_tokens_have_a_name_and_no_text() -> None:
    vocabulary = host().vocabulary()
    manifest, _ = library().get(MODEL)
    for token in manifest.architecture.eos_ids:
        assert vocabulary.text(token) == b""
        assert vocabulary.name(token).startswith(b"<|")
    assert len(vocabulary.tokens) == manifest.architecture.vocab_size

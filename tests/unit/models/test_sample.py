"""The real sample model, as the product gets, imports and splits it."""

import os
from itertools import pairwise

import openvino_genai
import pytest

from fleetapp.models.library import Library
from fleetapp.models.trial import run
from fleetapp.types import LayerRange
from tests.support.sample_model import MODEL

pytestmark = pytest.mark.model
XML = "openvino_model.xml"
STEPS = 15
CHAT = [{"role": "user", "content": "What is the capital of France?"}]


def test_what_is_known_of_it(sample: Library) -> None:
    manifest, _ = sample.get(MODEL)
    shape = manifest.architecture
    assert (shape.family, shape.layers, shape.hidden_size) == ("llama", 30, 576)
    assert (shape.vocab_size, shape.context_length) == (49152, 8192)
    assert shape.eos_ids == (2,)
    assert manifest.licence == "Apache-2.0"
    assert manifest.revision.endswith("28110db53")
    assert len(set(manifest.layer_bytes[:-1])) == 1
    assert manifest.embedding_bytes > 10 * manifest.layer_bytes[0]


@pytest.fixture(scope="module")
def prompt(sample: Library) -> list[int]:
    folder = sample.stage(MODEL, LayerRange(0, 10)).path / "tokenizer"
    tokenizer = openvino_genai.Tokenizer(os.fspath(folder))
    text = tokenizer.apply_chat_template(CHAT, add_generation_prompt=True)
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False).input_ids.data[0].tolist()
    return ids


@pytest.fixture(scope="module")
def whole(sample: Library, prompt: list[int]) -> list[int]:
    """What the unsplit model writes."""
    tokens: list[int] = run([sample.folder(MODEL) / XML], prompt, STEPS).argmax(-1).tolist()
    return tokens


@pytest.mark.parametrize("bounds", [[0, 30], [0, 10, 20, 30], [0, 1, 7, 13, 29, 30]], ids=str)
def test_any_number_of_stages_writes_the_same(
    sample: Library, prompt: list[int], whole: list[int], bounds: list[int]
) -> None:
    folders = [sample.stage(MODEL, LayerRange(a, b)).path for a, b in pairwise(bounds)]
    parts = run([f / "stage.xml" for f in folders], prompt, STEPS).argmax(-1).tolist()
    assert parts == whole
    tokenizer = openvino_genai.Tokenizer(os.fspath(folders[0] / "tokenizer"))
    assert "Paris" in tokenizer.decode(parts)

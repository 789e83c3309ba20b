"""What the configuration files of an IR folder say, whichever of them there are."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.errors import CorruptModel
from fleetapp.models import ir_check
from fleetapp.models.facts import Description, GraphFacts, architecture, safe_id

BOTH = {"eos_token_id": [2, 7]}
NAMED = {"eos_token": "<e>", "added_tokens_decoder": {"4": {"content": "<e>"}}}
FACTS = GraphFacts(1, 8, 10, (1,), (8,), (1,), 1, 1, (), (("u4", 5), ("f16", 2)))


def write(folder: Path, **files: object) -> Path:
    for name, value in files.items():
        path = folder / name.replace("__", ".")
        path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return folder


@pytest.mark.parametrize(
    ("files", "ids"),
    [
        ({}, ()),
        ({"config__json": {"eos_token_id": 0}}, (0,)),
        ({"config__json": {"eos_token_id": [3, 1]}}, (1, 3)),
        ({"config__json": {"eos_token_id": 2}, "generation_config__json": BOTH}, (2, 7)),
        ({"generation_config__json": {"eos_token_id": 5}}, (5,)),
        ({"config__json": {"text_config": {"eos_token_id": [106]}}}, (106,)),
        ({"config__json": {"eos_token_id": None}}, ()),
        ({"config__json": {"eos_token_id": True}}, ()),
        ({"config__json": {"eos_token_id": "2"}}, ()),
        ({"tokenizer_config__json": NAMED}, (4,)),
        ({"tokenizer_config__json": {"eos_token": "<e>"}}, ()),
    ],
)
def test_end_tokens_of_all_files_are_united(
    tmp_path: Path, files: dict[str, object], ids: tuple[int, ...]
) -> None:
    """T04"""
    assert ir_check.describe(write(tmp_path, **files)).eos_ids == ids


@pytest.mark.parametrize(
    ("files", "template"),
    [
        ({"chat_template__jinja": "A", "tokenizer_config__json": {"chat_template": "B"}}, "A"),
        ({"chat_template__json": {"chat_template": "A"}}, "A"),
        ({"tokenizer_config__json": {"chat_template": "B"}}, "B"),
        (
            {
                "tokenizer_config__json": {
                    "chat_template": [
                        {"name": "tool_use", "template": "T"},
                        {"name": "default", "template": "D"},
                    ]
                }
            },
            "D",
        ),
        ({}, None),
    ],
)
def test_the_chat_template_is_found_wherever_it_is(
    tmp_path: Path, files: dict[str, object], template: str | None
) -> None:
    assert ir_check.describe(write(tmp_path, **files)).chat_template == template


def test_windows_of_layers_are_kept(tmp_path: Path) -> None:
    config = {"sliding_window": 512, "layer_types": ["sliding_attention", "full_attention"]}
    assert ir_check.describe(write(tmp_path, config__json=config)).windows == (512, None)
    assert ir_check.describe(write(tmp_path, config__json={"sliding_window": None})).windows == ()


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "\x00"])
def test_a_configuration_that_is_no_json_is_corrupt(tmp_path: Path, text: str) -> None:
    with pytest.raises(CorruptModel, match=r"config\.json is not valid JSON"):
        ir_check.describe(write(tmp_path, config__json=text))


def test_a_configuration_of_another_kind_says_nothing(tmp_path: Path) -> None:
    assert ir_check.describe(write(tmp_path, config__json="[1, 2]")).family == "unknown"


def test_the_tokenizer_graph_adds_what_it_knows(tmp_path: Path) -> None:
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer" / "openvino_tokenizer.xml").write_text(
        '<net><layers><layer type="X"><rt_info><attribute name="eos_token_id" value="9"/></rt_info>'
        '</layer></layers><rt_info><eos_token_id value="0"/><bos_token_id value="4"/>'
        '<chat_template value="{{ a &lt; b }}&#10;"/></rt_info></net>'
    )
    found = ir_check.complete(Description("llama", eos_ids=(2,)), tmp_path)
    assert (found.eos_ids, found.bos_id) == ((0, 2), 4)
    assert found.chat_template == "{{ a < b }}\n"
    given_already = Description("llama", bos_id=0, chat_template="own")
    kept = ir_check.complete(given_already, tmp_path)
    assert (kept.bos_id, kept.chat_template) == (0, "own")


def test_ids_beyond_the_vocabulary_are_dropped_and_the_context_has_a_default() -> None:
    shape = architecture(FACTS, Description("llama", eos_ids=(0, 9, 10, 99)), "d")
    assert shape.eos_ids == (0, 9)
    assert shape.context_length == 2048
    assert ir_check.weight_type(FACTS) == "u4"


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("SmolLM2-135M-Instruct.Q4_1", "smollm2-135m-instruct.q4_1"),
        ("José 測試 dir", "jose-dir"),
        ("測試", "model"),
        ("CON", "model-con"),
        ("nul.gguf", "model-nul.gguf"),
        ("com1", "model-com1"),
        ("a/b\\c:d*e?f", "a-b-c-d-e-f"),
        ("..", "model"),
        ("name.", "name"),
        ("x" * 300, "x" * 64),
    ],
)
def test_an_id_is_a_file_name_on_every_system(name: str, safe: str) -> None:
    assert safe_id(name) == safe


@given(st.text(max_size=80))
def test_any_name_makes_a_safe_id_and_a_safe_id_stays(name: str) -> None:
    made = safe_id(name)
    assert made
    assert made == made.lower().strip("-._ ")
    assert not set(made) - set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert safe_id(made) == made

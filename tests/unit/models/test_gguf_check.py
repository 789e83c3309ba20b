"""A GGUF header is believed in nothing that the file does not bear out."""

import struct
import tracemalloc
from pathlib import Path

import gguf
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetapp.errors import (
    CorruptModel,
    FleetError,
    NotAModel,
    UnknownArchitecture,
    Unsupported,
)
from fleetapp.models import gguf_check
from tests.support.tiny_models import TinyModel, tiny_gguf


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("g") / "x.gguf"
    return tiny_gguf(path, "qwen3", 2, quant="Q4_0").path.read_bytes()


def write(folder: Path, data: bytes) -> Path:
    path = folder / "x.gguf"
    path.write_bytes(data)
    return path


def checked(path: Path) -> gguf_check.GgufInfo:
    info = gguf_check.read(path)
    gguf_check.require_convertible(info, path.name)
    gguf_check.describe(info)
    gguf_check.rope(info, path.name, path)
    return info


def test_what_is_read_is_what_the_gguf_package_reads(tiny: dict[str, TinyModel]) -> None:
    for model in tiny.values():
        info, reader = gguf_check.read(model.path), gguf.GGUFReader(model.path)
        assert info.data_start == reader.data_offset
        theirs = [
            (t.name, t.tensor_type, int(t.n_bytes), int(t.data_offset)) for t in reader.tensors
        ]
        ours = [(t.name, t.kind, t.nbytes, info.data_start + t.offset) for t in info.tensors]
        assert ours == theirs
        assert info.number("block_count") == 3


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"", "not a GGUF"), (b"PK\x03\x04 a zip file", "not a GGUF"), (b"GGU", "not a GGUF")],
)
def test_another_kind_of_file_is_not_a_model(tmp_path: Path, data: bytes, why: str) -> None:
    with pytest.raises(NotAModel, match=why):
        gguf_check.read(write(tmp_path, data))


def test_nothing_there_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(NotAModel, match="cannot be read"):
        gguf_check.read(tmp_path / "absent.gguf")


def test_a_file_without_its_last_byte_is_truncated(tmp_path: Path, good: bytes) -> None:
    info = gguf_check.read(write(tmp_path, good))
    end = max(info.data_start + t.offset + t.nbytes for t in info.tensors)
    checked(write(tmp_path, good[:end]))
    with pytest.raises(CorruptModel, match="is truncated: tensor"):
        checked(write(tmp_path, good[: end - 1]))


@given(cut=st.integers(0, 100_000))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_file_cut_anywhere_is_refused(tmp_path: Path, good: bytes, cut: int) -> None:
    info = gguf_check.read(write(tmp_path, good))
    end = max(info.data_start + t.offset + t.nbytes for t in info.tensors)
    with pytest.raises((CorruptModel, NotAModel)):
        checked(write(tmp_path, good[: cut % end]))


@given(
    flips=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=6),
    header=st.booleans(),
)
@settings(
    max_examples=400, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_damaged_file_is_read_or_refused_but_never_crashes_hangs_or_fills_memory(
    tmp_path: Path, good: bytes, flips: list[tuple[float, int]], header: bool
) -> None:
    data = bytearray(good)
    reach = 6000 if header else len(data)  # most of the header is within the first kilobytes
    for where, value in flips:
        data[int(where * (reach - 1))] = value
    path = write(tmp_path, bytes(data))
    refusal = None
    tracemalloc.start()
    try:
        checked(path)
    except FleetError as e:
        refusal = e
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 32_000_000
    assert refusal is None or (refusal.message and refusal.remedy)


@pytest.mark.parametrize("count", [2**64 - 1, 2**63, 2**40, 10**9])
def test_counts_that_the_file_cannot_hold_are_refused_at_once(tmp_path: Path, count: int) -> None:
    def text(s: str) -> bytes:
        return struct.pack("<Q", len(s)) + s.encode()

    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1)
    array = head + text("a") + struct.pack("<IIQ", 9, 8, count)
    many = b"GGUF" + struct.pack("<IQQ", 3, count, count)
    long = head + struct.pack("<Q", count) + b"abc"
    nested = head + text("a") + struct.pack("<IIQ", 9, 9, 1)
    for data in (array, many, long, nested):
        with pytest.raises(CorruptModel):
            gguf_check.read(write(tmp_path, data))


def test_an_unknown_architecture_is_named_and_the_way_out_too(tmp_path: Path) -> None:
    path = tiny_gguf(tmp_path / "x.gguf", "gemma3", 2).path
    with pytest.raises(UnknownArchitecture, match="'gemma3'") as refusal:
        checked(path)
    assert "optimum-intel" in refusal.value.remedy
    assert "model import FOLDER" in refusal.value.remedy


@pytest.mark.parametrize("quant", ["Q5_0", "BF16", "F32"])
def test_weights_that_cannot_be_converted_are_named(tmp_path: Path, quant: str) -> None:
    with pytest.raises(UnknownArchitecture, match=f"type {quant}"):
        checked(tiny_gguf(tmp_path / "x.gguf", quant=quant).path)


def test_a_tokenizer_that_cannot_be_converted_is_named(tmp_path: Path) -> None:
    path = tiny_gguf(tmp_path / "x.gguf").path
    data = path.read_bytes().replace(
        b"\x04\x00\x00\x00\x00\x00\x00\x00gpt2", b"\x04\x00\x00\x00\x00\x00\x00\x00bert"
    )
    with pytest.raises(UnknownArchitecture, match="tokenizer of the kind 'bert'"):
        checked(write(tmp_path, data))


@pytest.mark.parametrize(
    ("extra", "error", "why"),
    [
        ({"llama.expert_count": 8}, UnknownArchitecture, "mixture of experts"),
        ({"split.count": 3}, Unsupported, "one of 3 parts"),
        ({"llama.rope.scaling.type": "yarn"}, UnknownArchitecture, "yarn"),
        ({"llama.rope.dimension_count": 8}, UnknownArchitecture, "8 of 16 dimensions"),
    ],
)
def test_what_the_converter_would_get_wrong_is_refused(
    tmp_path: Path, extra: dict[str, object], error: type[FleetError], why: str
) -> None:
    with pytest.raises(error, match=why):
        checked(tiny_gguf(tmp_path / "x.gguf", extra=extra).path)


@pytest.mark.parametrize("lacking", ["general.file_type", "blk.1.attn_k.weight"])
def test_a_file_that_lacks_something_says_what(tmp_path: Path, lacking: str) -> None:
    with pytest.raises(CorruptModel, match=f"lacks the (key|tensor) '{lacking}'"):
        checked(tiny_gguf(tmp_path / "x.gguf", without=[lacking]).path)


@pytest.mark.parametrize(
    ("extra", "without", "ids"),
    [
        ({}, [], (2,)),
        ({"tokenizer.ggml.eot_token_id": 1}, [], (1, 2)),
        ({"tokenizer.ggml.eom_token_id": 0}, [], (0, 2)),  # 0 is an id (T04)
        ({"tokenizer.ggml.eot_token_id": 0}, ["tokenizer.ggml.eos_token_id"], (0,)),
        ({"tokenizer.ggml.eos_token_ids": [7, 0]}, [], (0, 2, 7)),
        ({}, ["tokenizer.ggml.eos_token_id"], ()),
    ],
)
def test_all_end_tokens_are_kept(
    tmp_path: Path, extra: dict[str, object], without: list[str], ids: tuple[int, ...]
) -> None:
    path = tiny_gguf(tmp_path / "x.gguf", extra=extra, without=without).path
    assert gguf_check.describe(gguf_check.read(path)).eos_ids == ids


def test_what_a_header_says_beside_the_graph(tiny: dict[str, TinyModel]) -> None:
    found = gguf_check.describe(gguf_check.read(tiny["qwen2"].path))
    assert (found.family, found.name, found.licence) == ("qwen2", "tiny qwen2", "CC0-1.0")
    assert found.context_length == 512
    assert found.chat_template is not None
    assert "im_start" in found.chat_template
    assert found.quantization == "GGUF Q8_0"


def test_big_endian_files_are_named_as_such(tmp_path: Path) -> None:
    data = b"GGUF" + struct.pack(">IQQ", 3, 0, 0)
    with pytest.raises(CorruptModel, match="big-endian"):
        gguf_check.read(write(tmp_path, data))

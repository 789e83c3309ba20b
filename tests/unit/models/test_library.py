"""Imported models and their stages, below one folder that several processes share."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import filelock
import numpy as np
import openvino_genai
import pytest

from fleetapp.engine.vocabulary import read_vocabulary
from fleetapp.errors import (
    BadRequest,
    CannotSplit,
    CorruptModel,
    DiskFull,
    FleetError,
    FleetUnavailable,
    NotAModel,
    NotFound,
    ReadOnly,
    UnknownArchitecture,
    Unsupported,
)
from fleetapp.models.disk import MARGIN
from fleetapp.models.library import Library
from fleetapp.models.manifest import decode_signature, decode_stage, digest
from fleetapp.models.progress import Progress
from fleetapp.models.store import ShardStore
from fleetapp.models.trial import run
from fleetapp.types import LayerRange
from tests.support.optimum_like import optimum_like
from tests.support.sample_model import NobodySigns
from tests.support.tiny_models import ARCHITECTURES, TinyModel, reference_logits, tiny_gguf


@pytest.fixture
def own(tmp_path: Path) -> Library:
    """An empty library of this test's own."""
    return Library(tmp_path / "José 測試 dir" / "models", NobodySigns())


def contents(root: Path) -> set[str]:
    return {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}


def test_a_manifest_says_what_the_file_said(library: Library) -> None:
    manifest, name = library.get("qwen3")
    shape = manifest.architecture
    assert (shape.family, shape.layers, shape.hidden_size) == ("qwen3", 3, 64)
    assert (shape.kv_heads, shape.head_sizes) == ((2, 2, 2), (16, 16, 16))
    assert (shape.eos_ids, shape.bos_id, shape.context_length) == ((2,), 1, 512)
    assert shape.chat_template is not None
    assert manifest.licence == "CC0-1.0"
    assert manifest.quantization == "GGUF Q8_0"
    assert len(manifest.layer_bytes) == 3
    assert name == digest((library.folder("qwen3") / "model.json").read_bytes())
    listed = {e.path for e in manifest.files}
    assert {"openvino_model.xml", "tokenizer/openvino_tokenizer.xml"} <= listed
    assert [m.model_id for m in library.models()] == sorted(ARCHITECTURES)


def test_models_that_share_a_tokenizer_say_so(library: Library) -> None:
    digests = {m.architecture.vocab_digest for m in library.models()}
    assert len(digests) == 1
    assert len(digests.pop()) == 64


def test_a_first_stage_carries_its_tokenizer_and_chat_template(library: Library) -> None:
    stage = library.stage("llama", LayerRange(0, 1))
    tokenizer = openvino_genai.Tokenizer(os.fspath(stage.path / "tokenizer"))
    messages = [{"role": "user", "content": "Hé 日本 👩"}]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
    assert prompt == "<|im_start|>user\nHé 日本 👩<|im_end|>\n<|im_start|>assistant\n"
    ids = tokenizer.encode(prompt, add_special_tokens=False).input_ids.data[0].tolist()
    assert ids.count(1) == 2, "control tokens are single ids"
    assert tokenizer.decode(ids, skip_special_tokens=False) == prompt
    assert stage.manifest.architecture.chat_template == tokenizer.chat_template
    assert not (library.stage("llama", LayerRange(1, 2)).path / "tokenizer").exists()


def test_a_last_stage_carries_the_vocabulary(library: Library) -> None:
    stage = library.stage("llama", LayerRange(1, 3))
    carried = [f.path for f in stage.manifest.files if f.path.startswith("tokenizer/")]
    assert carried == [f"tokenizer/openvino_detokenizer.{end}" for end in ("bin", "xml")]
    tokenizer = openvino_genai.Tokenizer(os.fspath(library.folder("llama") / "tokenizer"))
    vocabulary = read_vocabulary(stage.path / "tokenizer")
    for text in ("Hello there, 日本!", "a  b\n\tc", "👩‍👩‍👧 é"):
        ids = tokenizer.encode(text, add_special_tokens=False).input_ids.data[0].tolist()
        assert b"".join(vocabulary.text(i) for i in ids).decode() == text


def test_a_tokenizer_cuts_no_text_short(library: Library) -> None:
    """Exporters bake a limit in; the engine has to see how long a prompt really is (T08)."""
    folder = library.folder("llama") / "tokenizer"
    tokenizer = openvino_genai.Tokenizer(os.fspath(folder))
    assert tokenizer.encode("x" * 20_000).input_ids.shape == [1, 20_000]


def test_stages_are_made_once_and_signed_for_whoever_asks(library: Library) -> None:
    seen: list[Progress] = []
    stage = library.stage("qwen2", LayerRange(1, 2), seen.append)
    assert {p.phase for p in seen} >= {"hashing"}
    seen.clear()
    other = Library(library.root, OtherSigner())
    again = other.stage("qwen2", LayerRange(1, 2), seen.append)
    assert seen == []
    assert (again.path, again.digest, again.payload) == (stage.path, stage.digest, stage.payload)
    assert (again.signer, again.signature) == ("cd" * 32, b"other")
    assert decode_stage(stage.payload) == stage.manifest
    assert digest(stage.payload) == stage.digest
    on_disk = decode_signature((stage.path / "stage.sig").read_bytes())
    assert on_disk.signer == NobodySigns.spki


class OtherSigner:
    spki = "cd" * 32

    def sign(self, payload: bytes) -> bytes:
        return b"other"


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_stage_folders_compute_what_the_file_means(
    library: Library, tiny: dict[str, TinyModel], arch: str
) -> None:
    bounds = [LayerRange(0, 1), LayerRange(1, 3)]
    parts = [library.stage(arch, r).path / "stage.xml" for r in bounds]
    ids = [9, 90, 33, 120, 7]
    difference = np.abs(run(parts, ids, 0)[0] - reference_logits(tiny[arch], ids)[-1])
    assert difference.max() < 1e-3


def test_a_stage_travels_by_chunks_to_another_pc(library: Library, tmp_path: Path) -> None:
    stage = library.stage("llama", LayerRange(0, 2))
    there = ShardStore(tmp_path / "shards")
    assembly = there.assembly(stage.payload, stage.signature, stage.signer)
    for chunk in assembly.missing():
        assembly.write(chunk.sha256, library.shards.read_chunk(chunk.sha256))
    folder = assembly.finish()
    for entry in stage.manifest.files:
        assert (folder / entry.path).read_bytes() == (stage.path / entry.path).read_bytes()


def test_an_impossible_stage_leaves_nothing(library: Library) -> None:
    before = contents(library.root)
    with pytest.raises(CannotSplit):
        library.stage("llama", LayerRange(2, 9))
    with pytest.raises(NotFound, match="'nobody'"):
        library.stage("nobody", LayerRange(0, 1))
    assert contents(library.root) == before


@pytest.mark.parametrize("scaling", ["llama3", "linear"])
def test_rotary_scaling_is_there(own: Library, tmp_path: Path, scaling: str) -> None:
    """The converter leaves it out; every answer would differ."""
    factors = [1.0, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0, 8.0] if scaling == "llama3" else [4.0] * 8
    extra = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
    model = tiny_gguf(
        tmp_path / "m.gguf",
        quant="Q8_0",
        rope_factors=factors,
        extra=extra if scaling == "linear" else None,
        without=["rope_freqs.weight"] if scaling == "linear" else [],
    )
    own.import_path(model.path)
    ids = list(range(5, 45))
    got = run([own.folder("m") / "openvino_model.xml"], ids, 0)[0]
    assert np.abs(got - reference_logits(model, ids)[-1]).max() < 1e-3


def test_rotary_frequencies_of_an_f16_model_keep_their_precision(
    own: Library, tmp_path: Path
) -> None:
    """Rounded to f16, as the converter stores them, answers drift with the position."""
    model = tiny_gguf(tmp_path / "m.gguf", quant="F16", layers=1, context=2048)
    own.import_path(model.path)
    ids = [3 + i * 7 % 250 for i in range(1500)]
    got = run([own.folder("m") / "openvino_model.xml"], ids, 0)[0]
    assert np.abs(got - reference_logits(model, ids)[-1]).max() < 0.03


def test_an_ir_folder_is_imported_with_all_its_end_tokens(
    own: Library, library: Library, tmp_path: Path
) -> None:
    folder = ir_folder(tmp_path / "some IR 日本", library)
    (folder / "config.json").write_text(
        '{"model_type": "qwen2", "eos_token_id": [5, 0], "max_position_embeddings": 4096,'
        ' "bos_token_id": 9}'
    )
    (folder / "generation_config.json").write_text('{"eos_token_id": 7}')
    (folder / "tokenizer_config.json").write_text(
        '{"eos_token": {"content": "<|end|>"}, "added_tokens_decoder":'
        ' {"11": {"content": "<|end|>"}}, "chat_template": "from the config"}'
    )
    manifest = own.import_path(folder)
    shape = manifest.architecture
    assert manifest.model_id == "some-ir"
    assert shape.eos_ids == (0, 2, 5, 7, 11), "every file's, and the tokenizer graph's own"
    assert (shape.family, shape.context_length, shape.bos_id) == ("qwen2", 4096, 9)
    assert shape.chat_template == "from the config"
    assert manifest.quantization == "f16"
    stage = own.stage("some-ir", LayerRange(0, 2))
    assert (stage.path / "tokenizer" / "tokenizer_config.json").is_file()
    assert (folder / "openvino_model.xml").is_file(), "what was imported is left as it is"


def ir_folder(folder: Path, library: Library) -> Path:
    """An IR in the style of an export, with a real tokenizer beside it."""
    optimum_like(folder, 4, vocab=269)
    for path in (library.folder("llama") / "tokenizer").iterdir():
        shutil.copy(path, folder / path.name)
    return folder


def break_xml(folder: Path) -> None:
    xml = folder / "openvino_model.xml"
    xml.write_bytes(xml.read_bytes()[:5000])


def truncate(folder: Path) -> None:
    weights = folder / "openvino_model.bin"
    weights.write_bytes(weights.read_bytes()[:-1])


def forget(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def garble(folder: Path) -> None:
    """Well-formed, complete, and yet no graph."""
    xml = folder / "openvino_model.xml"
    xml.write_text(xml.read_text().replace('type="MatMul"', 'type="Nonsense"'))


@pytest.mark.parametrize(
    ("damage", "error", "why"),
    [
        (break_xml, CorruptModel, "not a well-formed graph file"),
        (truncate, CorruptModel, r"openvino_model\.bin is truncated"),
        (forget("openvino_model.bin"), CorruptModel, r"not openvino_model\.bin"),
        (forget("openvino_model.xml"), NotAModel, r"has no openvino_model\.xml"),
        (forget("openvino_tokenizer.xml"), Unsupported, r"has no openvino_tokenizer\.xml"),
        (forget("openvino_detokenizer.bin"), CorruptModel, r"openvino_detokenizer\.bin is trunc"),
        (garble, CorruptModel, "cannot be read as an OpenVINO graph"),
        (lambda f: (f / "config.json").write_text("{"), CorruptModel, r"config\.json is not valid"),
    ],
)
def test_a_damaged_ir_is_refused_and_nothing_is_left(
    own: Library,
    library: Library,
    tmp_path: Path,
    damage: Callable[[Path], object],
    error: type[FleetError],
    why: str,
) -> None:
    folder = ir_folder(tmp_path / "ir", library)
    damage(folder)
    with pytest.raises(error, match=why) as refusal:
        own.import_path(folder)
    assert refusal.value.remedy
    assert contents(own.root) <= {"library.lock"}


def test_a_tokenizer_graph_alone_is_not_a_language_model(
    own: Library, library: Library, tmp_path: Path
) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    for suffix in (".xml", ".bin"):
        tokenizer = library.folder("llama") / "tokenizer" / f"openvino_tokenizer{suffix}"
        shutil.copy(tokenizer, folder / f"openvino_model{suffix}")
    with pytest.raises(NotAModel, match="no key-value state"):
        own.import_path(folder)


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("x.gguf", b"", NotAModel),
        ("x.gguf", b"not a model at all", NotAModel),
        ("x.gguf", b"GGUF\x03\0\0\0\xff\xff", CorruptModel),
        ("notes.txt", b"hello", NotAModel),
    ],
)
def test_a_file_that_is_no_model_is_refused_and_nothing_is_left(
    own: Library, tmp_path: Path, name: str, data: bytes, error: type[FleetError]
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(error):
        own.import_path(tmp_path / name)
    with pytest.raises(NotAModel):
        own.import_path(tmp_path / "nowhere")
    assert contents(own.root) == set()


def test_a_checkpoint_is_told_from_no_model(own: Library, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(NotAModel, match="nobody has converted yet") as refusal:
        own.import_path(tmp_path)
    assert "optimum-cli" in refusal.value.remedy


def test_weights_that_the_converter_chokes_on_leave_nothing(own: Library, tmp_path: Path) -> None:
    """The header is fine and the converter still fails: too few rows for the heads."""
    model = tiny_gguf(tmp_path / "m.gguf", extra={"llama.attention.key_length": 24})
    with pytest.raises(FleetError) as refusal:
        own.import_path(model.path)
    assert refusal.value.exit_code == CorruptModel.exit_code
    assert contents(own.root) <= {"library.lock"}


def test_an_unknown_architecture_is_named(own: Library, tmp_path: Path) -> None:
    with pytest.raises(UnknownArchitecture, match="'phi3'"):
        own.import_path(tiny_gguf(tmp_path / "m.gguf", "phi3").path)


def test_importing_the_same_again_is_nothing_new_and_another_needs_its_own_name(
    library: Library, tiny: dict[str, TinyModel]
) -> None:
    before = library.get("llama")
    assert library.import_path(tiny["llama"].path, "llama") == before[0]
    with pytest.raises(BadRequest, match="another model named 'llama'") as refusal:
        library.import_path(tiny["qwen2"].path, "llama")
    assert "--name" in refusal.value.remedy
    assert library.get("llama") == before


def test_a_full_disk_is_said_before_starting(tmp_path: Path, tiny: dict[str, TinyModel]) -> None:
    """T24"""
    own = Library(tmp_path / "models", NobodySigns(), free=lambda _: MARGIN + 1000)
    with pytest.raises(DiskFull, match=r"Importing llama\.gguf needs"):
        own.import_path(tiny["llama"].path)
    assert contents(own.root) <= {"library.lock"}


@pytest.mark.parametrize("megabytes", [1, 3, 4, 6])
def test_a_disk_that_fills_up_while_importing_leaves_no_half_model(
    small_disk: Callable[[int], Path], tmp_path: Path, megabytes: int
) -> None:
    """T24, on a real file system, as if the space had gone after it was checked."""
    model = tiny_gguf(tmp_path / "m.gguf", layers=3, hidden=256, ffn=1024, quant="Q8_0")
    disk = small_disk(megabytes)
    own = Library(disk / "models", NobodySigns(), free=lambda _: 1 << 40)
    with pytest.raises(DiskFull, match="is full"):
        own.import_path(model.path)
    assert own.models() == ()
    assert contents(own.root) <= {"library.lock"}


def test_a_read_only_library_can_be_read_and_says_that_it_cannot_be_changed(
    small_disk: Callable[[int], Path],
    freeze: Callable[[Path], None],
    tiny: dict[str, TinyModel],
) -> None:
    disk = small_disk(24)
    own = Library(disk / "models", NobodySigns())
    own.import_path(tiny["llama"].path)
    own.stage("llama", LayerRange(0, 1))
    freeze(disk)
    again = Library(disk / "models", NobodySigns())
    assert again.stage("llama", LayerRange(0, 1)).manifest.layers == LayerRange(0, 1)
    for change in (
        lambda: again.stage("llama", LayerRange(1, 2)),
        lambda: again.import_path(tiny["qwen2"].path),
        lambda: again.remove("llama"),
        lambda: Library(disk / "another", NobodySigns()),
    ):
        with pytest.raises(ReadOnly, match="cannot be written") as refusal:
            change()
        assert "--state" in refusal.value.remedy


def test_verify_finds_a_flipped_bit_in_the_model(own: Library, tmp_path: Path) -> None:
    own.import_path(tiny_gguf(tmp_path / "m.gguf", layers=2).path)
    assert own.verify("m").ok
    flip(own.folder("m") / "openvino_model.bin", 100)
    report = own.verify("m")
    assert (report.ok, report.damaged) == (False, ("openvino_model.bin",))


def test_verify_drops_damaged_stages_and_they_are_made_again(own: Library, tmp_path: Path) -> None:
    own.import_path(tiny_gguf(tmp_path / "m.gguf", layers=2).path)
    stages = [own.stage("m", LayerRange(i, i + 1)) for i in range(2)]
    flip(stages[1].path / "stage.bin", 100)
    report = own.verify("m", deep=True)
    assert report.dropped_stages == ("1-1",)
    assert report.damaged == ()
    assert report.max_difference is not None
    assert report.max_difference < 1e-3
    assert own.stage("m", LayerRange(1, 2)).digest == stages[1].digest
    assert own.verify("m").ok


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_remove_takes_the_stages_along(own: Library, tmp_path: Path) -> None:
    own.import_path(tiny_gguf(tmp_path / "a.gguf", layers=2).path)
    own.import_path(tiny_gguf(tmp_path / "b.gguf", layers=2, seed=1).path)
    own.stage("a", LayerRange(0, 1))
    kept = own.stage("b", LayerRange(0, 1))
    own.remove("a")
    assert [m.model_id for m in own.models()] == ["b"]
    assert list(own.shards.stages()) == [kept.digest]
    assert own.release([kept.digest]) == 0
    assert own.release([]) == kept.manifest.size
    assert not kept.path.exists()
    with pytest.raises(NotFound, match="there are: b"):
        own.remove("a")


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a\\b", ".hidden", "c:x"])
def test_a_name_cannot_lead_out_of_the_library(library: Library, name: str) -> None:
    for call in (library.get, library.remove, library.folder):
        with pytest.raises(NotFound):
            call(name)


def test_a_damaged_manifest_does_not_hide_the_others(own: Library, tmp_path: Path) -> None:
    own.import_path(tiny_gguf(tmp_path / "m.gguf", layers=1).path)
    path = own.folder("m") / "model.json"
    good = path.read_bytes()
    path.write_bytes(good[:-20])
    assert own.models() == ()
    with pytest.raises(CorruptModel, match="manifest of 'm'") as failure:
        own.get("m")
    assert "model remove m" in failure.value.remedy
    own.remove("m")
    assert own.models() == ()


def test_two_threads_that_want_the_same_stage_get_the_same(own: Library, tmp_path: Path) -> None:
    own.import_path(tiny_gguf(tmp_path / "m.gguf", layers=2).path)
    got: list[str] = []
    threads = [
        threading.Thread(target=lambda: got.append(own.stage("m", LayerRange(0, 1)).digest))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(got) == 3
    assert len(set(got)) == 1


def test_two_processes_wait_for_one_another(own: Library, tmp_path: Path) -> None:
    model = tiny_gguf(tmp_path / "m.gguf", layers=2)
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.support.sample_model import NobodySigns\n"
        "from fleetapp.models.library import Library\n"
        "print(Library(Path(sys.argv[1]), NobodySigns()).import_path(Path(sys.argv[2])).model_id)"
    )
    command = [sys.executable, "-c", code, str(own.root), str(model.path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [p.communicate(timeout=90)[0] for p in both] == ["m\n", "m\n"]
    assert own.verify("m").ok


def test_what_another_process_did_to_a_model_is_noticed(
    own: Library, tiny: dict[str, TinyModel], tmp_path: Path
) -> None:
    """As when the command line removes a model that an agent has made stages of."""
    other = Library(own.root, NobodySigns())
    own.import_path(tiny["llama"].path, "m")
    stamps = [own.stamp()]
    first = own.stage("m", LayerRange(0, 2))
    other.remove("m")
    stamps.append(own.stamp())
    with pytest.raises(NotFound):
        own.stage("m", LayerRange(0, 2))
    other.import_path(tiny["qwen2"].path, "m")
    stamps.append(own.stamp())
    second = own.stage("m", LayerRange(0, 2))
    assert second.digest != first.digest
    other.remove("m")
    other.import_path(tiny["llama"].path, "m")
    again = own.stage("m", LayerRange(0, 2))
    assert (again.path / "stage.bin").is_file()
    assert len(set(stamps)) == 3


def test_a_library_in_use_for_too_long_is_said(tmp_path: Path, tiny: dict[str, TinyModel]) -> None:
    own = Library(tmp_path / "models", NobodySigns(), lock_deadline=0.2)
    seen: list[Progress] = []
    with (
        filelock.FileLock(own.root / "library.lock"),
        pytest.raises(FleetUnavailable, match="for too long"),
    ):
        own.import_path(tiny["llama"].path, None, seen.append)
    assert seen[-1].phase == "waiting"


IMPORT = """
import sys
from pathlib import Path
from tests.support.sample_model import NobodySigns
from fleetapp.models.library import Library
def show(progress):
    print(progress.phase, flush=True)
Library(Path(sys.argv[1]), NobodySigns()).import_path(Path(sys.argv[2]), None, show)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(
    ("how", "phase"),
    [
        (signal.SIGINT, "converting"),
        (signal.SIGINT, "checking"),
        (signal.SIGINT, "hashing"),
        (signal.SIGKILL, "converting"),
        (signal.SIGKILL, "checking"),
    ],
)
def test_an_import_that_is_interrupted_leaves_no_half_model(
    own: Library, tiny: dict[str, TinyModel], phase: str, how: signal.Signals
) -> None:
    command = [sys.executable, "-c", IMPORT, str(own.root), str(tiny["llama"].path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == phase:
                process.send_signal(how)
                break
        process.stdout.read()
        process.wait(timeout=30)
    assert own.models() == ()
    if how == signal.SIGINT:
        assert contents(own.root) <= {"library.lock"}
    else:  # nobody could tidy up; whoever comes next does
        own.import_path(tiny["llama"].path)
        assert not (own.root / "work").exists()
        assert own.verify("llama").ok

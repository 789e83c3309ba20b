"""A damaged, full or forbidden cache of compiled blobs never stops a stage."""

import functools
import logging
from collections import namedtuple
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

from fleetapp.engine.executor import compiled
from fleetapp.engine.executor.compiled import blobs_load, compile_graph
from fleetapp.errors import RunnerFailed

CONFIG = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": 1}


@functools.cache  # OpenVINO's hash of a graph includes the numbers it gave to its nodes
def model(factor: float = 3.0) -> ov.Model:
    x = op.parameter([-1, 4], np.float32, name="x")
    weights = op.constant(np.full((4, 64), factor, np.float32))
    return ov.Model([op.result(op.matmul(x, weights, False, False))], [x], "m")


def works(graph: ov.CompiledModel, factor: float = 3.0) -> bool:
    return bool((graph({"x": np.ones((2, 4), np.float32)})[0] == 4 * factor).all())


def build(cache: Path | None, *, key: str = "k", factor: float = 3.0) -> ov.CompiledModel:
    return compile_graph(model(factor), "CPU", dict(CONFIG), cache_dir=cache, key=key, size=1000)


def blobs(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.blob"))


def test_a_blob_is_kept_and_used_again(tmp_path, caplog) -> None:
    assert works(build(tmp_path))
    (blob,) = blobs(tmp_path)
    before = blob.stat().st_mtime_ns
    with caplog.at_level(logging.WARNING):
        assert works(build(tmp_path))
    assert blobs(tmp_path) == [blob]
    assert blob.stat().st_mtime_ns == before
    assert not caplog.records


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "zeros", "garbage"])
def test_a_damaged_blob_is_noticed_removed_and_made_again(tmp_path, damage: str, caplog) -> None:
    build(tmp_path)
    (blob,) = blobs(tmp_path)
    good = blob.read_bytes()
    flipped = bytearray(good)
    flipped[-100] ^= 1
    blob.write_bytes(
        {
            "flip": bytes(flipped),
            "truncate": good[: len(good) // 2],
            "empty": b"",
            "zeros": bytes(len(good)),
            "garbage": b"not a blob" * 100,
        }[damage]
    )
    with caplog.at_level(logging.WARNING):
        assert works(build(tmp_path))
    assert "damaged" in caplog.text
    caplog.clear()
    assert works(build(tmp_path))
    assert not caplog.records


def test_a_blob_that_openvino_cannot_load_is_removed_though_its_hash_is_right(tmp_path) -> None:
    build(tmp_path)
    (blob,) = blobs(tmp_path)
    blob.write_bytes(b"nonsense" * 50)
    compiled._write_sums(blob.parent)
    assert works(build(tmp_path))


@pytest.mark.parametrize("leftover", ["foreign.blob", "probe"])
def test_a_folder_without_a_list_is_made_anew(tmp_path, leftover: str) -> None:
    build(tmp_path)
    (blob,) = blobs(tmp_path)
    (blob.parent / "sums.json").unlink()
    (blob.parent / leftover).write_bytes(b"half written")
    assert works(build(tmp_path))
    assert not (blob.parent / leftover).exists()


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where a folder should be")
    assert works(build(blocked / "cache"))
    assert blocked.read_text().startswith("a file")


def test_a_full_disk_is_done_without(tmp_path, monkeypatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(compiled.shutil, "disk_usage", lambda _: usage(10, 10, 0))
    assert works(build(tmp_path))
    assert not blobs(tmp_path)


def test_two_stages_never_share_a_blob(tmp_path) -> None:
    assert works(build(tmp_path, key="a", factor=3.0), 3.0)
    assert works(build(tmp_path, key="b", factor=5.0), 5.0)
    assert len(blobs(tmp_path)) == 2


def test_a_blob_that_is_not_used_any_more_goes(tmp_path) -> None:
    build(tmp_path)
    (old,) = blobs(tmp_path)
    (old.parent / "1.blob").write_bytes(old.read_bytes())
    compiled._write_sums(old.parent)
    assert works(build(tmp_path))
    assert len(blobs(tmp_path)) == 1


def test_blobs_of_another_openvino_go(tmp_path) -> None:
    old = tmp_path / "2019.1.0-abc" / "x"
    old.mkdir(parents=True)
    (old / "1.blob").write_bytes(b"old")
    build(tmp_path)
    assert not old.exists()
    assert blobs(tmp_path)


def test_without_a_cache_nothing_is_written(tmp_path) -> None:
    assert works(build(None))
    assert not list(tmp_path.iterdir())


def test_what_a_device_cannot_compile_is_one_clear_error() -> None:
    with pytest.raises(RunnerFailed, match="NO_SUCH"):
        compile_graph(model(), "NO_SUCH", dict(CONFIG))


def test_cpu_blobs_of_paged_graphs_are_not_kept_while_they_cannot_be_read() -> None:
    assert not blobs_load("CPU")
    assert blobs_load("GPU.0")

"""Chunks cover a file, follow its tensors, and are shared by stages of different plans."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.errors import CorruptModel
from fleetapp.models.chunking import LARGEST, SMALLEST, cut, describe, tensor_spans
from fleetapp.models.library import Library
from fleetapp.models.manifest import Chunk, digest
from fleetapp.types import LayerRange

spans = st.lists(st.tuples(st.integers(0, 5 * LARGEST), st.integers(0, 2 * LARGEST)), max_size=20)


@given(st.integers(0, 6 * LARGEST), spans)
def test_chunks_cover_a_file_without_gap_or_overlap(
    size: int, tensors: list[tuple[int, int]]
) -> None:
    end = 0
    for offset, length in cut(size, tensors):
        assert offset == end
        assert 0 < length <= LARGEST
        end += length
    assert end == size


@given(st.lists(st.integers(0, 400_000), min_size=1, max_size=30))
def test_a_large_tensor_is_cut_the_same_wherever_it_lies(sizes: list[int]) -> None:
    """Two files with the same large tensors in another order have the same chunks of them."""

    def lengths(order: list[int]) -> list[int]:
        tensors, end = [], 0
        for size in order:
            tensors.append((end, size))
            end += size
        starts = {t[0]: t[1] for t in tensors if t[1] >= SMALLEST}
        return sorted(n for at, n in cut(end, tensors) if at in starts and n == starts[at])

    large = sorted(s for s in sizes if s >= SMALLEST)
    assert lengths(sizes) == lengths(sizes[::-1]) == large


def test_small_neighbours_are_merged() -> None:
    tensors = [(i * 100, 100) for i in range(50)] + [(5000, SMALLEST), (5000 + SMALLEST, 8)]
    assert cut(5008 + SMALLEST, tensors) == ((0, 5000), (5000, SMALLEST), (5000 + SMALLEST, 8))


def test_a_tensor_that_appears_twice_is_one_chunk() -> None:
    assert cut(SMALLEST, [(0, SMALLEST), (0, SMALLEST), (0, 8)]) == ((0, SMALLEST),)


def test_a_description_hashes_whole_and_parts(tmp_path: Path) -> None:
    data = bytes(range(256)) * 1024
    (tmp_path / "f").write_bytes(data)
    entry = describe(tmp_path, "f", [(0, 1 << 17), (1 << 17, 1 << 17)])
    assert entry.sha256 == digest(data)
    assert entry.chunks == (
        Chunk(digest(data[: 1 << 17]), 0, 1 << 17),
        Chunk(digest(data[1 << 17 :]), 1 << 17, 1 << 17),
    )


@pytest.mark.parametrize("text", ["<net><layer", "", '<net><data offset="x" size="1"/></net>'])
def test_a_broken_graph_file_is_corrupt(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.xml").write_text(text)
    with pytest.raises(CorruptModel):
        tensor_spans(tmp_path / "x.xml")


@pytest.mark.model
def test_three_stages_and_two_share_nearly_all_their_bytes(sample: Library) -> None:
    """Re-planning 10+10+10 into 15+15 moves less than a tenth of the weights."""
    model = sample.models()[0]

    def weights(bounds: list[int]) -> dict[str, int]:
        found: dict[str, int] = {}
        for start, stop in pairwise(bounds):
            stage = sample.stage(model.model_id, LayerRange(start, stop))
            entry = next(f for f in stage.manifest.files if f.path == "stage.bin")
            found |= {c.sha256: c.size for c in entry.chunks}
        return found

    three, two = weights([0, 10, 20, 30]), weights([0, 15, 30])
    shared = sum(size for sha, size in two.items() if sha in three)
    assert shared / sum(two.values()) > 0.9
    print(f"{shared / sum(two.values()):.1%} of the bytes are shared, {len(two)} chunks")

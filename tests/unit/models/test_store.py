"""A shard is complete when its hashes say so, whatever happened on the way."""

import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetapp.errors import CorruptModel, DiskFull, HashMismatch, NotFound, ReadOnly, StorageError
from fleetapp.models.disk import MARGIN
from fleetapp.models.manifest import (
    SCHEMA,
    Architecture,
    Chunk,
    FileEntry,
    StageManifest,
    decode_signature,
    digest,
    encode,
)
from fleetapp.models.store import Assembly, ShardStore
from fleetapp.types import LayerRange

ARCHITECTURE = Architecture(
    family="llama",
    layers=4,
    hidden_size=8,
    vocab_size=16,
    kv_heads=(1,) * 4,
    head_sizes=(8,) * 4,
    context_length=64,
    eos_ids=(2,),
    bos_id=None,
    chat_template=None,
)


class Shard:
    """A made-up shard: files as lists of chunk contents."""

    def __init__(self, files: dict[str, list[bytes]], stop: int = 1) -> None:
        self.chunks = {digest(c): c for parts in files.values() for c in parts}
        self.files = {name: b"".join(parts) for name, parts in files.items()}
        entries = []
        for name, parts in files.items():
            offset, chunks = 0, []
            for part in parts:
                chunks.append(Chunk(digest(part), offset, len(part)))
                offset += len(part)
            whole = self.files[name]
            entries.append(FileEntry(name, len(whole), digest(whole), tuple(chunks)))
        self.manifest = StageManifest(
            SCHEMA, "m", "0" * 64, ARCHITECTURE, LayerRange(0, stop), True, False, tuple(entries)
        )
        self.payload = encode(self.manifest)

    @property
    def digest(self) -> str:
        return digest(self.payload)

    def begin(self, store: ShardStore) -> Assembly:
        return store.assembly(self.payload, b"signature", "ab" * 32)

    def fill(self, assembly: Assembly, limit: int | None = None) -> None:
        for chunk in assembly.missing()[:limit]:
            assembly.write(chunk.sha256, self.chunks[chunk.sha256])


def content(seed: int, size: int = 1000) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.fixture
def shard() -> Shard:
    weights = [content(i) for i in range(6)]
    return Shard(
        {
            "stage.xml": [content(100, 50)],
            "stage.bin": [*weights, weights[0]],  # one chunk at two places
            "tokenizer/t.bin": [content(200, 300)],
        }
    )


@pytest.fixture
def store(tmp_path: Path) -> ShardStore:
    return ShardStore(tmp_path / "José 測試" / "shards")


def test_chunks_in_any_order_make_the_files(store: ShardStore, shard: Shard) -> None:
    assembly = shard.begin(store)
    assert assembly.from_cache == assembly.done == 0
    missing = list(assembly.missing())
    assert len({c.sha256 for c in missing}) == len(missing) == 8
    random.Random(1).shuffle(missing)
    for chunk in missing:
        assembly.write(chunk.sha256, shard.chunks[chunk.sha256])
    folder = assembly.finish()
    assert assembly.done == assembly.total == sum(map(len, shard.files.values()))
    for name, data in shard.files.items():
        assert (folder / name).read_bytes() == data
    assert (folder / "stage.json").read_bytes() == shard.payload
    assert decode_signature((folder / "stage.sig").read_bytes()).signature == b"signature"
    assert store.path(shard.digest) == folder
    assert store.verify(shard.digest) == []
    assert {p.name for p in folder.rglob("*") if p.is_file()} == {
        "stage.json",
        "stage.sig",
        "stage.xml",
        "stage.bin",
        "t.bin",
    }


def test_nothing_is_complete_before_its_hash_is(store: ShardStore, shard: Shard) -> None:
    assembly = shard.begin(store)
    shard.fill(assembly, 3)
    assert store.path(shard.digest) is None
    with pytest.raises(StorageError, match="5 chunks of this shard are still missing"):
        assembly.finish()


def test_an_interrupted_shard_resumes(store: ShardStore, shard: Shard) -> None:
    shard.fill(shard.begin(store), 3)
    again = ShardStore(store.root)  # a new process
    assembly = shard.begin(again)
    assert len(assembly.missing()) == 5
    assert assembly.from_cache == assembly.done > 0
    shard.fill(assembly)
    assembly.finish()
    assert ShardStore(store.root).verify(shard.digest) == []


def test_a_finish_interrupted_between_its_renames_resumes(store: ShardStore, shard: Shard) -> None:
    shard.fill(shard.begin(store))
    partial = next((store.root / "partial").iterdir())
    (partial / "stage.bin.part").rename(partial / "stage.bin")
    assembly = shard.begin(ShardStore(store.root))
    assert assembly.missing() == ()
    assembly.finish()


def test_a_chunk_with_one_flipped_bit_is_refused_and_fetched_again(
    store: ShardStore, shard: Shard
) -> None:
    assembly = shard.begin(store)
    chunk = assembly.missing()[1]
    damaged = bytearray(shard.chunks[chunk.sha256])
    damaged[500] ^= 1
    with pytest.raises(HashMismatch):
        assembly.write(chunk.sha256, bytes(damaged))
    assert chunk in assembly.missing()
    shard.fill(assembly)
    assembly.finish()


def test_a_bit_that_flips_on_disk_before_the_end_is_found_and_fetched_again(
    store: ShardStore, shard: Shard
) -> None:
    assembly = shard.begin(store)
    shard.fill(assembly)
    flip(next((store.root / "partial").glob("*/stage.bin.part")), 2500)
    with pytest.raises(HashMismatch, match=r"stage\.bin"):
        assembly.finish()
    assert [c.offset for c in assembly.missing()] == [2000]
    shard.fill(assembly)
    assembly.finish()


def test_zeros_of_the_right_size_are_not_a_shard(store: ShardStore, shard: Shard) -> None:
    """T23: the journal says complete, the disk lost everything."""
    shard.fill(shard.begin(store))
    for part in (store.root / "partial").rglob("*.part"):
        part.write_bytes(bytes(part.stat().st_size))
    assembly = shard.begin(ShardStore(store.root))
    with pytest.raises(HashMismatch):
        assembly.finish()
    assert assembly.missing()


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_only_what_no_other_shard_here_has_is_missing(store: ShardStore, shard: Shard) -> None:
    first = shard.begin(store)
    shard.fill(first)
    first.finish()
    other = Shard(
        {"stage.xml": [content(101, 50)], "stage.bin": [content(3), content(50), content(4)]}, 2
    )
    assembly = other.begin(store)
    assert {c.size for c in assembly.missing()} == {50, 1000}
    assert len(assembly.missing()) == 2
    assert assembly.from_cache == 2000
    other.fill(assembly)
    assembly.finish()
    assert store.verify(other.digest) == []


def test_a_damaged_neighbour_is_not_copied_from(store: ShardStore, shard: Shard) -> None:
    first = shard.begin(store)
    shard.fill(first)
    flip(first.finish() / "stage.bin", 3500)
    other = Shard({"stage.bin": [content(3)]}, 2)
    assembly = other.begin(store)
    assert [c.sha256 for c in assembly.missing()] == [digest(content(3))]
    other.fill(assembly)
    assembly.finish()


def test_verify_names_damaged_and_missing_files(store: ShardStore, shard: Shard) -> None:
    assembly = shard.begin(store)
    shard.fill(assembly)
    folder = assembly.finish()
    flip(folder / "stage.bin", 0)
    (folder / "stage.xml").unlink()
    assert store.verify(shard.digest) == ["stage.xml", "stage.bin"]
    store.discard(shard.digest)
    assert store.path(shard.digest) is None
    assert not folder.exists()
    with pytest.raises(NotFound):
        store.verify(shard.digest)


def test_a_served_chunk_is_checked(store: ShardStore, shard: Shard) -> None:
    assembly = shard.begin(store)
    shard.fill(assembly)
    folder = assembly.finish()
    assert store.read_chunk(digest(content(1))) == content(1)
    assert store.read_chunk(digest(content(0))) == content(0)
    flip(folder / "stage.bin", 1500)
    with pytest.raises(HashMismatch):
        store.read_chunk(digest(content(1)))
    flip(folder / "stage.bin", 10)
    assert store.read_chunk(digest(content(0))) == content(0), "its second copy is intact"
    with pytest.raises(NotFound):
        store.read_chunk("0" * 64)


def test_a_full_disk_is_said_before_anything_is_written(tmp_path: Path, shard: Shard) -> None:
    """T24"""
    room = 5000
    store = ShardStore(tmp_path, free=lambda _: MARGIN + room)
    with pytest.raises(DiskFull, match=r"needs 16\.\d MiB"):
        shard.begin(store)
    assert not list(tmp_path.rglob("*.part"))
    room = 10_000
    shard.fill(shard.begin(store), 7)
    room = 400  # enough for what is still missing
    shard.fill(shard.begin(store))


def test_a_disk_that_fills_up_meanwhile_keeps_what_is_there(
    small_disk: Callable[[int], Path],
) -> None:
    """T24, on a real file system."""
    disk = small_disk(24)
    store = ShardStore(disk / "shards", free=lambda _: 1 << 40)  # as if others took it meanwhile
    parts = [content(i, 3_000_000) for i in range(12)]
    shard = Shard({"stage.bin": parts})
    assembly = shard.begin(store)
    with pytest.raises(DiskFull):
        shard.fill(assembly)
    kept = assembly.done
    assert kept >= 15_000_000
    assert shard.begin(ShardStore(disk / "shards", free=lambda _: 1 << 40)).done == kept


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((ReadOnly, StorageError), match="file"):
        ShardStore(tmp_path / "file" / "shards")


def test_what_is_no_longer_needed_is_given_back(store: ShardStore, shard: Shard) -> None:
    other = Shard({"stage.bin": [content(70)]}, 2)
    for s in (shard, other):
        assembly = s.begin(store)
        s.fill(assembly)
        assembly.finish()
    half = Shard({"stage.bin": [content(71), content(72)]}, 3)
    half.fill(half.begin(store), 1)
    assert store.release([other.digest]) == shard.manifest.size
    assert list(store.stages()) == [other.digest]
    assert not list((store.root / "partial").iterdir())
    assert store.has_chunk(digest(content(70)))
    assert not store.has_chunk(digest(content(1)))


def test_a_shard_of_another_store_is_linked_not_copied(
    store: ShardStore, shard: Shard, tmp_path: Path
) -> None:
    assembly = shard.begin(store)
    shard.fill(assembly)
    source = assembly.finish()
    other = ShardStore(tmp_path / "other")
    folder = other.adopt(source, shard.payload, b"another signature", "cd" * 32)
    assert (folder / "stage.bin").stat().st_ino == (source / "stage.bin").stat().st_ino
    assert decode_signature((folder / "stage.sig").read_bytes()).signer == "cd" * 32
    assert other.verify(shard.digest) == []
    assert other.adopt(source, shard.payload, b"", "") == folder
    other.release([])
    assert store.verify(shard.digest) == []


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "/etc/x",
        "a/../b",
        "C:\\x",
        "a\\b",
        "stage.json",
        "journal",
        "a//b",
        "./a",
        "",
        "c:x",
    ],
)
def test_a_manifest_cannot_write_outside_its_folder(store: ShardStore, path: str) -> None:
    shard = Shard({path: [content(1)]})
    with pytest.raises(CorruptModel):
        shard.begin(store)


def test_a_manifest_with_gaps_is_refused(store: ShardStore) -> None:
    entry = FileEntry("stage.bin", 10, "0" * 64, (Chunk("0" * 64, 0, 4), Chunk("1" * 64, 5, 5)))
    manifest = StageManifest(
        SCHEMA, "m", "0" * 64, ARCHITECTURE, LayerRange(0, 1), True, False, (entry,)
    )
    with pytest.raises(CorruptModel, match="gaps"):
        store.assembly(encode(manifest), b"", "")
    with pytest.raises(CorruptModel, match="malformed"):
        store.assembly(b"{}", b"", "")


def test_a_manifest_whose_hashes_contradict_one_another_ends(store: ShardStore) -> None:
    data = content(1)
    entry = FileEntry("stage.bin", 1000, "0" * 64, (Chunk(digest(data), 0, 1000),))
    manifest = StageManifest(
        SCHEMA, "m", "0" * 64, ARCHITECTURE, LayerRange(0, 1), True, False, (entry,)
    )
    assembly = store.assembly(encode(manifest), b"", "")
    assembly.write(digest(data), data)
    with pytest.raises(CorruptModel, match="contradict"):
        assembly.finish()


def test_several_threads_may_fill_one_shard(store: ShardStore) -> None:
    shard = Shard({"stage.bin": [content(i, 20_000) for i in range(60)]})
    assembly = shard.begin(store)
    missing = list(assembly.missing())

    def work(part: list[Chunk]) -> None:
        for chunk in part:
            assembly.write(chunk.sha256, shard.chunks[chunk.sha256])

    threads = [threading.Thread(target=work, args=(missing[i::4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assembly.finish()
    assert store.verify(shard.digest) == []


@given(
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=8),
    stops=st.lists(st.integers(0, 8), max_size=4),
    damage=st.one_of(st.none(), st.integers(0, 10_000)),
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_interrupts_it_the_shard_ends_intact(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], stops: list[int], damage: int | None
) -> None:
    root = tmp_path_factory.mktemp("s")
    shard = Shard({"stage.bin": [content(i, n) for i, n in enumerate(sizes)]})
    for stop in stops:
        shard.fill(shard.begin(ShardStore(root)), stop)
    parts = list(root.rglob("*.part"))
    if damage is not None and parts:
        flip(parts[0], damage % parts[0].stat().st_size)
    assembly = shard.begin(ShardStore(root))
    shard.fill(assembly)
    try:
        assembly.finish()
    except HashMismatch:
        shard.fill(assembly)
        assembly.finish()
    assert ShardStore(root).verify(shard.digest) == []

"""A small shard that a store accepts, made of bytes that mean nothing; and peers that serve it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

from fleetapp.models.chunking import SMALLEST, describe
from fleetapp.models.manifest import (
    SCHEMA,
    Architecture,
    StageManifest,
    digest,
    encode,
)
from fleetapp.types import LayerRange

CHUNK = SMALLEST

ARCHITECTURE = Architecture(
    family="llama",
    layers=2,
    hidden_size=8,
    vocab_size=16,
    kv_heads=(1, 1),
    head_sizes=(4, 4),
    context_length=64,
    eos_ids=(0,),
    bos_id=None,
    chat_template=None,
)


@dataclass(frozen=True)
class TestShard:
    """A signed description and the bytes it speaks of."""

    __test__ = False
    payload: bytes
    manifest: StageManifest
    chunks: dict[str, bytes]
    """Every chunk by its hash, in the order of the files."""

    @property
    def digest(self) -> str:
        return digest(self.payload)

    @property
    def hashes(self) -> list[str]:
        return list(self.chunks)


def make_shard(root: Path, chunks: int = 8, weights: bytes | None = None) -> TestShard:
    """``chunks`` chunks of 64 KiB in stage.bin, a small stage.xml; the files stay in ``root``."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "stage.xml").write_text("<net/>")
    (root / "stage.bin").write_bytes(weights or random.Random(1).randbytes(chunks * CHUNK))
    spans = [(i * CHUNK, CHUNK) for i in range(chunks)]
    files = (describe(root, "stage.xml"), describe(root, "stage.bin", spans))
    manifest = StageManifest(
        schema=SCHEMA,
        model_id="tiny",
        model_digest="0" * 64,
        architecture=ARCHITECTURE,
        layers=LayerRange(0, 2),
        first=False,
        last=False,
        files=files,
    )
    found = {
        chunk.sha256: (root / entry.path).read_bytes()[chunk.offset : chunk.offset + chunk.size]
        for entry in files
        for chunk in entry.chunks
    }
    return TestShard(encode(manifest), manifest, found)


Answer = Callable[[bytes, int], AsyncIterator[bytes]]
"""What a peer sends for a chunk's true bytes when asked to begin at an offset."""


@dataclass
class Peer:
    """A chunk source. Honest, unless told how to answer the next questions for a chunk."""

    chunks: dict[str, bytes]
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    asked: list[tuple[str, int]] = field(default_factory=list)
    piece: int = 10_000
    left_open: int = 0
    """Streams that have not been closed."""
    gate: Callable[[str], asyncio.Event | None] = lambda _: None
    """An event that must be set before a chunk is sent."""

    def will(self, sha256: str, *answers: Answer) -> None:
        self.answers[sha256] = list(answers)

    async def read(self, sha256: str, offset: int) -> AsyncIterator[bytes]:
        self.asked.append((sha256, offset))
        queue = self.answers.get(sha256)
        answer = queue.pop(0) if queue else honest(self.piece)
        waits = self.gate(sha256)
        self.left_open += 1
        try:
            if waits is not None:
                await waits.wait()
            async for data in answer(self.chunks[sha256], offset):
                yield data
        finally:
            self.left_open -= 1


def honest(piece: int = 10_000) -> Answer:
    async def answer(data: bytes, offset: int) -> AsyncIterator[bytes]:
        for at in range(offset, len(data), piece):
            yield data[at : at + piece]

    return answer


async def flipped(data: bytes, offset: int) -> AsyncIterator[bytes]:
    """One bit in the middle is not what it was."""
    wrong = bytearray(data)
    wrong[len(data) // 2] ^= 1
    yield bytes(wrong[offset:])


async def zeros(data: bytes, offset: int) -> AsyncIterator[bytes]:
    """The right size, and nothing else right."""
    yield bytes(len(data) - offset)


async def too_much(data: bytes, offset: int) -> AsyncIterator[bytes]:
    yield data[offset:] + b"more"


async def endless(data: bytes, offset: int) -> AsyncIterator[bytes]:
    """The chunk, over and over."""
    yield data[offset:-1]
    while True:
        yield data


def ends_after(count: int) -> Answer:
    """Cleanly, but too early."""

    async def answer(data: bytes, offset: int) -> AsyncIterator[bytes]:
        yield data[offset : offset + count]

    return answer


def stalls_after(count: int) -> Answer:
    async def answer(data: bytes, offset: int) -> AsyncIterator[bytes]:
        yield data[offset : offset + count]
        await asyncio.Event().wait()

    return answer


def breaks_after(count: int, error: Exception) -> Answer:
    async def answer(data: bytes, offset: int) -> AsyncIterator[bytes]:
        yield data[offset : offset + count]
        raise error

    return answer

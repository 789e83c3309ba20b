"""Cutting files into content-addressed chunks at tensor boundaries. No OpenVINO.

A weights file that two plans share tensor by tensor is shared chunk by chunk, wherever the tensors
lie in it. Tensors of at least ``SMALLEST`` bytes are chunks of their own, in pieces of at most
``LARGEST``; runs of smaller ones are merged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO
from xml.parsers import expat

from fleetapp.errors import CorruptModel
from fleetapp.models.manifest import Chunk, FileEntry

SMALLEST = 64 * 1024
LARGEST = 16 * 1024 * 1024
_READ = 1024 * 1024


def cut(size: int, tensors: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Cut ``[0, size)`` into ``(offset, size)`` pieces without gap or overlap, in order.

    Args:
        size: bytes of the file.
        tensors: ``(offset, size)`` of tensors; may repeat, overlap, or reach beyond the file.
    """
    spans: list[tuple[int, int]] = []
    end = 0
    for start, length in sorted(set(tensors), key=lambda t: (t[0], -t[1])):
        stop = min(start + length, size)
        # A tensor that shares its first bytes with the one before is not a boundary.
        if start >= end and stop - start >= SMALLEST:
            if start > end:
                spans.append((end, start))
            spans.append((start, stop))
            end = stop
    if end < size:
        spans.append((end, size))
    return tuple(
        (at, min(LARGEST, stop - at)) for start, stop in spans for at in range(start, stop, LARGEST)
    )


def tensor_spans(xml: Path) -> list[tuple[int, int]]:
    """Return ``(offset, size)`` of every constant of an IR, read as a stream.

    Raises:
        CorruptModel: not well-formed XML, or a constant without numbers.
    """
    spans: list[tuple[int, int]] = []

    def element(name: str, attributes: dict[str, str]) -> None:
        if name == "data" and "offset" in attributes and "size" in attributes:
            spans.append((int(attributes["offset"]), int(attributes["size"])))

    parser = expat.ParserCreate()
    parser.StartElementHandler = element
    try:
        with xml.open("rb") as file:
            parser.ParseFile(file)
    except (expat.ExpatError, ValueError) as e:
        raise CorruptModel(f"{xml.name} is not a well-formed graph file: {e}.") from e
    if any(offset < 0 or length < 0 for offset, length in spans):
        raise CorruptModel(f"{xml.name} has a constant at a negative place.")
    return spans


def describe(root: Path, relative: str, tensors: Sequence[tuple[int, int]] = ()) -> FileEntry:
    """Hash a file whole and by chunks in one pass.

    Args:
        root: folder.
        relative: path below it with forward slashes.
        tensors: where to cut; without any, only large files are cut.
    """
    path = root / relative
    size = path.stat().st_size
    whole = hashlib.sha256()
    chunks = []
    with path.open("rb") as file:
        for offset, length in cut(size, tensors):
            part = hashlib.sha256()
            for block in blocks(file, length):
                part.update(block)
                whole.update(block)
            chunks.append(Chunk(sha256=part.hexdigest(), offset=offset, size=length))
    return FileEntry(path=relative, size=size, sha256=whole.hexdigest(), chunks=tuple(chunks))


def file_sha256(path: Path, tell: Callable[[int], None] | None = None) -> str:
    """SHA-256 of a file in hex.

    Args:
        path: the file.
        tell: now and then told how many bytes are done.
    """
    whole, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_READ):
            whole.update(block)
            done += len(block)
            if tell is not None:
                tell(done)
    return whole.hexdigest()


def blocks(file: BinaryIO, length: int) -> Iterator[bytes]:
    """Read ``length`` bytes from where the file stands, at most 1 MiB at a time."""
    left = length
    while left > 0 and (block := file.read(min(_READ, left))):
        left -= len(block)
        yield block

"""Detokenizers of several kinds, as small hand-made graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fleetapp.engine.vocabulary import read_vocabulary
from fleetapp.errors import CorruptModel, Unsupported

TYPES = {np.dtype(np.int32): "i32", np.dtype(np.uint8): "u8"}


def detokenizer(
    folder: Path, tokens: list[bytes], special: list[int], *, after: tuple[str, ...] = (),
    kind: str = "VocabDecoder", replaces: bytes = b"",
) -> Path:  # fmt: skip
    """Writes a graph whose decoder has these tokens, with operations behind it."""
    weights = bytearray()
    layers: list[str] = []
    edges: list[str] = []

    def layer(name: str, data: str = "") -> int:
        layers.append(f'<layer id="{len(layers)}" name="x" type="{name}">{data}</layer>')
        return len(layers) - 1

    def constant(values: np.ndarray) -> int:
        data = f'<data element_type="{TYPES[values.dtype]}" offset="{len(weights)}" '
        data += f'shape="{values.size}" size="{values.nbytes}" />'
        weights.extend(values.tobytes())
        return layer("Const", data)

    def edge(source: int, target: int, port: int) -> None:
        ends_at = f'to-layer="{target}" to-port="{port}"'
        edges.append(f'<edge from-layer="{source}" from-port="0" {ends_at}/>')

    ends = np.cumsum([len(t) for t in tokens], dtype=np.int32)
    begins = np.concatenate(([0], ends[:-1])).astype(np.int32)
    parameter = layer("Parameter")
    parts = [constant(c) for c in (begins, ends, np.frombuffer(b"".join(tokens), np.uint8))]
    skipped, cut = constant(np.array(special, np.int32)), layer("Slice")
    edge(skipped, cut, 0)
    decoder = layer(kind)
    for port, source in enumerate([parameter, *parts, cut]):
        edge(source, decoder, port)
    before = decoder
    for name in after:
        following = layer(name)
        edge(before, following, 0)
        if name == "RegexNormalization":
            edge(constant(np.frombuffer(replaces, np.uint8)), following, 3)
            edge(constant(np.frombuffer(b" ", np.uint8)), following, 4)
        before = following
    folder.mkdir(parents=True, exist_ok=True)
    text = f"<net><layers>{''.join(layers)}</layers><edges>{''.join(edges)}</edges></net>"
    (folder / "openvino_detokenizer.xml").write_text(text)
    (folder / "openvino_detokenizer.bin").write_bytes(bytes(weights))
    return folder


def test_raw_bytes_stay_as_they_are(tmp_path: Path) -> None:
    tokens = [b"<s>", b"a", b" b", b"\xe6\x97", b"", "Ġ".encode(), b"<0x41>"]
    vocabulary = read_vocabulary(detokenizer(tmp_path, tokens, [0]))
    assert [vocabulary.text(i) for i in range(7)] == [b"", *tokens[1:]]
    assert vocabulary.name(0) == b"<s>"
    assert vocabulary.text(7) == vocabulary.text(-1) == vocabulary.name(99) == b""


def test_the_byte_alphabet(tmp_path: Path) -> None:
    tokens = ["Ġhello", "Ċ", "æĹ¥", "!", "日"]
    folder = detokenizer(tmp_path, [t.encode() for t in tokens], [], after=("CharsToBytes",))
    vocabulary = read_vocabulary(folder)
    assert vocabulary.tokens == (b" hello", b"\n", "日".encode(), b"!", "日".encode())


def test_sentencepiece(tmp_path: Path) -> None:
    tokens = ["▁hello", "<0x0A>", "<0xE6>", "a▁b", "<0xZZ>"]
    folder = detokenizer(
        tmp_path,
        [t.encode() for t in tokens],
        [],
        after=("ByteFallback", "RegexNormalization"),
        replaces="▁".encode(),
    )
    assert read_vocabulary(folder).tokens == (b" hello", b"\n", b"\xe6", b"a b", b"<0xZZ>")


def test_a_special_token_keeps_its_name(tmp_path: Path) -> None:
    folder = detokenizer(tmp_path, ["▁".encode(), b"<0x41>"], [1], after=("ByteFallback",))
    vocabulary = read_vocabulary(folder)
    assert (vocabulary.text(1), vocabulary.name(1)) == (b"", b"<0x41>")


def test_what_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="older version"):
        read_vocabulary(tmp_path / "none")
    other = detokenizer(tmp_path / "other", [b"a"], [], kind="SentencepieceDetokenizer")
    with pytest.raises(Unsupported, match="cannot be read"):
        read_vocabulary(other)
    broken = detokenizer(tmp_path / "broken", [b"a", b"b"], [])
    (broken / "openvino_detokenizer.bin").write_bytes(b"ab")
    with pytest.raises(CorruptModel):
        read_vocabulary(broken)
    (broken / "openvino_detokenizer.xml").write_text("<net")
    with pytest.raises(CorruptModel):
        read_vocabulary(broken)

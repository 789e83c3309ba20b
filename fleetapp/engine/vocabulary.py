"""The bytes of every token, read out of a detokenizer's files. No OpenVINO needed.

A token is bytes, not text: it may end in the middle of a character. The detokenizer graph holds
them as constants of its VocabDecoder; what the operations behind it would still do to a token
(GPT-2's byte alphabet, ``<0x0A>``, the ``▁`` of SentencePiece) is done here.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from fleetapp.errors import CorruptModel, Unsupported

DETOKENIZER: Final = "openvino_detokenizer.xml"
_SPACE: Final = "\u2581".encode()
_BYTE: Final = re.compile(rb"<0x([0-9A-Fa-f]{2})>")
_TYPES: Final = {"i32": np.int32, "i64": np.int64, "u8": np.uint8}


@dataclass(frozen=True)
class Vocabulary:
    """Tokens by id; special ones have a name in ``tokens`` and no text."""

    tokens: tuple[bytes, ...]
    special: frozenset[int]

    def name(self, token: int) -> bytes:
        """What a token is called in a report: its bytes, of special ones their name."""
        return self.tokens[token] if 0 <= token < len(self.tokens) else b""

    def text(self, token: int) -> bytes:
        """What a token adds to the answer; nothing for special and unknown ones."""
        if token in self.special or not 0 <= token < len(self.tokens):
            return b""
        return self.tokens[token]


def read_vocabulary(folder: Path) -> Vocabulary:
    """Read ``openvino_detokenizer.xml`` and ``.bin`` of a tokenizer folder.

    Raises:
        Unsupported: there is none, or it works in another way.
        CorruptModel: its files cannot be read.
    """
    xml = folder / DETOKENIZER
    if not xml.is_file():
        raise Unsupported(
            f"The shard in {folder.parent} has no vocabulary, it was made by an older version.",
            remedy="Remove the model's shards and start it again.",
        )
    try:
        graph = _Graph(ET.parse(xml).getroot(), xml.with_suffix(".bin"))  # noqa: S314 - signed
        return graph.vocabulary()
    except (OSError, ET.ParseError, ValueError, KeyError, IndexError) as exc:
        raise CorruptModel(f"The detokenizer {xml} cannot be read: {exc}.") from exc


class _Graph:
    """Just enough of an OpenVINO IR: layers, edges and constants."""

    def __init__(self, root: ET.Element, weights: Path) -> None:
        self._layers = {layer.attrib["id"]: layer for layer in root.iterfind("layers/layer")}
        self._feeds = {
            (e.attrib["to-layer"], int(e.attrib["to-port"])): e.attrib["from-layer"]
            for e in root.iterfind("edges/edge")
        }
        self._weights = weights

    @cached_property
    def _bytes(self) -> npt.NDArray[np.uint8]:
        return np.fromfile(self._weights, np.uint8)

    def vocabulary(self) -> Vocabulary:
        decoder = next((i for i in self._layers if self._type(i) == "VocabDecoder"), None)
        if decoder is None:
            raise Unsupported("The vocabulary of this model's detokenizer cannot be read.")
        begins, ends, chars = (self._constant(self._feeds[decoder, port]) for port in (1, 2, 3))
        whole = chars.tobytes()
        spans = zip(begins.tolist(), ends.tolist(), strict=True)
        tokens = [whole[start:stop] for start, stop in spans]
        special = self._special(decoder)
        convert = self._conversion()
        converted = (t if i in special else convert(t) for i, t in enumerate(tokens))
        return Vocabulary(tuple(converted), special)

    def _special(self, decoder: str) -> frozenset[int]:
        source = self._feeds.get((decoder, 4))
        while source is not None and self._type(source) != "Const":
            source = self._feeds.get((source, 0))  # a slice that can be opened and closed
        return frozenset() if source is None else frozenset(self._constant(source).tolist())

    def _conversion(self) -> _Conversion:
        types = [self._type(i) for i in self._layers]
        patterns = [
            self._constant(source).tobytes()
            for (target, port), source in self._feeds.items()
            if self._type(target) == "RegexNormalization"
            and port > 0
            and self._type(source) == "Const"
            and self._layers[source].find("data") is not None
            and self._data(source)["element_type"] == "u8"
        ]
        return _Conversion(
            alphabet="CharsToBytes" in types,
            fallback="ByteFallback" in types,
            spaces=_SPACE in patterns,
        )

    def _type(self, layer: str) -> str:
        return self._layers[layer].attrib["type"]

    def _data(self, layer: str) -> dict[str, str]:
        data = self._layers[layer].find("data")
        if data is None:
            raise ValueError(f"layer {layer} has no data")
        return data.attrib

    def _constant(self, layer: str) -> npt.NDArray[np.generic]:
        if self._type(layer) != "Const":
            raise Unsupported("The vocabulary of this model's detokenizer cannot be read.")
        data = self._data(layer)
        start = int(data["offset"])
        raw = self._bytes[start : start + int(data["size"])]
        return raw.view(_TYPES[data["element_type"]])


@dataclass(frozen=True)
class _Conversion:
    """From what the vocabulary holds to what the text gets."""

    alphabet: bool
    fallback: bool
    spaces: bool

    def __call__(self, token: bytes) -> bytes:
        if self.alphabet:
            return _from_alphabet(token)
        if self.fallback and (match := _BYTE.fullmatch(token)):
            return bytes([int(match[1], 16)])
        return token.replace(_SPACE, b" ") if self.spaces else token


def _alphabet() -> dict[str, int]:
    """GPT-2's printable stand-ins for the 256 bytes (Radford et al. 2019, ``bytes_to_unicode``)."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(rest)}


_ALPHABET: Final = _alphabet()


def _from_alphabet(token: bytes) -> bytes:
    try:
        return bytes(_ALPHABET[c] for c in token.decode())
    except (KeyError, UnicodeDecodeError):
        return token  # added tokens are written as they are

"""A byte-level tokenizer: one token per UTF-8 byte, incomplete characters left out."""

from __future__ import annotations

from collections.abc import Sequence

from fleetapp.engine.detokenize import StreamDecoder
from fleetapp.engine.pipe import ChatMessage
from fleetapp.engine.vocabulary import Vocabulary
from fleetapp.errors import BadRequest


def decode_bytes(ids: Sequence[int]) -> str:
    """Ids from 256 on are special and have no text."""
    return bytes(i for i in ids if i < 256).decode("utf-8", "ignore")


def decode_bytes_replacing(ids: Sequence[int]) -> str:
    """The other kind of detokenizer: U+FFFD for what is incomplete or invalid."""
    return bytes(i for i in ids if i < 256).decode("utf-8", "replace")


VOCABULARY = Vocabulary(
    (*(bytes([i]) for i in range(256)), *(f"<{i}>".encode() for i in range(256, 300))),
    frozenset(range(256, 300)),
)


class ByteText:
    """Satisfies ``prompts.TextHost``."""

    def encode_prompt(self, text: str) -> list[int]:
        if not text.strip():
            raise BadRequest("The prompt is empty.")
        return list(text.encode())

    def encode_chat(self, messages: Sequence[ChatMessage]) -> list[int]:
        return self.encode_prompt("".join(f"{m.role}: {m.content}\n" for m in messages))

    def stream(self) -> StreamDecoder:
        return StreamDecoder(decode_bytes)

    def vocabulary(self) -> Vocabulary:
        return VOCABULARY

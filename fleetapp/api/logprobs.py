r"""Log probabilities as OpenAI writes them, for chat and for completions.

A token is bytes. Where these are not text by themselves (half a character), the token's string
shows them as ``\xe2``, and ``bytes`` of the chat format has them exactly: joined over the tokens
of an answer they are its UTF-8 text.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from typing import Any

from fleetapp.engine.pipe import TokenLogprob


def token_string(text: bytes) -> str:
    """A token, fit to be shown."""
    return text.decode("utf-8", "backslashreplace")


def chat_logprobs(reports: Iterable[TokenLogprob]) -> list[dict[str, Any]]:
    """The ``content`` of a chat choice's ``logprobs``."""
    return [
        {
            **_entry(r.text, r.logprob),
            "top_logprobs": [_entry(a.text, a.logprob) for a in r.top],
        }
        for r in reports
    ]


def _entry(text: bytes, logprob: float) -> dict[str, Any]:
    return {"token": token_string(text), "logprob": logprob, "bytes": list(text)}


class CompletionLogprobs:
    """The ``logprobs`` of a completion's choice, piece by piece; it knows the offset so far."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        self._offset = 0

    def take(self, reports: Iterable[TokenLogprob]) -> dict[str, Any]:
        """The next tokens; offsets are in characters of the whole text."""
        tokens, own, top, offsets = [], [], [], []
        for r in reports:
            tokens.append(token_string(r.text))
            own.append(r.logprob)
            likeliest = {token_string(a.text): a.logprob for a in r.top}
            top.append(likeliest | {token_string(r.text): r.logprob})
            offsets.append(self._offset)
            if not r.hidden:
                self._offset += len(self._decoder.decode(r.text))
        return {
            "tokens": tokens,
            "token_logprobs": own,
            "top_logprobs": top,
            "text_offset": offsets,
        }

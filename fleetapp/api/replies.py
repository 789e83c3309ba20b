"""What the OpenAI-compatible API answers: whole objects and the chunks of a stream.

Fields are present or absent, never null, except where OpenAI's schema requires the field to be
there (a chunk's ``finish_reason``; ``logprobs`` and ``refusal`` of a whole answer).
"""

from __future__ import annotations

import time
import uuid
from typing import Any
from urllib.parse import quote

import msgspec

from fleetapp.api.schema import Call
from fleetapp.engine.pipe import Delta, Finished, Started
from fleetapp.hub.service import ServedModel
from fleetapp.types import Usage


def usage(counts: Usage) -> dict[str, int]:
    """OpenAI's ``usage``."""
    return {
        "prompt_tokens": counts.prompt_tokens,
        "completion_tokens": counts.completion_tokens,
        "total_tokens": counts.prompt_tokens + counts.completion_tokens,
    }


def model_object(model: ServedModel) -> dict[str, Any]:
    """OpenAI's ``model``, and under ``fleet`` what we know beyond that."""
    return {
        "id": model.model_id,
        "object": "model",
        "created": model.created,
        "owned_by": "fleet",
        "fleet": {
            "ready": model.ready,
            "context_length": model.context_length,
            "devices": list(model.devices),
        },
    }


class Reply:
    """Writes one answer in the words of its endpoint.

    Args:
        chat: ``/v1/chat/completions`` or ``/v1/completions``.
        call: the request.
        devices: names of the PCs that serve it, in stage order.
    """

    def __init__(self, chat: bool, call: Call, devices: tuple[str, ...]) -> None:
        self.id = ("chatcmpl-" if chat else "cmpl-") + uuid.uuid4().hex
        self._chat = chat
        self._call = call
        self._devices = devices
        self._created = int(time.time())

    def headers(self) -> dict[str, str]:
        """Of the response; device names percent-encoded, for they may be in any language."""
        return {
            "X-Request-Id": self.id,
            "X-Fleet-Devices": ",".join(quote(d, safe=" ") for d in self._devices),
        }

    def whole(self, deltas: list[Delta], end: Finished) -> dict[str, Any]:
        """The answer of a request without ``stream``."""
        text = "".join(d.text for d in deltas)
        choice: dict[str, Any] = {"index": 0, "finish_reason": end.reason, "logprobs": None}
        if self._chat:
            choice["message"] = {"role": "assistant", "content": text, "refusal": None}
        else:
            choice["text"] = text
        if self._call.return_token_ids:
            choice["token_ids"] = [t for d in deltas for t in d.token_ids]
        kind = "chat.completion" if self._chat else "text_completion"
        return self._object(kind, [choice], usage=usage(end.usage), fleet=self._fleet(end))

    def opening(self, begin: Started) -> dict[str, Any]:
        """The first chunk of a chat stream: whose turn it is, who serves it, what was read.

        A reader that stops early never sees the closing chunk.
        """
        fleet = {"devices": list(self._devices), "prompt_tokens": begin.prompt_tokens}
        return self._chunk({"role": "assistant", "content": ""}, None) | {"fleet": fleet}

    def delta(self, delta: Delta) -> dict[str, Any] | None:
        """A chunk of text, or None when there is nothing to show yet."""
        ids = list(delta.token_ids) if self._call.return_token_ids else []
        if not delta.text and not ids:
            return None
        chunk = self._chunk({"content": delta.text}, None, delta.text)
        if ids:
            chunk["choices"][0]["token_ids"] = ids
        return chunk

    def closing(self, end: Finished) -> dict[str, Any]:
        """The chunk with the finish reason, who served it, and how fast."""
        return self._chunk({}, end.reason) | {"fleet": self._fleet(end)}

    def usage_chunk(self, end: Finished) -> dict[str, Any]:
        """The extra last chunk of ``stream_options.include_usage``."""
        return self._object(self._chunk_kind, [], usage=usage(end.usage))

    @property
    def _chunk_kind(self) -> str:
        return "chat.completion.chunk" if self._chat else "text_completion"

    def _chunk(self, delta: dict[str, str], reason: str | None, text: str = "") -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "finish_reason": reason}
        if self._chat:
            choice["delta"] = delta
        else:
            choice |= {"text": text, "logprobs": None}
        return self._object(self._chunk_kind, [choice])

    def _object(self, kind: str, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": self._created,
            "model": self._call.model,
            "choices": choices,
            **more,
        }

    def _fleet(self, end: Finished) -> dict[str, Any]:
        fleet: dict[str, Any] = {"devices": list(self._devices)}
        if end.timings is not None:
            fleet["timings"] = msgspec.to_builtins(end.timings)
        return fleet

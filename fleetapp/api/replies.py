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

from fleetapp.api.logprobs import CompletionLogprobs, chat_logprobs
from fleetapp.api.schema import Call
from fleetapp.engine.pipe import Delta, Finished, Started
from fleetapp.hub.service import Served, ServedModel
from fleetapp.types import Usage


def usage(counts: Usage) -> dict[str, Any]:
    """OpenAI's ``usage``."""
    return {
        "prompt_tokens": counts.prompt_tokens,
        "completion_tokens": counts.completion_tokens,
        "total_tokens": counts.prompt_tokens + counts.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": counts.cached_tokens},
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
            **({"reason": model.reason} if model.reason else {}),
            "context_length": model.context_length,
            "devices": list(model.devices),
        },
    }


class Reply:
    """Writes the answers to one request in the words of its endpoint.

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
        self._indices = {self.request_id(i): i for i in range(call.n)}
        self._completion_logprobs = [CompletionLogprobs() for _ in range(call.n)]
        self._ends: dict[int, Finished] = {}

    def request_id(self, index: int) -> str:
        """What the request for one of the answers is called."""
        return f"{self.id}-{index}" if index else self.id

    def headers(self) -> dict[str, str]:
        """Of the response; device names percent-encoded, for they may be in any language."""
        return {
            "X-Request-Id": self.id,
            "X-Fleet-Devices": ",".join(quote(d, safe=" ") for d in self._devices),
        }

    def served_by(self, event: Served) -> None:
        """These PCs serve it now."""
        self._devices = event.devices

    def end(self, event: Finished) -> bool:
        """One answer has ended; True if that was the last one."""
        self._ends[self._indices[event.request_id]] = event
        return len(self._ends) == self._call.n

    def whole(self, deltas: list[Delta]) -> dict[str, Any]:
        """The answer of a request without ``stream``, once all answers have ended."""
        kind = "chat.completion" if self._chat else "text_completion"
        choices = [
            self._choice([d for d in deltas if self._indices[d.request_id] == i], self._ends[i])
            for i in range(self._call.n)
        ]
        slowest = max(self._ends.values(), key=lambda e: e.timings.total if e.timings else 0.0)
        return self._object(kind, choices, usage=self._usage(), fleet=self._fleet(slowest))

    def _choice(self, deltas: list[Delta], end: Finished) -> dict[str, Any]:
        text = "".join(d.text for d in deltas)
        index = self._indices[end.request_id]
        choice: dict[str, Any] = {"index": index, "finish_reason": end.reason, "logprobs": None}
        if self._call.sampling.logprobs is not None:
            reports = [r for d in deltas for r in d.logprobs]
            if self._chat:
                choice["logprobs"] = {"content": chat_logprobs(reports), "refusal": None}
            else:
                choice["logprobs"] = self._completion_logprobs[index].take(reports)
        if self._chat:
            choice["message"] = {"role": "assistant", "content": text, "refusal": None}
        else:
            choice["text"] = text
        if self._call.return_token_ids:
            choice["token_ids"] = [t for d in deltas for t in d.token_ids]
        return choice

    def opening(self, event: Started) -> dict[str, Any]:
        """The first chunk of an answer in a chat stream: whose turn it is, who serves it, what
        was read. A reader that stops early never sees the closing chunk.
        """
        fleet = {"devices": list(self._devices), "prompt_tokens": event.prompt_tokens}
        opened = self._chunk(event.request_id, {"role": "assistant", "content": ""}, None)
        return opened | {"fleet": fleet}

    def delta(self, delta: Delta) -> dict[str, Any] | None:
        """A chunk of text, or None when there is nothing to show yet."""
        ids = list(delta.token_ids) if self._call.return_token_ids else []
        if not (delta.text or ids or delta.logprobs):
            return None
        chunk = self._chunk(delta.request_id, {"content": delta.text}, None, delta.text)
        choice = chunk["choices"][0]
        if ids:
            choice["token_ids"] = ids
        if delta.logprobs:
            if self._chat:
                choice["logprobs"] = {"content": chat_logprobs(delta.logprobs)}
            else:
                index = self._indices[delta.request_id]
                choice["logprobs"] = self._completion_logprobs[index].take(delta.logprobs)
        return chunk

    def closing(self, end: Finished) -> dict[str, Any]:
        """The chunk with the finish reason, who served it, and how fast."""
        return self._chunk(end.request_id, {}, end.reason) | {"fleet": self._fleet(end)}

    def usage_chunk(self) -> dict[str, Any]:
        """The extra last chunk of ``stream_options.include_usage``."""
        return self._object(self._chunk_kind, [], usage=self._usage())

    def _usage(self) -> dict[str, Any]:
        """The prompt counts once, whatever the number of answers."""
        first = self._ends[0].usage
        answered = sum(e.usage.completion_tokens for e in self._ends.values())
        return usage(Usage(first.prompt_tokens, answered, first.cached_tokens))

    @property
    def _chunk_kind(self) -> str:
        return "chat.completion.chunk" if self._chat else "text_completion"

    def _chunk(
        self, request_id: str, delta: dict[str, str], reason: str | None, text: str = ""
    ) -> dict[str, Any]:
        index = self._indices[request_id]
        choice: dict[str, Any] = {"index": index, "finish_reason": reason}
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

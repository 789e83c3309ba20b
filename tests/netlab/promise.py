"""What a running answer is promised when a PC or a link is lost: the one place to say it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import openai
import pytest

from tests.netlab.lab import Host, inside
from tests.support.sample_model import MODEL

ANSWERS_GO_ON = True
"""True: the same answer goes on, with identical tokens. False: it ends with a typed error."""
GOES_ON_WITHIN = 60.0
"""From the loss until the whole answer is there (s)."""
ENDS_WITHIN = 8.0
"""From the loss until the error: nothing is acknowledged for 5 s, and then it is said."""
CODES = frozenset({"chain_broken", "runner_failed", "peer_timeout"})
PROMPT = "Write a long story about a lighthouse."


@dataclass
class Answer:
    """An answer that is being streamed.

    Attributes:
        stream: of chunks.
        ids: tokens so far.
    """

    stream: Iterator[openai.types.chat.ChatCompletionChunk]
    ids: list[int] = field(default_factory=list)

    def read(self, tokens: int | None = None) -> list[int]:
        """Until there are so many tokens, or the answer has ended."""
        if tokens is not None and len(self.ids) >= tokens:
            return self.ids
        for chunk in self.stream:
            for choice in chunk.choices:
                self.ids += (choice.model_extra or {}).get("token_ids") or []
            if tokens is not None and len(self.ids) >= tokens:
                break
        return self.ids


def begin(host: Host, tokens: int) -> Answer:
    """Ask for so many tokens; the first have come."""
    with inside(host.namespace):
        stream = host.openai().chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": PROMPT}],
            max_tokens=tokens,
            stream=True,
            extra_body={"ignore_eos": True, "return_token_ids": True},
        )
    answer = Answer(iter(stream))
    answer.read(4)
    return answer


def whole(host: Host, tokens: int) -> list[int]:
    """The same answer without any trouble."""
    ids = begin(host, tokens).read()
    assert len(ids) == tokens
    return ids


def kept(answer: Answer, undisturbed: list[int]) -> None:
    """After a loss, now: the promise above holds."""
    lost = time.monotonic()
    if ANSWERS_GO_ON:
        assert answer.read() == undisturbed
        assert time.monotonic() - lost < GOES_ON_WITHIN
        return
    with pytest.raises(openai.APIError) as broken:
        answer.read()
    assert time.monotonic() - lost < ENDS_WITHIN
    assert broken.value.code in CODES, broken.value
    assert answer.ids == undisturbed[: len(answer.ids)], "what was sent was right"

"""From a request to token ids, on a thread of its own: a huge prompt must not stall decoding."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from fleetapp.engine import grammar
from fleetapp.engine.detokenize import TextStream
from fleetapp.engine.pipe import ChatMessage, Generate
from fleetapp.engine.text import as_fleet_error
from fleetapp.engine.vocabulary import Vocabulary
from fleetapp.errors import BadRequest, FleetError
from fleetapp.types import SamplingParams


class TextHost(Protocol):
    """What head and prompts need of a tokenizer; ``text.TokenizerHost`` is one."""

    def encode_prompt(self, text: str) -> list[int]:
        """Token ids of a raw prompt."""
        ...

    def encode_chat(self, messages: Sequence[ChatMessage]) -> list[int]:
        """Token ids of a conversation up to where the assistant answers."""
        ...

    def stream(self) -> TextStream:
        """A decoder for one answer."""
        ...

    def vocabulary(self) -> Vocabulary:
        """The bytes of every token; reading them the first time takes a while."""
        ...


@dataclass(frozen=True)
class Prepared:
    """A prompt is tokenised, or cannot be. ``ticket`` is the one it was submitted with."""

    request_id: str
    ticket: int
    ids: tuple[int, ...] = ()
    error: FleetError | None = None


class Prompts:
    """Tokenises in the order of submission.

    Args:
        text: its encoding methods are used on this thread only.
        vocab: token ids must lie below it.
        post: takes the results; called from the thread.
    """

    def __init__(self, text: TextHost, vocab: int, post: Callable[[Prepared], None]) -> None:
        self._text = text
        self._vocab = vocab
        self._post = post
        self._jobs: queue.SimpleQueue[tuple[int, Generate] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="tokenizer", daemon=True)
        self._thread.start()

    def submit(self, ticket: int, request: Generate) -> None:
        """Queue a request; its Prepared comes through ``post``."""
        self._jobs.put((ticket, request))

    def close(self) -> None:
        """End the thread after what is queued."""
        self._jobs.put(None)
        self._thread.join(5.0)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            ticket, request = job
            try:
                check_sampling(request.sampling, self._text, self._vocab)
                ids = prompt_ids(request, self._text, self._vocab)
                self._post(Prepared(request.request_id, ticket, ids))
            # The boundary to native tokenizer code: whatever it throws ends this request only.
            except Exception as exc:  # noqa: BLE001
                error = as_fleet_error(exc, "Reading the prompt")
                self._post(Prepared(request.request_id, ticket, error=error))


def check_sampling(params: SamplingParams, text: TextHost, vocab: int) -> None:
    """Refuse what a sampler cannot follow, as far as telling takes the vocabulary or time.

    Raises:
        BadRequest: names the field, or what is wrong with the grammar.
    """
    for name, ids in (("logit_bias", [i for i, _ in params.logit_bias]), ("stop", params.stop_ids)):
        if any(not 0 <= i < vocab for i in ids):
            raise BadRequest(
                f"A token id of {name} lies outside of this model's vocabulary of {vocab}."
            )
    if params.grammar is not None:
        grammar.check(params.grammar)
    if params.logprobs is not None:
        text.vocabulary()  # read now, so that the running batch need not wait for it


def prompt_ids(request: Generate, text: TextHost, vocab: int) -> tuple[int, ...]:
    """Token ids of a request's prompt, at least one.

    Raises:
        BadRequest: no prompt, several, or one that makes no sense; or an answer so far of tokens
            that there are none of.
        TemplateRefused, ContextTooLong: as the tokenizer says.
    """
    given = [p for p in (request.messages, request.prompt, request.token_ids) if p is not None]
    if len(given) != 1:
        raise BadRequest("A request needs exactly one of messages, prompt and token ids.")
    if request.messages is not None:
        ids = tuple(text.encode_chat(request.messages))
    elif request.prompt is not None:
        ids = tuple(text.encode_prompt(request.prompt))
    else:
        ids = request.token_ids or ()
        if any(not 0 <= i < vocab for i in ids):
            raise BadRequest(f"A token id lies outside of this model's vocabulary of {vocab}.")
    if any(not 0 <= i < vocab for i in request.said):
        raise BadRequest(
            f"A token of the answer so far lies outside of this model's vocabulary of {vocab}."
        )
    if not ids:
        raise BadRequest("The prompt is empty.", remedy="Send a prompt with text in it.")
    return ids

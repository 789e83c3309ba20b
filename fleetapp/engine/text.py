"""Text in, text out: tokenizer and chat template, streaming detokenizer, stop strings.

``StopMatcher`` is pure: it knows nothing of OpenVINO.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from fleetapp.engine.detokenize import StreamDecoder, Table, TableDecoder, TextStream, learn
from fleetapp.engine.pipe import ChatMessage
from fleetapp.engine.vocabulary import Vocabulary, read_vocabulary
from fleetapp.errors import (
    BadRequest,
    ContextTooLong,
    FleetError,
    NotAModel,
    RunnerFailed,
    TemplateRefused,
)

log = logging.getLogger(__name__)

_CLEANABLE: Final = "a , b do n't ."
_SAMPLES: Final = (
    "The quick brown fox, it didn't jump (twice)!\n\n\tx = [1, 2]  # ok ?\n",
    " Zwölf Boxkämpfer: çà et là: «l'été», 3,50 €…",
    "日本語のテキスト и русский текст, العربية हिन्दी ไทย 👩‍👩‍👧 🇫🇷",
)


class StopMatcher:
    """Holds back what may become a stop string; cuts exactly before one.

    The first stop string to be *completed* ends the text, of several completed by the same
    character the longest; how the text is cut into pieces does not matter. Knuth, Morris and
    Pratt (1977): the work per character does not depend on the length of the strings.

    Args:
        stops: none of them empty.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        if not all(stops):
            raise BadRequest(
                "A stop string is empty.", remedy="Remove it; every stop string needs a character."
            )
        self._stops = tuple(dict.fromkeys(stops))
        self._tables = tuple(_failure_table(s) for s in self._stops)
        self._matched = [0] * len(self._stops)
        self._held = ""
        self.stopped = False

    @property
    def holds(self) -> bool:
        """Something is held back, or cut off for good."""
        return self.stopped or bool(self._held)

    def push(self, text: str) -> str:
        """The part that is safe to show; after the stop string nothing any more."""
        if self.stopped:
            return ""
        if not self._stops:
            return text
        pending = self._held + text
        start = len(self._held)
        for index, char in enumerate(text, start):
            length = self._advance(char)
            if length:
                self.stopped = True
                self._held = ""
                return pending[: index + 1 - length]
        keep = max(self._matched)
        cut = len(pending) - keep
        self._held = pending[cut:]
        return pending[:cut]

    def flush(self) -> str:
        """What was held back and did not become a stop string, once."""
        held, self._held = self._held, ""
        self._matched = [0] * len(self._stops)
        return held

    def _advance(self, char: str) -> int:
        """Length of the longest stop string that this character completes, or 0."""
        longest = 0
        for i, (stop, table) in enumerate(zip(self._stops, self._tables, strict=True)):
            state = self._matched[i]
            while state and stop[state] != char:
                state = table[state - 1]
            if stop[state] == char:
                state += 1
            if state == len(stop):
                longest = max(longest, state)
                state = table[state - 1]
            self._matched[i] = state
        return longest


def _failure_table(pattern: str) -> tuple[int, ...]:
    table = [0] * len(pattern)
    state = 0
    for i in range(1, len(pattern)):
        while state and pattern[i] != pattern[state]:
            state = table[state - 1]
        if pattern[i] == pattern[state]:
            state += 1
        table[i] = state
    return tuple(table)


class TokenizerHost:
    """The tokenizer of a first stage. Encoding and decoding may happen on two threads.

    There are two native tokenizers, one only encodes and one only decodes: flags such as
    "add special tokens" are state inside a native tokenizer that all its calls share.

    Args:
        folder: holds openvino_tokenizer.xml and openvino_detokenizer.xml.
        chat_template: Jinja text; None takes the one inside the tokenizer, if any.
        context: prompts up to this many tokens will be asked for; used to find out whether
            the tokenizer itself cuts texts off.

    Raises:
        NotAModel: the folder holds no tokenizer that can be read.
    """

    def __init__(self, folder: Path, chat_template: str | None, *, context: int) -> None:
        import openvino_genai  # noqa: PLC0415 (slow, and only a head needs it)

        self._folder = folder
        self._encoding = threading.Lock()
        self._decoding = threading.Lock()
        self._limit: int | None = None
        try:
            self._encoder: Any = openvino_genai.Tokenizer(str(folder))
            self._decoder: Any = openvino_genai.Tokenizer(str(folder))
            self._prefix = self._special_prefix()
            sample = self._encode(_CLEANABLE)
            self._cleans_up = self.decode(sample) != _CLEANABLE
            self._limit = self._own_limit(context)
            self._table = None if self._cleans_up else self._learn()
        except RuntimeError as exc:
            reason = _first_line(exc)
            raise NotAModel(f"The tokenizer in {folder} cannot be read: {reason}") from exc
        self._template_error = ""
        self._use_template(chat_template)

    def encode_prompt(self, text: str) -> list[int]:
        """Token ids of a raw prompt, with the special tokens a text begins with (one BOS).

        Raises:
            BadRequest: nothing but white space, or not valid Unicode.
            ContextTooLong: longer than the tokenizer can count.
        """
        if not text.strip():
            raise BadRequest("The prompt is empty.", remedy="Send a prompt with text in it.")
        ids = self._encode(text)
        if self._prefix and ids[: len(self._prefix)] != self._prefix:
            ids = self._prefix + ids
        return ids

    def encode_chat(self, messages: Sequence[ChatMessage]) -> list[int]:
        """Token ids of a conversation up to where the assistant answers.

        Special tokens come from the template alone: a BOS that it writes stays the only one.

        Raises:
            BadRequest: no messages, a user turn without text, or not valid Unicode.
            TemplateRefused: the model's chat template rejects the conversation; says why.
            ContextTooLong: longer than the tokenizer can count.
        """
        return self._encode(self.render_chat(messages))

    def render_chat(self, messages: Sequence[ChatMessage]) -> str:
        """The text that the chat template makes of a conversation.

        Raises:
            BadRequest, TemplateRefused: as ``encode_chat``.
        """
        if not messages:
            raise BadRequest(
                "The list of messages is empty.", remedy="Send at least one user message."
            )
        for number, message in enumerate(messages, 1):
            if message.role == "user" and not message.content.strip():
                raise BadRequest(
                    f"Message {number} of {len(messages)} has no text.",
                    remedy="Leave empty messages out.",
                )
            _require_unicode(message.content)
            _require_unicode(message.role)
        if all(not m.content.strip() for m in messages):
            raise BadRequest("No message has any text.", remedy="Send at least one with text.")
        if self._template_error:
            raise TemplateRefused(
                self._template_error, remedy="Use the completions endpoint with a raw prompt."
            )
        history = [{"role": m.role, "content": m.content} for m in messages]
        try:
            with self._encoding:
                return str(self._encoder.apply_chat_template(history, add_generation_prompt=True))
        except RuntimeError as exc:
            raise TemplateRefused(
                f"The model's chat template refuses these messages: {_template_reason(exc)}.",
                remedy="Change the order or the roles of the messages.",
            ) from exc

    def count(self, text: str) -> int:
        """Number of tokens of a text, without special tokens.

        Raises:
            BadRequest: not valid Unicode.
            ContextTooLong: longer than the tokenizer can count.
        """
        return len(self._encode(text))

    def decode(self, ids: list[int]) -> str:
        """Text of all ids at once, special tokens left out."""
        with self._decoding:
            return str(self._decoder.decode(ids, skip_special_tokens=True))

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return read_vocabulary(self._folder)

    def vocabulary(self) -> Vocabulary:
        """The bytes of every token.

        Raises:
            Unsupported: this tokenizer does not tell.
        """
        return self._vocabulary

    def stream(self) -> TextStream:
        """A decoder for one answer."""
        if self._table is not None:
            return TableDecoder(self._table)
        return StreamDecoder(self.decode, cleans_up=self._cleans_up)

    def _learn(self) -> Table | None:
        try:
            vocabulary = self.vocabulary()
        except FleetError as exc:
            log.info("%s Text is decoded by its graph.", exc.message)
            return None
        table = learn(self.decode, vocabulary, [self._encode(text) for text in _SAMPLES])
        if table is None:
            log.info("The detokenizer of %s does more than join bytes.", self._folder)
        return table

    def _encode(self, text: str) -> list[int]:
        _require_unicode(text)
        with self._encoding:
            data = self._encoder.encode(text, add_special_tokens=False).input_ids.data
        ids = [int(i) for i in data.reshape(-1)]
        if self._limit is not None and len(ids) >= self._limit:
            raise ContextTooLong(
                f"The prompt has {self._limit} tokens or more, which is all that this model's "
                "tokenizer can take."
            )
        return ids

    def _special_prefix(self) -> list[int]:
        """What the tokenizer puts in front of a text by itself."""
        bare = self._encoder.encode("a", add_special_tokens=False).input_ids.data.reshape(-1)
        full = self._encoder.encode("a", add_special_tokens=True).input_ids.data.reshape(-1)
        for start in range(len(full) - len(bare) + 1):
            if (full[start : start + len(bare)] == bare).all():
                return [int(i) for i in full[:start]]
        return []

    def _own_limit(self, context: int) -> int | None:
        """Tokens at which the tokenizer cuts off silently, if it does so within the context.

        Converted tokenizers often carry a maximum that no argument lifts
        (openvino_genai 2026.4 with a tokenizer made from a GGUF file: 8192).
        """
        repeat, before = max(context, 16), -1
        while True:
            probe = "a b " * repeat
            length = int(self._encoder.encode(probe, add_special_tokens=False).input_ids.shape[1])
            if length > context:
                return None
            if length == before:
                return length
            before, repeat = length, repeat * 2

    def _use_template(self, chat_template: str | None) -> None:
        template = chat_template if chat_template is not None else self._encoder.chat_template
        if template:
            try:
                self._encoder.set_chat_template(_as_written(template))
            except RuntimeError as exc:
                self._template_error = (
                    f"The model's chat template cannot be used: {_template_reason(exc)}."
                )
        else:
            self._template_error = "This model has no chat template."


def _require_unicode(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise BadRequest(
            f"The text is not valid Unicode: half a character at position {exc.start}.",
            remedy="Send the text as UTF-8.",
        ) from exc


def _as_written(template: str) -> str:
    """A template that says no to system messages must be heard, not worked around.

    Minja (inside openvino_genai) tries every template with a needle for a system message; if it
    is missing from the result, system messages are moved into the user's turn from then on,
    without a word (google/minja, ``polyfill_system_role``). So the needle is answered here. Line
    break and empty expression keep the template's own first and last white space as it would be
    trimmed by itself, and one trailing line break is dropped as Jinja does.
    """
    return (
        "{% if messages and messages[0]['content'] == '<System Needle>' %}<System Needle>"
        "{% else %}\n" + template.removesuffix("\n") + "{{ '' }}{% endif %}"
    )


def _template_reason(exc: RuntimeError) -> str:
    """The template's own words out of Minja's message."""
    text = str(exc)
    match = re.search(r"Minja's error: (.+?)(?: at row \d+, column \d+:|\n|$)", text, re.DOTALL)
    reason = match.group(1) if match else re.split(r" at row \d+, column \d+|\n", text)[0]
    return " ".join(reason.split()).rstrip(".") or "no reason given"


def _first_line(exc: BaseException) -> str:
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(exc).__name__


def as_fleet_error(exc: Exception, doing: str) -> FleetError:
    """Keep a FleetError; wrap anything else that native code threw while ``doing`` something."""
    if isinstance(exc, FleetError):
        return exc
    return RunnerFailed(f"{doing} failed: {_first_line(exc)}")

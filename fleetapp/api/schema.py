"""What a request to the OpenAI-compatible API may say: from bytes to a checked value.

A feature that is not offered is refused by name, never ignored: an answer that silently lacks
what was asked for is worse than an error. Fields without influence on the answer are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from fleetapp.api.fields import bad, number, shown
from fleetapp.api.sampling import (
    MAX_INT,
    SamplingFields,
    alternatives,
    choices,
    sampling_params,
)
from fleetapp.engine.pipe import ChatMessage
from fleetapp.errors import BadRequest, Unsupported
from fleetapp.types import SamplingParams

COMPLETION_MAX_TOKENS = 16
"""OpenAI's default for ``/v1/completions``; chat answers run as long as they fit."""

HARMLESS = frozenset(
    {
        "user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
        "prompt_cache_retention", "prompt_cache_options", "parallel_tool_calls",
    }
)  # fmt: skip
"""They steer billing, storage or routing at OpenAI, or tools that a request cannot name here."""

Neutral = Callable[[Any], bool]


def _one_of(*values: object) -> Neutral:
    return lambda value: any(type(value) is type(v) and value == v for v in values)


NOT_OFFERED: Mapping[str, tuple[Neutral, str]] = {
    "tools": (_one_of([]), "Calling tools"),
    "tool_choice": (_one_of("none"), "Calling tools"),
    "functions": (_one_of([]), "Calling functions"),
    "function_call": (_one_of("none"), "Calling functions"),
    "best_of": (_one_of(1), "Choosing the best of several answers"),
    "modalities": (_one_of(["text"]), "Anything but text"),
    "audio": (_one_of(), "Audio"),
    "prediction": (_one_of(), "A predicted output"),
    "reasoning_effort": (_one_of("none"), "A reasoning effort"),
    "verbosity": (_one_of("medium"), "A verbosity"),
    "web_search_options": (_one_of(), "Searching the web"),
    "moderation": (_one_of(), "Moderation"),
    "echo": (_one_of(False), "Repeating the prompt in the answer"),
    "suffix": (_one_of(""), "Text after the insertion"),
}
"""Field -> (which values mean nothing and pass, what is not offered)."""


_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
"""OpenAI renamed system to developer; chat templates know only the older word."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_MISSING = re.compile(r"missing required field '([^']+)'")


class _StreamOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class _Common(SamplingFields, frozen=True, kw_only=True):
    model: str
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    max_tokens: int | None = None
    return_token_ids: bool | None = None


class _Chat(_Common, frozen=True, kw_only=True):
    messages: list[dict[str, Any]]
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None


class _Completion(_Common, frozen=True, kw_only=True):
    prompt: str | list[Any]
    logprobs: int | None = None


_T = TypeVar("_T", bound=_Common)


class Call(msgspec.Struct, frozen=True):
    """A request that makes sense. Exactly one of ``messages``, ``prompt``, ``token_ids`` is set."""

    model: str
    sampling: SamplingParams
    stream: bool
    include_usage: bool
    return_token_ids: bool
    n: int = 1
    messages: tuple[ChatMessage, ...] | None = None
    prompt: str | None = None
    token_ids: tuple[int, ...] | None = None


def parse_chat(body: bytes) -> Call:
    """Check the body of ``POST /v1/chat/completions``.

    Raises:
        Unsupported: it asks for something known that is not offered.
        BadRequest: anything else; ``param`` names the field.
    """
    asked = _convert(body, _Chat)
    if (
        asked.max_tokens is not None
        and asked.max_completion_tokens is not None
        and asked.max_tokens != asked.max_completion_tokens
    ):
        raise bad("max_tokens", "contradicts 'max_completion_tokens'; send one of them")
    name = "max_tokens" if asked.max_completion_tokens is None else "max_completion_tokens"
    limit = _max_tokens(name, getattr(asked, name))
    if not asked.messages:
        raise bad("messages", "is empty", "Send at least one message with some text.")
    messages = tuple(_message(i, m) for i, m in enumerate(asked.messages))
    top = alternatives("top_logprobs", asked.top_logprobs)
    if top and not asked.logprobs:
        raise bad("top_logprobs", "is only allowed together with 'logprobs': true")
    return _call(asked, limit, top if asked.logprobs else None, messages=messages)


def parse_completion(body: bytes) -> Call:
    """Check the body of ``POST /v1/completions``; raises like ``parse_chat``."""
    asked = _convert(body, _Completion)
    limit = (
        COMPLETION_MAX_TOKENS
        if asked.max_tokens is None
        else _max_tokens("max_tokens", asked.max_tokens)
    )
    logprobs = None if asked.logprobs is None else alternatives("logprobs", asked.logprobs)
    prompt = asked.prompt
    if isinstance(prompt, list) and prompt and all(isinstance(p, str | list) for p in prompt):
        if len(prompt) > 1:
            raise Unsupported(
                "More than one prompt per request is not offered by this version.",
                remedy="Send one request per prompt; they run side by side.",
                param="prompt",
            )
        prompt = prompt[0]
    if isinstance(prompt, str):
        if not prompt.strip():
            raise bad("prompt", "is empty", "Send some text.")
        return _call(asked, limit, logprobs, prompt=prompt)
    return _call(asked, limit, logprobs, token_ids=_token_ids(prompt))


def _call(asked: _Common, max_tokens: int, logprobs: int | None, **prompt: Any) -> Call:
    if not asked.model.strip():
        raise bad("model", "is empty", "'GET /v1/models' lists what can be asked.")
    if asked.stream_options is not None and not asked.stream:
        raise bad("stream_options", "is only allowed together with 'stream': true")
    options = asked.stream_options or _StreamOptions()
    return Call(
        model=asked.model,
        sampling=sampling_params(asked, max_tokens, logprobs),
        stream=bool(asked.stream),
        include_usage=bool(options.include_usage),
        return_token_ids=bool(asked.return_token_ids),
        n=choices(asked.n),
        **prompt,
    )


def _convert(body: bytes, kind: type[_T]) -> _T:
    raw = parse_object(body)
    known = {f.encode_name for f in msgspec.structs.fields(kind)}
    fields: dict[str, Any] = {}
    for name, value in raw.items():
        if name in known:
            fields[name] = value
        elif value is not None and name not in HARMLESS:
            _refuse_unless_neutral(name, value)
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise explain(error) from error


def _refuse_unless_neutral(name: str, value: object) -> None:
    field = shown(name)
    if name not in NOT_OFFERED:
        raise Unsupported(
            f"The field '{field}' is not known to this version.",
            remedy="Leave it out.",
            param=field,
        )
    neutral, feature = NOT_OFFERED[name]
    if not neutral(value):
        raise Unsupported(
            f"{feature} ('{name}') is not offered by this version.",
            remedy=f"Leave '{name}' out.",
            param=name,
        )


def parse_object(body: bytes) -> dict[str, Any]:
    """A JSON object, or the reason why the bytes are not one.

    Raises:
        BadRequest: broken UTF-8, broken JSON, half a surrogate pair, or not an object.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRequest(
            f"The body is not valid UTF-8 (byte {error.start}).", remedy="Send UTF-8."
        ) from error
    try:
        value = msgspec.json.decode(body)
    except RecursionError as error:
        raise BadRequest("The body is nested too deeply.", remedy="Send plain fields.") from error
    except msgspec.MsgspecError as error:
        if _SURROGATE.search(text):
            reason = "an escape \\ud800 to \\udfff in it is half of a surrogate pair"
        else:
            reason = str(error).removeprefix("JSON is malformed: ").lower()
        raise BadRequest(
            f"The body is not valid JSON: {reason}.", remedy="Send one JSON object."
        ) from error
    if not isinstance(value, dict):
        raise BadRequest("The body is not a JSON object.", remedy="Send one JSON object.")
    return value


def explain(error: msgspec.ValidationError) -> BadRequest:
    """Make "Expected `int`, got `str` - at `$.seed`" a sentence that names the field."""
    what, _, where = str(error).partition(" - at `$")
    what = what.replace("`", "'").replace(" | null", "")
    missing = _MISSING.search(what)
    path = where.removesuffix("`").removeprefix(".")
    if missing:
        field = f"{path}.{missing[1]}" if path else missing[1]
        return bad(field, "is missing")
    if path:
        return bad(shown(path), f"is wrong: {what[:1].lower()}{what[1:]}")
    return BadRequest(f"The request makes no sense: {what}.")


def _message(index: int, raw: dict[str, Any]) -> ChatMessage:
    where = f"messages[{index}]"
    role = raw.get("role")
    if not isinstance(role, str):
        raise bad(f"{where}.role", "is missing or not a string")
    if role in ("tool", "function"):
        raise Unsupported(
            f"The role '{role}' ({where}) belongs to tools, which this version does not offer.",
            remedy="Send messages of the roles system, user and assistant.",
            param=f"{where}.role",
        )
    if role not in _ROLES:
        raise bad(
            f"{where}.role",
            f"is '{shown(role)}', which is no known role",
            "Use system, user or assistant.",
        )
    for name, value in raw.items():
        if name not in ("role", "content") and value is not None and value != []:
            raise Unsupported(
                f"The message field '{shown(name)}' ({where}) is not offered by this version.",
                remedy="Send only role and content.",
                param=f"{where}.{shown(name)}",
            )
    content = _content(f"{where}.content", raw.get("content"))
    if not content.strip():
        raise bad(f"{where}.content", "is empty", "Send some text, or leave the message out.")
    return ChatMessage(_ROLES[role], content)


def _content(where: str, content: object) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise bad(where, "is neither a string nor a list of parts")
    return "".join(_part(f"{where}[{i}]", part) for i, part in enumerate(content))


def _part(where: str, part: object) -> str:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise bad(where, "is not a part with a 'type'")
    kind = part["type"]
    if kind != "text":
        raise Unsupported(
            f"Content of the type '{shown(kind)}' ({where}) is not offered by this version.",
            remedy="Send text.",
            param=where,
        )
    text = part.get("text")
    if not isinstance(text, str):
        raise bad(f"{where}.text", "is missing or not a string")
    return text


def _token_ids(prompt: object) -> tuple[int, ...]:
    if not isinstance(prompt, list) or not all(type(t) is int for t in prompt):
        raise bad("prompt", "is neither a text nor a list of token ids")
    if not prompt:
        raise bad("prompt", "is empty", "Send some text.")
    if min(prompt) < 0 or max(prompt) > MAX_INT:
        raise bad("prompt", "holds a number that is no token id")
    return tuple(prompt)


def _max_tokens(name: str, value: int | None) -> int:
    if value is None:
        return 0
    if value < 1:
        wrong = f"is {number(value)}, and an answer has at least one token"
        raise bad(name, wrong, "Send 1 or more, or leave it out.")
    return min(value, MAX_INT)

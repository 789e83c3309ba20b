"""What a request to the OpenAI-compatible API may say: from bytes to a checked value.

A feature that is not offered is refused by name, never ignored: an answer that silently lacks
what was asked for is worse than an error. Fields without influence on the answer are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from fleetapp.engine.pipe import ChatMessage
from fleetapp.errors import BadRequest, Unsupported
from fleetapp.types import SamplingParams

MAX_STOP = 16
MAX_STOP_LENGTH = 1000
MAX_INT = 2**31 - 1
DEFAULT_TEMPERATURE = 0.0
"""Greedy unless asked otherwise: the same question gets the same answer."""
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


def _zero(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 0


def _text_format(value: object) -> bool:
    return isinstance(value, dict) and value == {"type": "text"}


NOT_OFFERED: Mapping[str, tuple[Neutral, str]] = {
    "tools": (_one_of([]), "Calling tools"),
    "tool_choice": (_one_of("none"), "Calling tools"),
    "functions": (_one_of([]), "Calling functions"),
    "function_call": (_one_of("none"), "Calling functions"),
    "response_format": (_text_format, "A response format other than text"),
    "logprobs": (_one_of(False), "Returning log probabilities"),
    "top_logprobs": (_one_of(0), "Returning log probabilities"),
    "n": (_one_of(1), "More than one answer per request"),
    "best_of": (_one_of(1), "Choosing the best of several answers"),
    "presence_penalty": (_zero, "A presence penalty"),
    "frequency_penalty": (_zero, "A frequency penalty"),
    "repetition_penalty": (_one_of(1, 1.0), "A repetition penalty"),
    "logit_bias": (_one_of({}), "Biasing single tokens"),
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


class _Common(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    ignore_eos: bool | None = None
    return_token_ids: bool | None = None


class _Chat(_Common, frozen=True, kw_only=True):
    messages: list[dict[str, Any]]
    max_completion_tokens: int | None = None


class _Completion(_Common, frozen=True, kw_only=True):
    prompt: str | list[Any]


_T = TypeVar("_T", bound=_Common)


class Call(msgspec.Struct, frozen=True):
    """A request that makes sense. Exactly one of ``messages``, ``prompt``, ``token_ids`` is set."""

    model: str
    sampling: SamplingParams
    stream: bool
    include_usage: bool
    return_token_ids: bool
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
        raise _bad("max_tokens", "contradicts 'max_completion_tokens'; send one of them")
    name = "max_tokens" if asked.max_completion_tokens is None else "max_completion_tokens"
    limit = _max_tokens(name, getattr(asked, name))
    if not asked.messages:
        raise _bad("messages", "is empty", "Send at least one message with some text.")
    messages = tuple(_message(i, m) for i, m in enumerate(asked.messages))
    return _call(asked, limit, messages=messages)


def parse_completion(body: bytes) -> Call:
    """Check the body of ``POST /v1/completions``; raises like ``parse_chat``."""
    asked = _convert(body, _Completion)
    limit = (
        COMPLETION_MAX_TOKENS
        if asked.max_tokens is None
        else _max_tokens("max_tokens", asked.max_tokens)
    )
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
            raise _bad("prompt", "is empty", "Send some text.")
        return _call(asked, limit, prompt=prompt)
    return _call(asked, limit, token_ids=_token_ids(prompt))


def _call(asked: _Common, max_tokens: int, **prompt: Any) -> Call:
    if not asked.model.strip():
        raise _bad("model", "is empty", "'GET /v1/models' lists what can be asked.")
    if asked.stream_options is not None and not asked.stream:
        raise _bad("stream_options", "is only allowed together with 'stream': true")
    options = asked.stream_options or _StreamOptions()
    temperature = _within("temperature", asked.temperature, 0.0, 2.0, DEFAULT_TEMPERATURE)
    top_p = _within("top_p", asked.top_p, 0.0, 1.0, 1.0)
    if top_p == 0:  # only the likeliest token is left, which is what temperature 0 says
        temperature, top_p = 0.0, 1.0
    top_k = _within("top_k", asked.top_k, -1, MAX_INT, 0)
    return Call(
        model=asked.model,
        sampling=SamplingParams(
            temperature=temperature,
            top_k=max(int(top_k), 0),  # other servers write -1 for "off"
            top_p=top_p,
            seed=_seed(asked.seed),
            max_tokens=max_tokens,
            stop=_stop(asked.stop),
            ignore_eos=bool(asked.ignore_eos),
        ),
        stream=bool(asked.stream),
        include_usage=bool(options.include_usage),
        return_token_ids=bool(asked.return_token_ids),
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
    shown = _shown(name)
    if name not in NOT_OFFERED:
        raise Unsupported(
            f"The field '{shown}' is not known to this version.",
            remedy="Leave it out.",
            param=shown,
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
        return _bad(field, "is missing")
    if path:
        return _bad(_shown(path), f"is wrong: {what[:1].lower()}{what[1:]}")
    return BadRequest(f"The request makes no sense: {what}.")


def _message(index: int, raw: dict[str, Any]) -> ChatMessage:
    where = f"messages[{index}]"
    role = raw.get("role")
    if not isinstance(role, str):
        raise _bad(f"{where}.role", "is missing or not a string")
    if role in ("tool", "function"):
        raise Unsupported(
            f"The role '{role}' ({where}) belongs to tools, which this version does not offer.",
            remedy="Send messages of the roles system, user and assistant.",
            param=f"{where}.role",
        )
    if role not in _ROLES:
        raise _bad(
            f"{where}.role",
            f"is '{_shown(role)}', which is no known role",
            "Use system, user or assistant.",
        )
    for name, value in raw.items():
        if name not in ("role", "content") and value is not None and value != []:
            raise Unsupported(
                f"The message field '{_shown(name)}' ({where}) is not offered by this version.",
                remedy="Send only role and content.",
                param=f"{where}.{_shown(name)}",
            )
    content = _content(f"{where}.content", raw.get("content"))
    if not content.strip():
        raise _bad(f"{where}.content", "is empty", "Send some text, or leave the message out.")
    return ChatMessage(_ROLES[role], content)


def _content(where: str, content: object) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise _bad(where, "is neither a string nor a list of parts")
    return "".join(_part(f"{where}[{i}]", part) for i, part in enumerate(content))


def _part(where: str, part: object) -> str:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise _bad(where, "is not a part with a 'type'")
    kind = part["type"]
    if kind != "text":
        raise Unsupported(
            f"Content of the type '{_shown(kind)}' ({where}) is not offered by this version.",
            remedy="Send text.",
            param=where,
        )
    text = part.get("text")
    if not isinstance(text, str):
        raise _bad(f"{where}.text", "is missing or not a string")
    return text


def _token_ids(prompt: object) -> tuple[int, ...]:
    if not isinstance(prompt, list) or not all(type(t) is int for t in prompt):
        raise _bad("prompt", "is neither a text nor a list of token ids")
    if not prompt:
        raise _bad("prompt", "is empty", "Send some text.")
    if min(prompt) < 0 or max(prompt) > MAX_INT:
        raise _bad("prompt", "holds a number that is no token id")
    return tuple(prompt)


def _max_tokens(name: str, value: int | None) -> int:
    if value is None:
        return 0
    if value < 1:
        raise _bad(name, f"is {_number(value)}, and an answer has at least one token")
    return min(value, MAX_INT)


def _stop(value: str | list[str] | None) -> tuple[str, ...]:
    stops = [value] if isinstance(value, str) else value or []
    if len(stops) > MAX_STOP:
        raise _bad("stop", f"has {len(stops)} strings, and {MAX_STOP} is the most")
    if not all(stops):
        raise _bad("stop", "has an empty string in it", "Leave it out.")
    if any(len(s) > MAX_STOP_LENGTH for s in stops):
        raise _bad("stop", f"has a string of more than {MAX_STOP_LENGTH} characters")
    return tuple(stops)


def _seed(value: int | None) -> int | None:
    if value is not None and not -(2**63) <= value < 2**63:
        raise _bad("seed", "does not fit into 64 bits")
    return value


def _within(name: str, value: float | None, low: float, high: float, default: float) -> float:
    if value is None:
        return default
    if not low <= value <= high:
        raise _bad(name, f"is {_number(value)}, and must be between {low:g} and {high:g}")
    return value


def _number(value: float) -> str:
    return _shown(str(value)) if abs(value) < 2**70 else "out of any range"


def _shown(text: str) -> str:
    """Something of the request, fit to be quoted in a sentence."""
    short = text if len(text) <= 40 else text[:40] + "…"
    return "".join(c if c.isprintable() else "�" for c in short)


def _bad(field: str, wrong: str, remedy: str = "") -> BadRequest:
    return BadRequest(f"The field '{field}' {wrong}.", remedy=remedy, param=field)

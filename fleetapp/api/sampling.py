"""The fields of a request that say how tokens are chosen and what an answer must look like."""

from __future__ import annotations

import json
from typing import Any, Final, cast

import msgspec

from fleetapp.api.fields import bad, number, shown, within
from fleetapp.errors import Unsupported
from fleetapp.types import Grammar, Priority, SamplingParams

MAX_STOP = 16
MAX_STOP_LENGTH = 1000
MAX_STOP_IDS = 64
MAX_BIASES = 1024
MAX_LOGPROBS = 20
MAX_CHOICES = 16
MAX_INT = 2**31 - 1
DEFAULT_TEMPERATURE = 0.0
"""Greedy unless asked otherwise: the same question gets the same answer."""
PRIORITIES: Final = ("interactive", "batch")


class SamplingFields(msgspec.Struct, frozen=True, kw_only=True):
    """What both endpoints know under the same names."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    n: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    response_format: dict[str, Any] | None = None
    regex: str | None = None
    priority: str | None = None


def sampling_params(asked: SamplingFields, max_tokens: int, logprobs: int | None) -> SamplingParams:
    """The engine's settings for one answer.

    Args:
        asked: the fields.
        max_tokens: as the engine takes it.
        logprobs: alternatives to report, None for no report at all.

    Raises:
        Unsupported: a response format that is not offered.
        BadRequest: anything else; ``param`` names the field.
    """
    temperature = within("temperature", asked.temperature, 0.0, 2.0, DEFAULT_TEMPERATURE)
    top_p = within("top_p", asked.top_p, 0.0, 1.0, 1.0)
    if top_p == 0:  # only the likeliest token is left, which is what temperature 0 says
        temperature, top_p = 0.0, 1.0
    top_k = within("top_k", asked.top_k, -1, MAX_INT, 0)
    repetition = within("repetition_penalty", asked.repetition_penalty, 0.0, 10.0, 1.0)
    if repetition == 0:
        raise bad("repetition_penalty", "is 0, and must be above it", "1 switches it off.")
    return SamplingParams(
        temperature=temperature,
        top_k=max(int(top_k), 0),  # other servers write -1 for "off"
        top_p=top_p,
        min_p=within("min_p", asked.min_p, 0.0, 1.0, 0.0),
        seed=_seed(asked.seed),
        max_tokens=max_tokens,
        stop=_stop(asked.stop),
        stop_ids=_stop_ids(asked.stop_token_ids or []),
        ignore_eos=bool(asked.ignore_eos),
        repetition_penalty=repetition,
        presence_penalty=within("presence_penalty", asked.presence_penalty, -2.0, 2.0, 0.0),
        frequency_penalty=within("frequency_penalty", asked.frequency_penalty, -2.0, 2.0, 0.0),
        logit_bias=_logit_bias(asked.logit_bias or {}),
        logprobs=logprobs,
        grammar=_grammar(asked.response_format, asked.regex),
        priority=_priority(asked.priority),
    )


def choices(value: int | None) -> int:
    """How many answers are wanted.

    Raises:
        BadRequest: none, or too many.
    """
    return int(within("n", value, 1, MAX_CHOICES, 1))


def alternatives(name: str, value: int | None) -> int:
    """How many of the likeliest tokens are to be reported.

    Raises:
        BadRequest: fewer than none, or too many.
    """
    return int(within(name, value, 0, MAX_LOGPROBS, 0))


def _stop(value: str | list[str] | None) -> tuple[str, ...]:
    stops = [value] if isinstance(value, str) else value or []
    if len(stops) > MAX_STOP:
        raise bad("stop", f"has {len(stops)} strings, and {MAX_STOP} is the most")
    if not all(stops):
        raise bad("stop", "has an empty string in it", "Leave it out.")
    if any(len(s) > MAX_STOP_LENGTH for s in stops):
        raise bad("stop", f"has a string of more than {MAX_STOP_LENGTH} characters")
    return tuple(stops)


def _stop_ids(ids: list[int]) -> tuple[int, ...]:
    if len(ids) > MAX_STOP_IDS:
        raise bad("stop_token_ids", f"has {len(ids)} ids, and {MAX_STOP_IDS} is the most")
    if any(not 0 <= i <= MAX_INT for i in ids):
        raise bad("stop_token_ids", "holds a number that is no token id")
    return tuple(ids)


def _logit_bias(biases: dict[str, float]) -> tuple[tuple[int, float], ...]:
    if len(biases) > MAX_BIASES:
        raise bad("logit_bias", f"has {len(biases)} entries, and {MAX_BIASES} is the most")
    found: dict[int, float] = {}
    for name, bias in biases.items():
        if not (name.isascii() and name.isdigit() and len(name) <= 10 and int(name) <= MAX_INT):
            raise bad("logit_bias", f"has the key '{shown(name)}', which is no token id")
        if not -100 <= bias <= 100:
            raise bad("logit_bias", f"has the value {number(bias)}, and ±100 is the most")
        found[int(name)] = bias
    return tuple(found.items())


def _seed(value: int | None) -> int | None:
    if value is not None and not -(2**63) <= value < 2**63:
        raise bad("seed", "does not fit into 64 bits")
    return value


def _priority(value: str | None) -> Priority:
    if value is None:
        return "interactive"
    if value not in PRIORITIES:
        raise bad("priority", f"is '{shown(value)}', and must be interactive or batch")
    return cast("Priority", value)


def _grammar(form: dict[str, Any] | None, regex: str | None) -> Grammar | None:
    grammar = None if form is None else _response_format(form)
    if regex is None:
        return grammar
    if grammar is not None:
        raise bad("regex", "contradicts 'response_format'; send one of them")
    return Grammar("regex", regex)


def _response_format(form: dict[str, Any]) -> Grammar | None:
    kind = form.get("type")
    match kind:
        case "text":
            return None
        case "json_object":
            return Grammar("json_schema", '{"type": "object"}')
        case "json_schema":
            inner = form.get("json_schema")
            schema = inner.get("schema") if isinstance(inner, dict) else None
            if not isinstance(schema, dict):
                raise bad("response_format.json_schema.schema", "is missing or no JSON object")
            return Grammar("json_schema", json.dumps(schema, ensure_ascii=False))
        case str():
            raise Unsupported(
                f"The response format '{shown(kind)}' is not offered by this version.",
                remedy="Use text, json_object or json_schema.",
                param="response_format.type",
            )
    raise bad("response_format.type", "is missing or not a string")

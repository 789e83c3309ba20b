"""Whatever is sent, the answer is a 4xx that says why, and the next request is fine."""

import asyncio
import gzip
import json
import zlib
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetapp.api import schema
from fleetapp.errors import BadRequest

HEADERS = {"Authorization": "Bearer fleet-test", "Content-Type": "application/json"}
USER = {"role": "user", "content": "hello"}
CHAT: dict[str, Any] = {"model": "tiny", "messages": [USER]}
TEXT: dict[str, Any] = {"model": "tiny", "prompt": "hello"}


def refused(fields: dict[str, Any], base: dict[str, Any] = CHAT) -> BadRequest:
    parse = schema.parse_chat if base is CHAT else schema.parse_completion
    body = {k: v for k, v in {**base, **fields}.items() if v is not ...}
    with pytest.raises(BadRequest) as caught:
        parse(json.dumps(body).encode())
    error = caught.value
    assert error.message.endswith(".")
    assert error.message.isprintable()
    assert len(error.message) < 250
    return error


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": ...}, "model"),
        ({"model": " "}, "model"),
        ({"model": 7}, "model"),
        ({"messages": ...}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": ["hello"]}, "messages[0]"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages[0].role"),
        ({"messages": [USER, {"role": "user"}]}, "messages[1].content"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": " \n "}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": []}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content[0]"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            "messages[0].content[0].text",
        ),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_completion_tokens": 0}, "max_completion_tokens"),
        ({"max_tokens": 1, "max_completion_tokens": 2}, "max_tokens"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": 1.1}, "top_p"),
        ({"top_p": -1}, "top_p"),
        ({"top_k": -2}, "top_k"),
        ({"seed": 2**63}, "seed"),
        ({"seed": 10**400}, "seed"),
        ({"seed": "x"}, "seed"),
        ({"stop": ""}, "stop"),
        ({"stop": ["a", ""]}, "stop"),
        ({"stop": ["a"] * 17}, "stop"),
        ({"stop": ["a" * 2000]}, "stop"),
        ({"stop": [1]}, "stop[0]"),
        ({"stop": {}}, "stop"),
        ({"n": 0}, "n"),
        ({"n": 17}, "n"),
        ({"n": True}, "n"),
        ({"n": "1"}, "n"),
        ({"min_p": 1.5}, "min_p"),
        ({"presence_penalty": 2.5}, "presence_penalty"),
        ({"presence_penalty": True}, "presence_penalty"),
        ({"frequency_penalty": -3}, "frequency_penalty"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
        ({"repetition_penalty": 11}, "repetition_penalty"),
        ({"logit_bias": {"hello": 1}}, "logit_bias"),
        ({"logit_bias": {"-1": 1}}, "logit_bias"),
        ({"logit_bias": {"99999999999": 1}}, "logit_bias"),
        ({"logit_bias": {"5": 101}}, "logit_bias"),
        ({"logit_bias": {"5": "much"}}, "logit_bias[...]"),
        ({"logit_bias": {str(i): 0 for i in range(2000)}}, "logit_bias"),
        ({"stop_token_ids": [-1]}, "stop_token_ids"),
        ({"stop_token_ids": ["a"]}, "stop_token_ids[0]"),
        ({"stop_token_ids": [1] * 65}, "stop_token_ids"),
        ({"logprobs": 3}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"logprobs": False, "top_logprobs": 3}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"priority": "urgent"}, "priority"),
        ({"priority": 1}, "priority"),
        ({"regex": 5}, "regex"),
        ({"regex": "a", "response_format": {"type": "json_object"}}, "regex"),
        ({"response_format": "text"}, "response_format"),
        ({"response_format": {}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": True}}},
            "response_format.json_schema.schema",
        ),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
    ],
)
def test_nonsense_names_its_field(fields: dict[str, Any], param: str) -> None:
    error = refused(fields)
    assert error.code == "bad_request"
    assert error.param == param
    assert param.rsplit(".", maxsplit=1)[-1] in error.message


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"tool_choice": "auto"},
        {"functions": [{"name": "f"}]},
        {"response_format": {"type": "grammar", "grammar": "root ::= x"}},
        {"modalities": ["text", "audio"]},
        {"audio": {"voice": "alloy"}},
        {"prediction": {"type": "content", "content": "x"}},
        {"reasoning_effort": "high"},
        {"web_search_options": {}},
        {"made_up": 1},
        {"messages": [{"role": "tool", "content": "x", "tool_call_id": "1"}]},
        {"messages": [{"role": "user", "content": "x", "name": "anna"}]},
        {"messages": [{"role": "assistant", "content": "x", "tool_calls": [{"id": "1"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
        {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
    ],
)
def test_what_is_not_offered_is_refused_by_name(fields: dict[str, Any]) -> None:
    assert refused(fields).code == "unsupported"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"prompt": ""}, "bad_request"),
        ({"prompt": "  "}, "bad_request"),
        ({"prompt": []}, "bad_request"),
        ({"prompt": [""]}, "bad_request"),
        ({"prompt": [[]]}, "bad_request"),
        ({"prompt": [1, -1]}, "bad_request"),
        ({"prompt": [1, 2**40]}, "bad_request"),
        ({"prompt": [1, "a"]}, "bad_request"),
        ({"prompt": [True]}, "bad_request"),
        ({"prompt": None}, "bad_request"),
        ({"prompt": ["a", "b"]}, "unsupported"),
        ({"prompt": [[1], [2]]}, "unsupported"),
        ({"echo": True}, "unsupported"),
        ({"suffix": "x"}, "unsupported"),
        ({"best_of": 2}, "unsupported"),
        ({"logprobs": 21}, "bad_request"),
        ({"logprobs": True}, "bad_request"),
        ({"logprobs": 1, "top_logprobs": 2}, "unsupported"),
    ],
)
def test_completions_refuse_as_well(fields: dict[str, Any], code: str) -> None:
    assert refused(fields, TEXT).code == code


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 1, "presence_penalty": 0, "frequency_penalty": 0.0, "logit_bias": {}},
        {"tools": [], "tool_choice": "none", "response_format": {"type": "text"}},
        {"repetition_penalty": 1, "min_p": 0, "priority": "interactive", "stop_token_ids": []},
        {"logprobs": False, "top_logprobs": 0, "stop": None, "seed": None, "n": None},
        {"user": "x", "metadata": {}, "store": True, "service_tier": "auto", "made_up": None},
        {"messages": [{"role": "assistant", "content": "x", "tool_calls": None, "refusal": None}]},
    ],
)
def test_neutral_values_pass(fields: dict[str, Any]) -> None:
    assert schema.parse_chat(json.dumps({**CHAT, **fields}).encode()).model == "tiny"


def test_huge_max_tokens_are_left_to_the_engine_to_clip() -> None:
    call = schema.parse_chat(json.dumps({**CHAT, "max_tokens": 10**30}).encode())
    assert call.sampling.max_tokens == schema.MAX_INT


def test_no_top_p_at_all_means_greedy() -> None:
    call = schema.parse_chat(json.dumps({**CHAT, "top_p": 0, "temperature": 1}).encode())
    assert (call.sampling.temperature, call.sampling.top_p) == (0.0, 1.0)


BODIES = {
    "empty": (b"", "valid JSON"),
    "text": (b"hello", "valid JSON"),
    "cut": (b'{"model": "tiny"', "valid JSON"),
    "list": (b"[]", "not a JSON object"),
    "latin-1": (b'{"model": "caf\xe9"}', "valid UTF-8 (byte 14)"),
    "lone surrogate": (b'{"model": "a\\ud800b"}', "surrogate"),
    "swapped surrogates": (b'{"model": "\\udc00\\ud800 and more text"}', "surrogate"),
    "nan": (b'{"temperature": NaN}', "valid JSON"),
    "infinite": (b'{"temperature": 1e999}', "valid JSON"),
    "deep": (b'{"a":' + b"[" * 30000, "nested too deeply"),
    "bom": (b"\xef\xbb\xbf{}", "valid JSON"),
}


@pytest.mark.parametrize("name", BODIES)
async def test_bytes_that_are_no_request(url: str, name: str) -> None:
    body, reason = BODIES[name]
    async with aiohttp.ClientSession(headers=HEADERS) as session:
        for path in ("/v1/chat/completions", "/v1/completions"):
            async with session.post(url + path, data=body) as response:
                error = (await response.json())["error"]
                assert response.status == 400
                assert reason in error["message"]
                assert set(error) == {"message", "type", "param", "code", "remedy"}
        async with session.post(f"{url}/v1/chat/completions", json=CHAT) as response:
            assert response.status == 200


@pytest.mark.parametrize(
    ("headers", "data", "status"),
    [
        ({"Content-Type": "text/plain"}, b"{}", 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, b"{}", 415),
        ({}, b" " * 65 * 1024, 413),
        ({"Content-Encoding": "gzip"}, gzip.compress(b" " * 2**20), 413),
        ({"Content-Encoding": "deflate"}, zlib.compress(json.dumps(CHAT).encode()), 200),
        ({"Content-Encoding": "gzip"}, b"not gzip at all", 400),
        ({"Authorization": ""}, b"{}", 401),
    ],
)
async def test_the_envelope_is_checked(url: str, headers: dict, data: bytes, status: int) -> None:
    async with (
        aiohttp.ClientSession(headers=HEADERS | headers) as session,
        session.post(f"{url}/v1/chat/completions", data=data) as response,
    ):
        assert response.status == status
        if status != 200:
            assert (await response.json())["error"]["message"].endswith(".")


async def test_a_body_without_declared_length_is_bounded_too(url: str) -> None:
    async def endless():
        for _ in range(200):
            yield b" " * 1024

    async with (
        aiohttp.ClientSession(headers=HEADERS) as session,
        session.post(f"{url}/v1/chat/completions", data=endless()) as response,
    ):
        assert response.status == 413


async def test_a_dribbled_body_ends_in_408(url: str) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
        b"Content-Type: application/json\r\nAuthorization: Bearer fleet-test\r\n\r\n{"
    )
    async with asyncio.timeout(5):
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 408 " in head
        assert b"too_slow" in await reader.readuntil(b"}}")
    writer.close()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v2/nothing", 404), ("GET", "/v1/chat/completions", 405), ("GET", "/", 404)],
)
async def test_wrong_paths_and_methods(url: str, method: str, path: str, status: int) -> None:
    async with (
        aiohttp.ClientSession(headers=HEADERS) as session,
        session.request(method, url + path) as response,
    ):
        assert response.status == status
        assert (await response.json())["error"]["type"] == "invalid_request_error"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
FIELDS = sorted(
    {*schema.NOT_OFFERED, *schema.HARMLESS, "model", "messages", "prompt", "max_tokens", "seed"}
    | {"stop", "stream", "stream_options", "temperature", "top_p", "top_k", "ignore_eos", "n"}
    | {"max_completion_tokens", "return_token_ids", "logprobs", "top_logprobs", "logit_bias"}
    | {"presence_penalty", "repetition_penalty", "min_p", "regex", "response_format", "priority"}
    | {"stop_token_ids"}
)
PART = st.fixed_dictionaries({"type": st.just("text") | JSON, "text": st.text() | JSON})
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "system", "tool"]) | JSON},
    optional={"content": st.text() | st.lists(PART, max_size=3) | JSON, "name": JSON},
)
REQUEST = st.fixed_dictionaries(
    {"model": st.just("tiny") | JSON, "messages": st.lists(MESSAGE, max_size=3) | JSON},
    optional={f: JSON for f in FIELDS if f not in ("model", "messages")},
)


@given(value=REQUEST | JSON)
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_json_is_a_call_or_a_bad_request(value: Any) -> None:
    body = json.dumps(value).encode()
    for parse in (schema.parse_chat, schema.parse_completion):
        try:
            call = parse(body)
        except BadRequest as error:
            sentences = error.message
        else:
            assert sum(x is not None for x in (call.messages, call.prompt, call.token_ids)) == 1
            assert all(call.sampling.stop)
            continue
        assert sentences.endswith(".")


@given(body=st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_a_bad_request(body: bytes) -> None:
    with pytest.raises(BadRequest):
        schema.parse_chat(body)

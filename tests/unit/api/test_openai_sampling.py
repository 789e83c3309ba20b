"""What a request may ask of sampling, through the official client."""

import asyncio
import json
from collections.abc import AsyncIterator

import openai
import pydantic
import pytest

from fleetapp.api.logprobs import CompletionLogprobs, chat_logprobs
from fleetapp.engine.pipe import Alternative, Generate, TokenLogprob
from fleetapp.errors import BadRequest, ChainBroken
from fleetapp.types import Grammar
from tests.support.fake_service import FakeService, words_for

KEY = "fleet-test"
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture
async def client(url: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as made:
        yield made


async def test_everything_arrives(client: openai.AsyncOpenAI, service: FakeService) -> None:
    await client.chat.completions.create(
        model="tiny",
        messages=QUESTION,
        presence_penalty=0.5,
        frequency_penalty=-1,
        logit_bias={"5": 100, "7": -2.5},
        logprobs=True,
        top_logprobs=4,
        extra_body={
            "min_p": 0.05,
            "repetition_penalty": 1.1,
            "stop_token_ids": [3, 4],
            "priority": "batch",
        },
    )
    s = service.seen[0].sampling
    assert (s.presence_penalty, s.frequency_penalty, s.repetition_penalty) == (0.5, -1.0, 1.1)
    assert (s.min_p, s.logprobs, s.stop_ids, s.priority) == (0.05, 4, (3, 4), "batch")
    assert s.logit_bias == ((5, 100.0), (7, -2.5))


class Person(pydantic.BaseModel):
    name: str
    age: int


async def test_response_formats(client: openai.AsyncOpenAI, service: FakeService) -> None:
    service.tokens = lambda _r, _n: ['{"name": "Anna",', ' "age": 7}']
    answer = await client.chat.completions.parse(
        model="tiny", messages=QUESTION, response_format=Person
    )
    assert answer.choices[0].message.parsed == Person(name="Anna", age=7)
    grammar = service.seen[0].sampling.grammar
    assert grammar is not None
    assert grammar.kind == "json_schema"
    assert json.loads(grammar.text)["required"] == ["name", "age"]
    await client.chat.completions.create(
        model="tiny", messages=QUESTION, response_format={"type": "json_object"}
    )
    assert service.seen[1].sampling.grammar == Grammar("json_schema", '{"type": "object"}')
    await client.completions.create(model="tiny", prompt="a", extra_body={"regex": r"\d+"})
    assert service.seen[2].sampling.grammar == Grammar("regex", r"\d+")
    await client.chat.completions.create(
        model="tiny", messages=QUESTION, response_format={"type": "text"}
    )
    assert service.seen[3].sampling.grammar is None


@pytest.mark.parametrize("stream", [False, True])
async def test_a_schema_that_the_engine_refuses_is_a_400(
    client: openai.AsyncOpenAI, service: FakeService, stream: bool
) -> None:
    service.refuse = BadRequest("The JSON schema cannot be followed: Invalid type: strin.")
    with pytest.raises(openai.BadRequestError, match="strin"):
        await client.chat.completions.create(
            model="tiny",
            messages=QUESTION,
            stream=stream,
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "x", "schema": {"type": "strin"}},
            },
        )


async def test_chat_logprobs(client: openai.AsyncOpenAI) -> None:
    asked = {"model": "tiny", "messages": QUESTION, "logprobs": True, "top_logprobs": 2}
    whole = (await client.chat.completions.create(**asked)).choices[0]
    assert whole.logprobs is not None
    content = whole.logprobs.content or []
    assert b"".join(bytes(t.bytes or []) for t in content).decode() == whole.message.content
    assert all(t.logprob == -0.25 for t in content)
    assert [(a.token, a.logprob) for a in content[0].top_logprobs] == [("t0", -0.5), ("t1", -1.5)]
    stream = await client.chat.completions.create(**asked, stream=True)
    pieces = [c.choices[0].logprobs async for c in stream]
    assert [t for p in pieces if p is not None for t in p.content or []] == content
    plain = await client.chat.completions.create(model="tiny", messages=QUESTION, logprobs=True)
    assert plain.choices[0].logprobs is not None
    assert all(not t.top_logprobs for t in plain.choices[0].logprobs.content or [])


async def test_completion_logprobs(client: openai.AsyncOpenAI) -> None:
    asked = {"model": "tiny", "prompt": "a", "max_tokens": 6, "logprobs": 1}
    whole = (await client.completions.create(**asked)).choices[0]
    assert whole.logprobs is not None
    tokens, offsets = whole.logprobs.tokens or [], whole.logprobs.text_offset or []
    assert "".join(tokens) == whole.text
    for token, offset in zip(tokens, offsets, strict=True):
        assert whole.text[offset : offset + len(token)] == token
    assert whole.logprobs.token_logprobs == [-0.25] * 6
    assert (whole.logprobs.top_logprobs or [])[0] == {"t0": -0.5, tokens[0]: -0.25}
    stream = await client.completions.create(**asked, stream=True)
    pieces = [c.choices[0].logprobs async for c in stream]
    assert [o for p in pieces if p is not None for o in p.text_offset or []] == offsets


def test_tokens_that_are_half_a_character() -> None:
    parts = [b"\xe6\x97", b"\xa5", b" \xf0\x9f", b"\x91\xa9!", b"<end>", b"z"]
    reports = [TokenLogprob(i, -0.5, p, hidden=p == b"<end>") for i, p in enumerate(parts)]
    content = chat_logprobs(reports)
    assert b"".join(bytes(t["bytes"]) for t in content) == b"".join(parts)
    assert [t["token"] for t in content[:3]] == ["\\xe6\\x97", "\\xa5", " \\xf0\\x9f"]
    json.dumps(content)
    text = "日 👩!z"
    one = CompletionLogprobs()
    offsets = [o for r in reports for o in one.take([r])["text_offset"]]
    assert offsets == CompletionLogprobs().take(reports)["text_offset"] == [0, 0, 1, 2, 4, 4]
    assert text[4] == "z"
    twice = TokenLogprob(1, -0.5, b"a", (Alternative(1, -0.5, b"a"), Alternative(2, -3.0, b"b")))
    assert CompletionLogprobs().take([twice])["top_logprobs"] == [{"a": -0.5, "b": -3.0}]


async def test_several_answers(client: openai.AsyncOpenAI, service: FakeService) -> None:
    asked = {"model": "tiny", "messages": QUESTION, "temperature": 1.0, "seed": 40, "n": 3}
    whole = await client.chat.completions.create(**asked, max_tokens=5)
    assert [c.index for c in whole.choices] == [0, 1, 2]
    seen = service.seen[:3]
    assert [r.sampling.seed for r in seen] == [40, 41, 42]
    assert len({r.request_id for r in seen}) == 3
    texts = [c.message.content for c in whole.choices]
    assert texts == ["".join(words_for(r, 5)) for r in seen]
    assert len(set(texts)) == 3
    assert whole.usage is not None
    assert whole.usage.completion_tokens == 15
    alone = await client.chat.completions.create(**{**asked, "seed": 41, "n": 1}, max_tokens=5)
    assert alone.choices[0].message.content == texts[1]
    assert whole.usage.prompt_tokens == alone.usage.prompt_tokens  # counted once
    stream = await client.chat.completions.create(
        **asked, max_tokens=5, stream=True, stream_options={"include_usage": True}
    )
    chunks = [c async for c in stream]
    assert len({c.id for c in chunks}) == 1
    for i in range(3):
        mine = [c.choices[0] for c in chunks if c.choices and c.choices[0].index == i]
        assert mine[0].delta.role == "assistant"
        assert "".join(c.delta.content or "" for c in mine) == texts[i]
        assert [c.finish_reason for c in mine if c.finish_reason] == ["length"]
    assert chunks[-1].usage == whole.usage
    assert sum(c.usage is not None for c in chunks) == 1


async def test_several_answers_without_a_seed_draw_their_own(
    client: openai.AsyncOpenAI, service: FakeService
) -> None:
    whole = await client.completions.create(model="tiny", prompt="a", n=2, temperature=1.0)
    assert [c.index for c in whole.choices] == [0, 1]
    assert [r.sampling.seed for r in service.seen] == [None, None]


async def test_the_first_answer_goes_ahead(
    client: openai.AsyncOpenAI, service: FakeService
) -> None:
    """By its first token its prompt is computed, and the others need not compute it again."""
    gate = asyncio.Event()

    def hold(request: Generate, index: int) -> asyncio.Event | None:
        if index == 0 and request is service.seen[0]:
            return gate
        return None

    service.token_gate = hold
    asking = asyncio.ensure_future(client.completions.create(model="tiny", prompt="a", n=3))
    await service.wait_for(lambda: service.running == 1)
    await asyncio.sleep(0)
    assert len(service.seen) == 1
    gate.set()
    assert len((await asking).choices) == 3
    assert len(service.seen) == 3


@pytest.mark.parametrize("stream", [False, True])
async def test_one_answer_that_fails_ends_them_all(
    client: openai.AsyncOpenAI, service: FakeService, stream: bool
) -> None:
    service.fail_after = (2, ChainBroken("DESK-3 has left."))

    async def ask() -> None:
        answer = await client.chat.completions.create(
            model="tiny", messages=QUESTION, n=3, stream=stream
        )
        if stream:
            [c async for c in answer]

    with pytest.raises(openai.APIError, match="DESK-3 has left"):
        await ask()
    await service.wait_for(lambda: service.running == 0)


async def test_a_client_that_leaves_ends_them_all(
    client: openai.AsyncOpenAI, service: FakeService
) -> None:
    service.token_gate = lambda _r, i: asyncio.Event() if i == 2 else None
    stream = await client.chat.completions.create(model="tiny", messages=QUESTION, n=3, stream=True)
    await service.wait_for(lambda: service.running == 3)
    await stream.close()
    await service.wait_for(lambda: service.running == 0)
    assert len(service.cancelled) == 3

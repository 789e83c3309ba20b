"""The official client is the judge."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import openai
import pytest

from fleetapp.errors import ChainBroken, ContextTooLong, TemplateRefused
from fleetapp.hub.service import Health
from tests.support.fake_service import FakeService, words_for

KEY = "fleet-test"
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture
async def client(url: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as made:
        yield made


async def test_a_whole_answer(client: openai.AsyncOpenAI, service: FakeService) -> None:
    answer = await client.chat.completions.create(model="tiny", messages=QUESTION)
    assert answer.object == "chat.completion"
    choice = answer.choices[0]
    assert choice.message.role == "assistant"
    assert choice.message.content == "".join(words_for(service.seen[0], 12))
    assert choice.finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 12
    fleet = answer.model_extra["fleet"]
    assert fleet["devices"] == ["DESK-1", "José 測試", "DESK-3"]
    assert fleet["timings"]["total"] > 0


async def test_a_stream_equals_the_whole(client: openai.AsyncOpenAI) -> None:
    whole = await client.chat.completions.create(model="tiny", messages=QUESTION)
    stream = await client.chat.completions.create(
        model="tiny", messages=QUESTION, stream=True, stream_options={"include_usage": True}
    )
    chunks = [c async for c in stream]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert whole.usage is not None
    assert chunks[0].model_extra["fleet"] == {
        "devices": ["DESK-1", "José 測試", "DESK-3"],
        "prompt_tokens": whole.usage.prompt_tokens,
    }
    assert all(c.choices[0].delta.role is None for c in chunks[1:-1])
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert [c.choices[0].finish_reason for c in chunks[:-1] if c.choices[0].finish_reason] == [
        "length"
    ]
    assert chunks[-2].model_extra["fleet"]["devices"][0] == "DESK-1"
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage
    assert len({c.id for c in chunks}) == 1


async def test_without_include_usage_no_chunk_has_usage(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(model="tiny", messages=QUESTION, stream=True)
    assert all([c.usage is None and len(c.choices) == 1 async for c in stream])


async def test_the_synchronous_client(url: str) -> None:
    def ask() -> tuple[str, str]:
        with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY) as sync:
            whole = sync.chat.completions.create(model="tiny", messages=QUESTION)
            stream = sync.chat.completions.create(model="tiny", messages=QUESTION, stream=True)
            return whole.choices[0].message.content or "", "".join(
                c.choices[0].delta.content or "" for c in stream
            )

    whole, streamed = await asyncio.to_thread(ask)
    assert whole == streamed != ""


async def test_completions(client: openai.AsyncOpenAI, service: FakeService) -> None:
    whole = await client.completions.create(model="tiny", prompt="Once upon", max_tokens=5)
    assert whole.choices[0].text == "".join(words_for(service.seen[0], 5))
    assert whole.choices[0].finish_reason == "length"
    stream = await client.completions.create(
        model="tiny", prompt="Once upon", max_tokens=5, stream=True
    )
    assert "".join([c.choices[0].text async for c in stream]) == whole.choices[0].text
    ids = await client.completions.create(model="tiny", prompt=[1, 2, 3], max_tokens=1)
    assert ids.usage is not None
    assert ids.usage.prompt_tokens == 3


TEXT_A = {"type": "text", "text": "a "}
TEXT_B = {"type": "text", "text": "b"}


async def test_parameters_arrive(client: openai.AsyncOpenAI, service: FakeService) -> None:
    await client.chat.completions.create(
        model="tiny",
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [TEXT_A, TEXT_B]},
        ],
        temperature=0.7,
        top_p=0.9,
        seed=-5,
        stop=["x", "\n\n"],
        max_completion_tokens=3,
        user="me",
        metadata={"a": "b"},
        store=True,
        service_tier="auto",
        extra_body={"top_k": 40},
    )  # fmt: skip
    asked = service.seen[0]
    assert asked.messages is not None
    assert [(m.role, m.content) for m in asked.messages] == [
        ("system", "Be brief."),
        ("user", "a b"),
    ]
    s = asked.sampling
    assert (s.temperature, s.top_p, s.top_k, s.seed, s.max_tokens) == (0.7, 0.9, 40, -5, 3)
    assert s.stop == ("x", "\n\n")


async def test_stop_ends_with_stop_and_is_not_shown(
    client: openai.AsyncOpenAI, service: FakeService
) -> None:
    service.tokens = lambda _r, _n: ["Hel", "lo\n", "\nUs", "er: me"]
    stream = await client.chat.completions.create(
        model="tiny", messages=QUESTION, stop="\n\nUser:", stream=True
    )
    chunks = [c async for c in stream]
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == "Hello"
    assert chunks[-1].choices[0].finish_reason == "stop"


async def test_token_ids_on_request(client: openai.AsyncOpenAI) -> None:
    extra = {"return_token_ids": True}
    whole = await client.completions.create(
        model="tiny", prompt="a", max_tokens=3, extra_body=extra
    )
    assert whole.choices[0].model_extra["token_ids"] == [1000, 1001, 1002]
    stream = await client.chat.completions.create(
        model="tiny", messages=QUESTION, max_tokens=3, stream=True, extra_body=extra
    )
    ids = [t async for c in stream for t in c.choices[0].model_extra.get("token_ids", [])]
    assert ids == [1000, 1001, 1002]


async def test_models(client: openai.AsyncOpenAI) -> None:
    listed = [m async for m in client.models.list()]
    assert [(m.id, m.object, m.owned_by) for m in listed] == [("tiny", "model", "fleet")]
    one = await client.models.retrieve("tiny")
    assert one == listed[0]
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("org/other")


async def test_the_key_is_needed(url: str) -> None:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="wrong", max_retries=0) as wrong:
        with pytest.raises(openai.AuthenticationError) as caught:
            await wrong.models.list()
    assert caught.value.code == "unauthorized"
    assert caught.value.body["remedy"].startswith("Send the header")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ContextTooLong("99 tokens, and the model takes 64."), openai.BadRequestError),
        (TemplateRefused("This model takes no system message."), openai.BadRequestError),
        (ChainBroken("DESK-3 has left."), openai.InternalServerError),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_before_the_answer_has_its_status(
    client: openai.AsyncOpenAI, service: FakeService, error, kind, stream: bool
) -> None:
    service.refuse = error
    with pytest.raises(kind) as caught:
        await client.chat.completions.create(model="tiny", messages=QUESTION, stream=stream)
    assert caught.value.code == error.code
    assert error.message in str(caught.value)
    service.refuse = None
    assert (await client.chat.completions.create(model="tiny", messages=QUESTION)).choices


async def test_an_unknown_model_is_404(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        await client.chat.completions.create(model="none", messages=QUESTION, stream=True)


async def test_an_error_inside_a_stream_is_raised_by_the_client(
    client: openai.AsyncOpenAI, service: FakeService
) -> None:
    service.fail_after = (3, ChainBroken("DESK-3 has left."))
    stream = await client.chat.completions.create(model="tiny", messages=QUESTION, stream=True)
    seen: list[str] = []

    async def read() -> None:
        async for chunk in stream:
            seen.append(chunk.choices[0].delta.content or "")  # noqa: PERF401 - what came before the error counts

    with pytest.raises(openai.APIError, match="DESK-3 has left") as caught:
        await read()
    assert len("".join(seen).split()) == 3
    assert caught.value.code == "chain_broken"
    with pytest.raises(openai.InternalServerError, match="DESK-3 has left"):
        await client.chat.completions.create(model="tiny", messages=QUESTION)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_unforeseen_tells_nothing_of_the_prompt(
    client: openai.AsyncOpenAI, service: FakeService, caplog: pytest.LogCaptureFixture, stream: bool
) -> None:
    service.crash_after = 2
    with pytest.raises(openai.APIError) as caught:
        await ask_and_read(client, stream)
    assert caught.value.code == "internal"
    assert "ZeroDivisionError" in caplog.text
    assert "capital of France" not in str(caught.value) + str(caught.value.body) + caplog.text


async def test_a_failed_stream_has_no_done(url: str, service: FakeService) -> None:
    service.fail_after = (1, ChainBroken("DESK-3 has left."))
    lines = await raw_stream(url)
    assert lines[-1].startswith('data: {"error"')
    service.fail_after = None
    assert (await raw_stream(url))[-1] == "data: [DONE]"


async def test_chunks_have_no_null_but_the_finish_reason(url: str) -> None:
    for line in await raw_stream(url, stream_options={"include_usage": True}):
        assert "null" not in line.replace('"finish_reason":null', "")


async def test_comments_while_waiting_in_the_queue(url: str, service: FakeService) -> None:
    service.start_gate = asyncio.Event()
    seen: list[str] = []

    def on_line(line: str) -> None:
        seen.append(line)
        if len(seen) == 3:
            service.start_gate.set()

    await raw_stream(url, on_line=on_line)
    assert seen[:3] == [": keep-alive"] * 3
    assert seen[-1] == "data: [DONE]"


async def test_an_error_after_a_long_wait_comes_as_an_event(
    client: openai.AsyncOpenAI, service: FakeService
) -> None:
    service.start_gate = asyncio.Event()
    stream = await client.chat.completions.create(
        model="tiny", messages=[{"role": "user", "content": "word " * 100}], stream=True
    )
    service.start_gate.set()
    with pytest.raises(openai.APIError) as caught:
        [c async for c in stream]
    assert caught.value.code == "context_length_exceeded"


@pytest.mark.parametrize("stream", [False, True])
async def test_silence_ends_in_a_typed_error(
    client: openai.AsyncOpenAI, service: FakeService, stream: bool
) -> None:
    service.token_gate = lambda _r, i: asyncio.Event() if i == 2 else None
    with pytest.raises(openai.APIError, match="stood still") as caught:
        await ask_and_read(client, stream)
    assert caught.value.code == "peer_timeout"
    await service.wait_for(lambda: service.running == 0)
    assert len(service.cancelled) == 1


async def test_reading_a_long_prompt_may_take_longer_than_a_token(
    client: openai.AsyncOpenAI, service: FakeService
) -> None:
    gate = asyncio.Event()
    service.token_gate = lambda _r, i: gate if i == 0 else None
    asyncio.get_running_loop().call_later(1.0, gate.set)  # silence: 0.6 s, reading: 1.5 s
    answer = await client.chat.completions.create(model="tiny", messages=QUESTION)
    assert answer.choices[0].message.content
    gate.clear()
    with pytest.raises(openai.APIError, match="was not read within") as caught:
        await client.chat.completions.create(model="tiny", messages=QUESTION)
    assert caught.value.code == "peer_timeout"


async def test_the_queue_has_a_deadline(client: openai.AsyncOpenAI, service: FakeService) -> None:
    service.start_gate = asyncio.Event()
    with pytest.raises(openai.InternalServerError, match="has waited") as caught:
        await client.chat.completions.create(model="tiny", messages=QUESTION)
    assert caught.value.code == "no_capacity"


async def test_healthz_tells_the_truth(url: str, service: FakeService) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{url}/healthz") as response:
            assert response.status == 200
            assert (await response.json())["ok"] is True
        service.state = Health(False, "No chain is live.", 1, 0)
        async with session.get(f"{url}/healthz") as response:
            assert response.status == 503
            assert await response.json() == {
                "ok": False,
                "reason": "No chain is live.",
                "nodes_online": 1,
                "chains_live": 0,
            }


async def ask_and_read(client: openai.AsyncOpenAI, stream: bool) -> None:
    answer = await client.chat.completions.create(model="tiny", messages=QUESTION, stream=stream)
    async for _ in answer:
        pass


async def raw_stream(url: str, on_line=lambda _line: None, **fields) -> list[str]:
    body = {"model": "tiny", "messages": QUESTION, "stream": True, **fields}
    lines = []
    headers = {"Authorization": f"Bearer {KEY}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{url}/v1/chat/completions", json=body) as response,
    ):
        assert response.status == 200
        assert response.headers["X-Fleet-Devices"] == "DESK-1,Jos%C3%A9 %E6%B8%AC%E8%A9%A6,DESK-3"
        async for raw in response.content:
            line = raw.decode().rstrip("\n")
            if line:
                lines.append(line)
                on_line(line)
    return lines

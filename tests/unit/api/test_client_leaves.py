"""A client that leaves ends its own request at once, and nobody else notices (trap T14)."""

import asyncio
import json

import aiohttp
import pytest

from tests.support.fake_service import FakeService

HEADERS = {"Authorization": "Bearer fleet-test"}


def body(content: str, stream: bool, tokens: int = 12) -> dict:
    return {
        "model": "tiny",
        "messages": [{"role": "user", "content": content}],
        "stream": stream,
        "max_tokens": tokens,
    }


async def read(session: aiohttp.ClientSession, url: str, content: str, leave_at: int = -1) -> str:
    text, count = "", 0
    async with session.post(
        f"{url}/v1/chat/completions", json=body(content, stream=True)
    ) as response:
        async for raw in response.content:
            if raw.startswith(b"data: {"):
                delta = json.loads(raw[6:])["choices"][0]["delta"]
                if delta.get("content"):
                    if count == leave_at:
                        response.close()
                        return text
                    count += 1
                    text += delta["content"]
    return text


@pytest.mark.parametrize("leave_at", range(12))
async def test_three_of_four_go_on_byte_for_byte(
    url: str, service: FakeService, leave_at: int
) -> None:
    service.pace = 0.002
    async with aiohttp.ClientSession(headers=HEADERS) as session:
        alone = [await read(session, url, f"question {i}") for i in range(3)]
        together = await asyncio.gather(
            *(read(session, url, f"question {i}") for i in range(3)),
            read(session, url, "leaver", leave_at),
        )
        assert together[:3] == alone
    await service.wait_for(lambda: service.running == 0)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("where", ["queue", "middle"])
async def test_leaving_cancels_promptly(
    url: str, service: FakeService, stream: bool, where: str
) -> None:
    if where == "queue":
        service.start_gate = asyncio.Event()
    else:
        service.token_gate = lambda _r, i: asyncio.Event() if i == 1 else None
    async with aiohttp.ClientSession(headers=HEADERS) as session:
        asking = asyncio.ensure_future(
            session.post(f"{url}/v1/chat/completions", json=body("x", stream))
        )
        await service.wait_for(lambda: service.running == 1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    # faster than the first of the server's own deadlines (silence: 0.6 s)
    await service.wait_for(lambda: service.running == 0, seconds=0.5)
    assert len(service.cancelled) == 1


async def test_a_client_that_stops_reading_is_dropped(
    url: str, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleetapp.api.sse.WRITE_DEADLINE", 0.2)
    service.tokens = lambda _r, n: ["x" * 4_000_000] * n
    host, _, port = url.removeprefix("http://").partition(":")
    _reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
    raw = json.dumps(body("x", stream=True)).encode()
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer fleet-test\r\nContent-Length: %d\r\n\r\n%s" % (len(raw), raw)
    )
    await service.wait_for(lambda: service.cancelled != [])
    writer.close()

"""A program on a member's PC asks the fleet through its own agent, over the fleet's trust."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import openai
import pytest
from aiohttp import web

from fleetapp.api.auth import loopback_authorizer
from fleetapp.api.errors import use_error_middleware
from fleetapp.api.proxy import add_proxy_routes
from fleetapp.fleet.membership import Membership, remove, revoke
from tests.support.api_server import serving
from tests.support.control_server import DEADLINE, ControlServer, Linked
from tests.support.fake_service import FakeService
from tests.support.relay import Relay

TOKEN = "t" * 32
ASK = {"model": "tiny", "messages": [{"role": "user", "content": "What is the capital?"}]}


@dataclass
class Member:
    """What the proxy needs of an agent: the membership it is in, with its link."""

    hub_link: Linked | None


@dataclass
class Office:
    """A member's loopback address, the network to its coordinator, and what answers there."""

    url: str
    service: FakeService
    network: Relay
    server: ControlServer
    linked: Linked
    member: Member
    session: aiohttp.ClientSession

    def client(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(
            base_url=f"{self.url}/v1", api_key=TOKEN, max_retries=0, timeout=DEADLINE
        )

    async def call(
        self, path: str, body: object = None, token: str = TOKEN
    ) -> tuple[int, dict[str, object]]:
        async with self.session.request(
            "GET" if body is None else "POST",
            f"{self.url}{path}",
            json=body,
            headers={"Authorization": f"Bearer {token}"},
        ) as response:
            return response.status, await response.json()

    @contextlib.asynccontextmanager
    async def asking(self, **fields: object) -> AsyncIterator[aiohttp.ClientResponse]:
        async with self.session.post(
            f"{self.url}/v1/chat/completions",
            json=ASK | fields,
            headers={"Authorization": f"Bearer {TOKEN}"},
        ) as response:
            yield response


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    service = FakeService()
    server = ControlServer(tmp_path)
    server.home.hub.router = service  # type: ignore[assignment]
    async with server, Relay(server.port) as network:
        anna = server.home.enrol("anna")
        async with Linked(server, anna, network.port, silence=3.0) as linked:
            await linked.until_connected()
            member = Member(linked)
            app = web.Application(client_max_size=16 * 2**20)
            use_error_middleware(app)
            add_proxy_routes(app, member, loopback_authorizer(TOKEN))  # type: ignore[arg-type]
            async with (
                serving(app) as url,
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(DEADLINE)) as session,
            ):
                yield Office(url, service, network, server, linked, member, session)


@pytest.fixture
def held(office: Office) -> Iterator[asyncio.Event]:
    """Answers stop before their sixth token until this is set."""
    gate = asyncio.Event()
    office.service.token_gate = lambda _, i: gate if i == 5 else None
    yield gate
    gate.set()


async def test_the_official_client_is_answered_by_the_coordinator(office: Office) -> None:
    async with office.client() as client:
        whole = await client.chat.completions.create(**ASK, max_tokens=6)  # type: ignore[call-overload]
        stream = await client.chat.completions.create(**ASK, max_tokens=6, stream=True)  # type: ignore[call-overload]
        text = ""
        async for chunk in stream:
            text += chunk.choices[0].delta.content or "" if chunk.choices else ""
        assert text == whole.choices[0].message.content != ""
        assert [m.id async for m in client.models.list()] == ["tiny"]
    status, body = await office.call("/healthz")
    assert (status, body["ok"]) == (200, True)


async def test_errors_come_back_as_the_coordinator_worded_them(office: Office) -> None:
    status, body = await office.call("/v1/chat/completions", ASK | {"model": "nothing"})
    assert status == 404
    assert body["error"]["code"] == "not_found"  # type: ignore[index]
    status, body = await office.call("/v1/chat/completions", {"model": "tiny", "messages": []})
    assert status == 400
    status, body = await office.call("/v1/nothing")
    assert status == 404


async def test_a_long_prompt_passes(office: Office) -> None:
    words = [{"role": "user", "content": "x" * 2_000_000}]
    status, body = await office.call("/v1/chat/completions", ASK | {"messages": words})
    assert status == 200, body


async def test_without_the_token_nothing_is_asked(office: Office) -> None:
    status, _ = await office.call("/v1/chat/completions", ASK, token="wrong" * 8)
    assert status == 401
    assert office.service.seen == []


async def test_outside_a_fleet_it_says_so(office: Office) -> None:
    office.member.hub_link = None
    status, body = await office.call("/v1/chat/completions", ASK)
    assert (status, body["error"]["code"]) == (403, "not_a_member")  # type: ignore[index]


async def test_a_coordinator_that_cannot_be_reached_is_a_503(office: Office) -> None:
    office.network.down()
    await office.linked.until(lambda: not office.linked.connected)
    status, body = await office.call("/v1/chat/completions", ASK)
    assert (status, body["error"]["code"]) == (503, "no_hub")  # type: ignore[index]
    assert body["error"]["remedy"]  # type: ignore[index]


async def test_a_coordinator_that_dies_in_a_stream_ends_it_with_an_error(
    office: Office, held: asyncio.Event
) -> None:
    async with office.client() as client:
        stream = await client.chat.completions.create(**ASK, stream=True)  # type: ignore[call-overload]
        got: list[str] = []

        async def read() -> None:
            async for chunk in stream:
                got.extend(c.delta.content for c in chunk.choices if c.delta.content)
                if len(got) == 3:
                    office.network.down()

        with pytest.raises(openai.APIError) as caught:
            await read()
    assert len(got) >= 3
    assert caught.value.code == "chain_broken"
    assert "coordinator" in str(caught.value)


async def test_a_stream_cut_inside_an_event_is_cut_and_not_ended(office: Office) -> None:
    # What the proxy passed on so far ends in the middle of a line: an error event would be taken
    # for a part of it.
    async def broken(_: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(_)
        await response.write(b'data: {"a": 1}\n\ndata: {"b"')
        assert _.transport is not None
        await asyncio.sleep(0)
        _.transport.abort()
        return response

    app = web.Application()
    app.router.add_route("*", "/api/{tail:.*}", broken)
    async with serving(app) as url:

        class Plain:
            @contextlib.asynccontextmanager
            async def request(
                self, method: str, path: str, **more: object
            ) -> AsyncIterator[aiohttp.ClientResponse]:
                async with office.session.request(method, f"{url}{path}", **more) as answer:  # type: ignore[arg-type]
                    yield answer

        office.member.hub_link = Linked.__new__(Linked)
        office.member.hub_link.link = Plain()  # type: ignore[assignment]
        with pytest.raises(aiohttp.ClientPayloadError):
            async with office.asking(stream=True) as response:
                await response.read()


async def test_a_coordinator_that_dies_before_a_whole_answer_is_an_error(
    office: Office, held: asyncio.Event
) -> None:
    asking = asyncio.create_task(office.call("/v1/chat/completions", ASK))
    await office.service.wait_for(lambda: office.service.running == 1)
    office.network.down()
    status, body = await asking
    assert (status, body["error"]["code"]) == (503, "no_hub")  # type: ignore[index]


async def test_a_frozen_coordinator_ends_answers_with_an_error(
    office: Office, held: asyncio.Event
) -> None:
    whole = asyncio.create_task(office.call("/v1/chat/completions", ASK))
    await office.service.wait_for(lambda: office.service.running == 1)
    office.network.freeze()
    status, body = await whole
    assert (status, body["error"]["code"]) == (503, "no_hub")  # type: ignore[index]
    assert "silent" in body["error"]["message"]  # type: ignore[index]


async def test_a_client_that_leaves_ends_its_request_at_the_coordinator(
    office: Office, held: asyncio.Event
) -> None:
    for stream in (True, False):
        asking = asyncio.create_task(_read(office, stream=stream))
        await office.service.wait_for(lambda: office.service.running == 1)
        asking.cancel()
        await office.service.wait_for(lambda: office.service.running == 0)
    assert len(office.service.cancelled) == 2
    held.set()
    status, _ = await office.call("/v1/chat/completions", ASK)
    assert status == 200, "and disturbs nobody else"


async def _read(office: Office, **fields: object) -> bytes:
    async with office.asking(**fields) as response:
        return await response.read()


@pytest.mark.parametrize("word", [revoke, remove])
async def test_a_member_that_is_shut_out_in_the_middle_gets_no_more(
    office: Office, held: asyncio.Event, word: Callable[[Membership, str], Membership]
) -> None:
    async with office.asking(stream=True) as response:
        body = await response.content.readuntil(b"\n\n")
        whole = asyncio.create_task(office.call("/v1/chat/completions", ASK))
        await office.service.wait_for(lambda: office.service.running == 2)
        device = office.linked._member.identity.device_id
        office.server.home.hub.change_membership(lambda m: word(m, device))
        await office.service.wait_for(lambda: office.service.running == 0)
        body += await response.read()
    assert b"[DONE]" not in body
    assert b'"not_a_member"' in body, "the coordinator is not to blame"
    assert b"This PC was removed from the fleet" in body
    assert b"fleetapp fleet leave" in body
    status, answer = await whole
    assert (status, answer["error"]["code"]) == (403, "not_a_member")  # type: ignore[index]
    assert "was removed" in answer["error"]["message"]  # type: ignore[index]
    await office.linked.until(lambda: office.linked.link.removed)
    status, answer = await office.call("/v1/chat/completions", ASK)
    assert (status, answer["error"]["code"]) == (403, "not_a_member")  # type: ignore[index]
    message = str(answer["error"]["message"])  # type: ignore[index]
    assert "does not count this PC as a member" in message, "not what it thinks of a stranger"


async def test_eight_answers_at_once_are_told_apart(office: Office) -> None:
    async def one(number: int) -> str:
        ask = ASK | {"messages": [{"role": "user", "content": f"question {number}"}]}
        _, body = await office.call("/v1/chat/completions", ask)
        return str(body["choices"][0]["message"]["content"])  # type: ignore[index]

    together = await asyncio.gather(*(one(n) for n in range(8)))
    apart = [await one(n) for n in range(8)]
    assert together == apart

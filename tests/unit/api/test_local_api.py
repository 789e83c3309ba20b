import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from msgspec import convert

from fleetapp.api import local, views
from fleetapp.errors import NoHub
from fleetapp.types import FleetView, JoinCodeView, LocalStatus
from tests.support.api_server import serving
from tests.support.fake_agent import CODE, FakeAgent

TOKEN = "the-token"


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent()


@pytest.fixture
async def base(agent: FakeAgent) -> AsyncIterator[str]:
    app = web.Application()
    local.add_local_routes(app, agent, TOKEN)
    async with serving(app) as url:
        yield f"{url}/local/v1"


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(headers=headers) as made:
        yield made


@pytest.mark.parametrize(
    ("method", "path", "body", "asked"),
    [
        ("GET", "status", None, ("status",)),
        ("GET", "search", None, ("search",)),
        ("GET", "hardware", None, ("hardware",)),
        ("GET", "checks", None, ("checks", ())),
        ("GET", "checks?only=clock,vpn", None, ("checks", ("clock", "vpn"))),
        ("POST", "contribute", {"on": True}, ("contribute", True)),
        ("POST", "lend", {"device": "GPU", "on": False}, ("lend", "GPU", False)),
        ("POST", "pause", {"length": "1h"}, ("pause", "1h", False)),
        ("POST", "pause", {"length": "4h", "finish_first": True}, ("pause", "4h", True)),
        ("POST", "resume", None, ("resume",)),
        ("POST", "quit", None, ("quit",)),
        ("POST", "fleet/create", {"name": "Büro"}, ("create", "Büro")),
        ("POST", "fleet/join", {"code": CODE}, ("join", CODE, "")),
        ("POST", "fleet/join", {"code": CODE, "hub_address": "h:1"}, ("join", CODE, "h:1")),
        ("POST", "fleet/join/stop", None, ("stop_joining",)),
        ("POST", "fleet/leave", None, ("leave",)),
        ("GET", "fleet", None, ("fleet",)),
        ("POST", "fleet/approve", {"device_id": "dev3"}, ("approve", "dev3")),
        ("POST", "fleet/decline", {"device_id": "dev3"}, ("decline", "dev3")),
        ("POST", "fleet/revoke", {"device_id": "dev2"}, ("revoke", "dev2")),
        ("POST", "fleet/reinstate", {"device_id": "dev9"}, ("reinstate", "dev9")),
        ("POST", "fleet/role", {"device_id": "dev2", "role": "admin"}, ("role", "dev2", "admin")),
        ("POST", "fleet/recovery/export", {"passphrase": "p"}, ("export", "p")),
        ("POST", "fleet/recovery/use", {"file": "f" * 200_000, "passphrase": "p"},
         ("use", "f" * 200_000, "p", False)),
        ("POST", "fleet/move", {"device_id": "dev2"}, ("move", "dev2")),
        ("GET", "fleet/audit", None, ("audit", 50)),
        ("GET", "fleet/audit?last=3", None, ("audit", 3)),
        ("GET", "fleet/audit/check?noted=ab", None, ("verify_audit", "ab")),
        ("POST", "fleet/plan", {}, ("plan",)),
        ("POST", "fleet/plan", {"what_if": ["+16", "users=9"]}, ("plan", "+16", "users=9")),
        ("GET", "fleet/codes", None, ("codes",)),
        ("POST", "fleet/codes", {"hours": 2, "uses": 3, "approve": True},
         ("make_code", 2.0, 3, True)),
        ("DELETE", "fleet/codes/id1", None, ("revoke_code", "id1")),
        ("GET", "trace?model=m", None, ("trace", "m")),
        ("GET", "keys", None, ("keys",)),
        ("POST", "keys", {"name": "editor"}, ("make_key", "editor", 0, 0)),
        ("GET", "models", None, ("models",)),
        ("POST", "models/get", {"model": "m"}, ("get_model", "m", "", False)),
        ("POST", "models/get", {"model": "hf:o/r", "name": "n", "accept_licence": True},
         ("get_model", "hf:o/r", "n", True)),
        ("POST", "models/import", {"path": "/x/José.gguf"}, ("import", "/x/José.gguf", "")),
        ("POST", "models/import", {"path": "/x", "name": "n"}, ("import", "/x", "n")),
        ("POST", "models/verify", {"model": "m"}, ("verify_model", "m")),
        ("POST", "models/cancel", {"job": "j1"}, ("cancel", "j1")),
        ("POST", "models/remove", {"model": "m"}, ("remove_model", "m")),
        ("POST", "models/start", {"model": "m"}, ("start", "m", None, 0, "auto")),
        ("POST", "models/start", {"model": "m", "precision": "exact", "stages": 3},
         ("start", "m", "exact", 3, "auto")),
        ("POST", "models/start", {"model": "m", "draft": "off"}, ("start", "m", None, 0, "off")),
        ("POST", "models/stop", {"model": "m"}, ("stop", "m")),
        ("GET", "settings", None, ("settings", "en")),
        ("GET", "settings?language=de", None, ("settings", "de")),
        ("POST", "settings", {"name": "threads", "value": 2}, ("set", "threads", 2, "en")),
        ("POST", "settings?language=de", {"name": "contribute", "value": True},
         ("set", "contribute", True, "de")),
        ("POST", "settings/reset", {"name": "threads"}, ("reset", "threads", "en")),
        ("GET", "autostart", None, ("autostart",)),
        ("POST", "autostart", {"on": True}, ("set_autostart", True)),
        ("POST", "support-bundle", {"path": "/x.zip"}, ("bundle", "/x.zip")),
    ],
)  # fmt: skip
async def test_each_route_asks_the_agent(
    base: str,
    session: aiohttp.ClientSession,
    agent: FakeAgent,
    method: str,
    path: str,
    body: Any,
    asked: tuple,
) -> None:
    async with session.request(method, f"{base}/{path}", json=body) as response:
        assert response.status == 200
        await response.json()
    assert agent.asked[0] == asked
    async with session.request(
        method, f"{base}/{path}", json=body, headers={"Authorization": "Bearer wrong"}
    ) as response:
        assert response.status == 401
    async with session.request(
        method, f"{base}/{path}", json=body, headers={"Host": "evil.example"}
    ) as response:
        assert response.status == 403


async def test_answers_are_the_shared_types(base: str, session: aiohttp.ClientSession) -> None:
    async def get(path: str) -> Any:
        async with session.get(f"{base}/{path}") as response:
            return await response.json()

    assert convert(await get("status"), LocalStatus).name == "DESK-1"
    assert convert(await get("fleet"), FleetView).nodes[1].name == "José 測試"
    assert convert(await get("fleet/codes"), list[JoinCodeView])[0].revoked
    async with session.post(f"{base}/fleet/create", json={"name": "x"}) as response:
        assert await response.json() == {"fleet_id": "fleet1", "code": CODE}
    async with session.post(f"{base}/keys", json={"name": "x"}) as response:
        assert (await response.json())["key"] == "fleet-secret"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("contribute", b""),
        ("contribute", b'{"on": "yes"}'),
        ("pause", b"{}"),
        ("lend", b'{"device": "GPU"}'),
        ("contribute", b'{"on": true, "off": false}'),
        ("fleet/join", b"{}"),
        ("fleet/approve", b"{}"),
        ("fleet/revoke", b'{"device_id": 3}'),
        ("fleet/codes", b'{"uses": "many"}'),
        ("models/start", b'{"model": "m", "precision": "sloppy"}'),
        ("keys", b"\xff"),
        ("keys", b"[]"),
        ("settings", b'{"name": "threads"}'),
        ("settings", b'{"name": "threads", "value": null}'),
        ("settings", b'{"name": "threads", "value": 1.5}'),
        ("settings", b'{"name": "threads", "value": [1]}'),
        ("settings/reset", b"{}"),
        ("autostart", b'{"on": 1}'),
        ("support-bundle", b"{}"),
    ],
)
async def test_bad_bodies_are_400(
    base: str, session: aiohttp.ClientSession, agent: FakeAgent, path: str, body: bytes
) -> None:
    headers = {"Content-Type": "application/json"}
    async with session.post(f"{base}/{path}", data=body, headers=headers) as response:
        assert response.status == 400
        assert (await response.json())["error"]["message"].endswith(".")
    assert agent.asked == []


async def test_errors_keep_code_status_and_remedy(
    base: str, session: aiohttp.ClientSession, agent: FakeAgent
) -> None:
    async with session.post(f"{base}/fleet/join", json={"code": "nonsense"}) as response:
        assert response.status == 403
        error = (await response.json())["error"]
        assert (error["code"], bool(error["remedy"])) == ("bad_join_code", True)
    agent.refuse = NoHub("The coordinator is away.")
    async with session.get(f"{base}/fleet") as response:
        assert response.status == 503


async def next_view(response: aiohttp.ClientResponse) -> Any:
    async with asyncio.timeout(5):
        while not (line := await response.content.readline()).startswith(b"data: "):
            assert line, "the stream ended"
        return json.loads(line[6:])


async def test_events_tell_every_change_and_notice_who_leaves(
    base: str, session: aiohttp.ClientSession, agent: FakeAgent
) -> None:
    async with session.get(f"{base}/events") as response:
        assert (await next_view(response))["contribute"] is False
        await agent.set_contribute(True)
        assert (await next_view(response))["contribute"] is True
        response.close()
    async with asyncio.timeout(5):
        await agent.closed.wait()
    assert agent.listeners == 0


async def test_quiet_streams_carry_comments(
    base: str, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "COMMENT_EVERY", 0.05)
    async with session.get(f"{base}/events") as response, asyncio.timeout(5):
        assert (await response.content.readline()).startswith(b"data: ")
        assert await response.content.readline() == b"\n"
        assert (await response.content.readline()).startswith(b": ")


async def test_a_stream_that_fails_says_why(base: str, session: aiohttp.ClientSession) -> None:
    async with session.get(f"{base}/fleet/events") as response:
        assert (await next_view(response))["name"] == "Büro"
        assert (await next_view(response))["error"]["code"] == "not_a_member"
        assert (await response.content.read()).strip() == b""

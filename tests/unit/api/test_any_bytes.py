"""Any bytes at any door of the real servers get an answer of ours; the next caller is served."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from aiohttp import WSMsgType, web
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetapp.api.control import Deadlines
from fleetapp.api.local import add_local_routes
from tests.support.api_server import serving_in_thread
from tests.support.control_server import ControlServer, as_member, as_stranger, speaking
from tests.support.fake_agent import FakeAgent
from tests.support.hubs import hello

TOKEN = "the-token"
JSON = {"Content-Type": "application/json"}
BODIES = (
    st.binary(max_size=300)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["device_id", "role", "name", "code", "file", "passphrase", "secret",
                             "csr", "protocol", "wish", "hours", "uses", "type", "x"]),
            inner, max_size=6,
        ),
        max_leaves=12,
    ).map(msgspec.json.encode)
)  # fmt: skip


# ------------------------------------------------------------------ the loopback API


@pytest.fixture
def local() -> Iterator[http.client.HTTPConnection]:
    def make() -> web.Application:
        app = web.Application()
        add_local_routes(app, FakeAgent(), TOKEN)
        return app

    with serving_in_thread(make) as url:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
        yield connection
        connection.close()


PATHS = ["contribute", "fleet/create", "fleet/join", "fleet/role", "fleet/revoke", "fleet/codes",
         "fleet/recovery/export", "fleet/recovery/use", "fleet/move", "keys", "models/start",
         "models/stop"]  # fmt: skip


def test_any_body_at_the_loopback_api(local: http.client.HTTPConnection) -> None:
    @settings(max_examples=150, deadline=None)
    @given(path=st.sampled_from(PATHS), body=BODIES, token=st.booleans())
    def ask(path: str, body: bytes, token: bool) -> None:
        headers = {**JSON, "Authorization": f"Bearer {TOKEN if token else 'x'}"}
        local.request("POST", f"/local/v1/{path}", body, headers)
        answer = local.getresponse()
        said = msgspec.json.decode(answer.read())
        assert answer.status < 500, said
        assert token or answer.status == 401
        assert answer.status == 200 or said["error"]["message"].endswith(".")

    ask()


def test_any_path_at_the_loopback_api(local: http.client.HTTPConnection) -> None:
    letters = st.characters(min_codepoint=33, max_codepoint=126)

    @settings(max_examples=100, deadline=None)
    @given(path=st.text(alphabet=letters, max_size=60), known=st.booleans())
    def ask(path: str, known: bool) -> None:
        prefix = "/local/v1/fleet/audit?last=" if known else "/"
        local.request("GET", prefix + path, headers={"Authorization": f"Bearer {TOKEN}"})
        answer = local.getresponse()
        answer.read()
        assert answer.status < 500

    ask()


# ------------------------------------------------------------------ the hub's front

Go = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture
def front(tmp_path: Path) -> Iterator[tuple[Go, ControlServer]]:
    with asyncio.Runner() as runner:
        server = ControlServer(tmp_path, Deadlines(hello=5, silence=5, close=0.5))
        runner.run(server.start())
        yield runner.run, server
        runner.run(server.stop())


def test_any_body_at_the_door_for_strangers(front: tuple[Go, ControlServer]) -> None:
    go, server = front
    caller = go(_made(lambda: as_stranger(server)))

    @settings(max_examples=120, deadline=None)
    @given(path=st.sampled_from(["request", "membership", "reissue"]), body=BODIES)
    def ask(path: str, body: bytes) -> None:
        answer = go(caller.call(f"/join/{path}", "POST", body, **JSON))
        assert 400 <= answer.status < 500 or answer.code == "version_mismatch"
        assert answer.message.endswith(".")

    ask()
    assert go(caller.call("/join/authority")).status == 200
    go(caller.session.close())
    assert len(server.home.members) == 1


def test_any_message_of_a_member_ends_its_connection_at_most(
    front: tuple[Go, ControlServer],
) -> None:
    go, server = front
    anna, ben = server.home.enrol("anna"), server.home.enrol("ben")

    async def throw(messages: list[bytes], greeted: bool) -> None:
        async with as_member(server, anna) as caller:
            socket = await caller.socket()
            if greeted:
                await socket.send_str(msgspec.json.encode(hello(anna.identity)).decode())
            for message in messages:
                if socket.closed:
                    break
                await socket.send_str(message.decode("utf-8", "replace"))
            raw = await socket.receive(5)
            while raw.type is WSMsgType.TEXT and not socket.closed and not greeted:
                raw = await socket.receive(5)
            await socket.close()

    async def still_there() -> None:
        async with speaking(server, ben) as speaker:
            assert await speaker.beat()

    @settings(max_examples=60, deadline=None)
    @given(messages=st.lists(BODIES, min_size=1, max_size=3), greeted=st.booleans())
    def ask(messages: list[bytes], greeted: bool) -> None:
        go(throw(messages, greeted))

    ask()
    go(still_there())
    assert set(server.home.members) >= {anna.identity.device_id, ben.identity.device_id}


async def _made(make: Callable[[], Any]) -> Any:
    return make()

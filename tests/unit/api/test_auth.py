from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from fleetapp.api.auth import key_authorizer, loopback_authorizer
from fleetapp.api.openai import add_openai_routes
from fleetapp.hub.keys import KeyBook
from fleetapp.platform import current
from tests.support.api_server import serving
from tests.support.fake_service import FakeService

TOKEN = "token-of-this-agent"


@pytest.fixture
async def loopback() -> AsyncIterator[str]:
    app = web.Application()
    add_openai_routes(app, FakeService(), loopback_authorizer(TOKEN))
    async with serving(app) as url:
        yield url


async def status(url: str, headers: dict[str, str]) -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{url}/v1/models", headers=headers) as response,
    ):
        if response.status >= 400:
            error = (await response.json())["error"]
            assert error["message"]
            assert error["remedy"]
        return response.status


@pytest.mark.parametrize(
    "value",
    ["", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x",
     "Bearer t\xf6ken"],
)  # fmt: skip
async def test_a_wrong_token_gets_nothing(loopback: str, value: str) -> None:
    assert await status(loopback, {"Authorization": value}) == 401


async def test_the_token_opens(loopback: str) -> None:
    assert await status(loopback, {"Authorization": f"Bearer {TOKEN}"}) == 200
    assert await status(loopback, {"Authorization": f"bearer {TOKEN}"}) == 200


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1:8484", 200),
        ("localhost", 200),
        ("LOCALHOST:99", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("evil@127.0.0.1", 403),
        ("127.0.0.1:x", 403),
        ("192.168.1.5", 403),
    ],
)
async def test_a_rebound_name_is_refused_even_with_the_token(
    loopback: str, host: str, expected: int
) -> None:
    assert await status(loopback, {"Authorization": f"Bearer {TOKEN}", "Host": host}) == expected


async def test_only_its_own_origin_may_call(loopback: str) -> None:
    own = {"Authorization": f"Bearer {TOKEN}"}
    assert await status(loopback, own | {"Origin": loopback}) == 200
    for foreign in ("null", "https://evil.example", "http://127.0.0.1:1", "file://"):
        assert await status(loopback, own | {"Origin": foreign}) == 403


async def test_keys_of_the_book_open_until_they_are_revoked(tmp_path: Path) -> None:
    book = KeyBook(tmp_path / "keys.json", current())
    made = book.create("Anna's editor")
    app = web.Application()
    add_openai_routes(app, FakeService(), key_authorizer(book))
    async with serving(app) as url:
        headers = {"Authorization": f"Bearer {made.key}"}
        assert await status(url, headers) == 200
        book.revoke(made.id)
        assert await status(url, headers) == 401

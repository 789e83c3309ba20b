from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from fleetapp.api.auth import bearer
from fleetapp.api.feed import Limits
from fleetapp.api.openai import add_openai_routes
from fleetapp.errors import Unauthorized
from tests.support.api_server import serving
from tests.support.control_server import ControlServer
from tests.support.fake_service import FakeService
from tests.support.fleet import TestMember

KEY = "fleet-test"
FAST = Limits(
    queue=2.0,
    reading=1.5,
    silence=0.6,
    commit=0.2,
    keep_alive=0.1,
    body=64 * 1024,
    body_seconds=0.5,
)


def authorize(request: web.Request) -> None:
    if bearer(request) != KEY:
        raise Unauthorized("This API key is not known here.")


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture
async def url(service: FakeService) -> AsyncIterator[str]:
    app = web.Application()
    add_openai_routes(app, service, authorize, FAST)
    async with serving(app) as base:
        yield base


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlServer]:
    async with ControlServer(tmp_path) as running:
        yield running


@pytest.fixture
def anna(server: ControlServer) -> TestMember:
    return server.home.enrol("anna")

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from fleetapp.api.auth import loopback_authorizer
from fleetapp.api.local import add_local_routes
from fleetapp.api.openai import add_openai_routes
from fleetapp.cli import main
from tests.support.api_server import serving_in_thread
from tests.support.cli import TOKEN, Run
from tests.support.fake_agent import FakeAgent
from tests.support.fake_service import FakeService


@pytest.fixture(autouse=True)
def _own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith("FLEETAPP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FLEETAPP_HOME", str(tmp_path / "José 測試"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "José 測試"
    folder.mkdir()
    return folder


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent()


@pytest.fixture
def running(home: Path, service: FakeService, agent: FakeAgent) -> Iterator[str]:
    """An agent with its files, as a command finds it; the value is its base URL."""

    def make() -> web.Application:
        app = web.Application()
        add_local_routes(app, agent, TOKEN)
        add_openai_routes(app, service, loopback_authorizer(TOKEN))
        return app

    with serving_in_thread(make) as url:
        port = int(url.rpartition(":")[2])
        (home / "api-token").write_text(TOKEN)
        (home / "agent.json").write_bytes(msgspec.json.encode({"pid": os.getpid(), "port": port}))
        yield url


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """A command line in this process: (exit code, stdout, stderr)."""

    def go(*args: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = main(args)
        out, err = capfd.readouterr()
        return code, out, err

    return go

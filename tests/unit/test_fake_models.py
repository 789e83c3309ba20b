"""The model library that windows are tested with behaves as the agent's does."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fleetapp.errors import Busy, LicenceNotAccepted, NotFound
from fleetapp.types import ModelsView
from tests.support.fake_local_api import FakeLocalApi
from tests.support.fake_models import DEFAULT, FakeModels, library_model, recorded


@pytest.mark.parametrize("name", recorded())
def test_recorded_states_cross_the_wire(name: str) -> None:
    view = recorded()[name]
    assert msgspec.json.decode(msgspec.json.encode(view), type=ModelsView) == view


def test_asked_twice_is_done_once_and_put_away_afterwards() -> None:
    fake = FakeModels()
    job = fake.answer("get", {"model": DEFAULT})
    assert fake.answer("get", {"model": DEFAULT}) == job
    with pytest.raises(Busy):
        fake.answer("import", {"path": "/x/y.gguf", "name": DEFAULT})
    ended = fake.answer("cancel", {"job": "fake1"})
    assert fake.view.jobs == (ended,)
    fake.answer("cancel", {"job": "fake1"})
    assert fake.view.jobs == ()


def test_terms_and_models_in_use_are_respected() -> None:
    fake = FakeModels()
    with pytest.raises(LicenceNotAccepted):
        fake.answer("get", {"model": "gemma-3-1b-it"})
    fake.answer("get", {"model": "gemma-3-1b-it", "accept_licence": True})
    with pytest.raises(NotFound):
        fake.answer("remove", {"model": DEFAULT})
    fake.arrive(library_model())
    assert fake.view.catalog[0].in_library
    fake.served = {DEFAULT}
    with pytest.raises(Busy):
        fake.answer("remove", {"model": DEFAULT})
    fake.served = set()
    fake.answer("remove", {"model": DEFAULT})
    assert not fake.view.catalog[0].in_library


def test_the_fake_agent_serves_and_streams_it(tmp_path: Path) -> None:
    fake = FakeLocalApi(tmp_path).start()
    port = json.loads((tmp_path / "agent.json").read_text())["port"]

    def ask(path: str, body: object = None) -> Any:
        return urllib.request.urlopen(
            urllib.request.Request(
                f"http://127.0.0.1:{port}/local/v1/{path}",
                data=None if body is None else json.dumps(body).encode(),
                headers={"Authorization": f"Bearer {fake.token}"},
            ),
            timeout=10,
        )

    def event(stream: Any) -> ModelsView:
        line = stream.readline()
        assert stream.readline() == b"\n"
        return msgspec.json.decode(line.removeprefix(b"data: "), type=ModelsView)

    try:
        with ask("models") as answer:
            assert msgspec.json.decode(answer.read(), type=ModelsView) == recorded()["empty"]
        with ask("models/events") as stream:
            assert event(stream) == recorded()["empty"]
            ask("models/get", {"model": DEFAULT}).close()
            (job,) = event(stream).jobs
            assert (job.model, job.state) == (DEFAULT, "running")
            fake.set_models(recorded()["here"])
            assert event(stream) == recorded()["here"]
    finally:
        fake.stop()

"""The chat against the agent's real API; it keeps the other tests' fake honest."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from aiohttp import web
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from fleetapp.api.auth import loopback_authorizer
from fleetapp.api.feed import Limits
from fleetapp.api.openai import add_openai_routes
from fleetapp.engine.pipe import Generate
from fleetapp.errors import ChainBroken, NoCapacity
from fleetapp.hub.service import Event, Queued
from tests.support.api_server import serving_in_thread
from tests.support.fake_service import FakeService
from ui.chat.model import ChatModel
from ui.chat.store import ConversationStore
from ui.chat.values import NEW, Message, Options
from ui.client import AgentClient

TOKEN = "loopback-token"
FAMILY = "👩\u200d👩\u200d👧 日本"


class QueueingService(FakeService):
    """As the router does, says the place in the queue first, if there is one."""

    place = 0
    turn: asyncio.Event
    loop: asyncio.AbstractEventLoop

    async def generate(self, model: str, request: Generate) -> AsyncIterator[Event]:
        if self.place:
            self.turn, self.loop = asyncio.Event(), asyncio.get_running_loop()
            yield Queued(request.request_id, self.place)
            await self.turn.wait()
        async for event in super().generate(model, request):
            yield event


@pytest.fixture
def service(home: Path) -> Iterator[QueueingService]:
    services: list[QueueingService] = []

    def make() -> web.Application:
        app = web.Application()
        services.append(QueueingService())
        limits = Limits(commit=0.1, keep_alive=0.1)
        add_openai_routes(app, services[0], loopback_authorizer(TOKEN), limits)
        return app

    with serving_in_thread(make) as url:
        described = {"pid": os.getpid(), "port": int(url.rpartition(":")[2]), "version": "0.1.0"}
        (home / "agent.json").write_text(json.dumps(described), encoding="utf-8")
        (home / "api-token").write_text(TOKEN, encoding="ascii")
        yield services[0]


@pytest.fixture
def chat(
    qtbot: QtBot, qapp: QApplication, home: Path, service: QueueingService
) -> Iterator[ChatModel]:
    chat = ChatModel(AgentClient(home, qapp), ConversationStore(home))
    chat.refresh_models()
    qtbot.waitUntil(lambda: bool(chat.models))
    yield chat
    chat.shutdown()


def answer(qtbot: QtBot, chat: ChatModel, conversation: int) -> Message:
    qtbot.waitUntil(lambda: not chat.busy, timeout=8000)
    return chat.messages(conversation)[-1]


def test_models_text_and_timings(qtbot: QtBot, chat: ChatModel, service: QueueingService) -> None:
    assert [m.id for m in chat.models] == ["tiny"]
    service.tokens = lambda _request, _limit: list(FAMILY)
    chat.set_options(NEW, Options("tiny", "Be brief.", 0.5, 40))
    conversation = chat.ask(NEW, "hello")
    message = answer(qtbot, chat, conversation)
    assert (message.text, message.status) == (FAMILY, "complete")
    served = message.served
    assert served.devices == ("DESK-1", "José 測試", "DESK-3")
    assert served.completion_tokens == len(FAMILY)
    assert served.tokens_per_second
    assert served.first_token is not None
    (asked,) = service.seen
    assert asked.sampling.temperature == 0.5
    assert asked.sampling.max_tokens == 40


def test_the_place_in_the_queue(qtbot: QtBot, chat: ChatModel, service: QueueingService) -> None:
    service.place = 4
    conversation = chat.ask(NEW, "hello")
    qtbot.waitUntil(lambda: getattr(chat.running(conversation), "place", None) == 4)
    service.loop.call_soon_threadsafe(service.turn.set)
    assert answer(qtbot, chat, conversation).failure is None


def test_a_refusal_and_a_failure(qtbot: QtBot, chat: ChatModel, service: QueueingService) -> None:
    service.refuse = NoCapacity("The queue is full.", remedy="Wait.")
    conversation = chat.ask(NEW, "hello")
    failure = answer(qtbot, chat, conversation).failure
    assert failure is not None
    assert (failure.code, failure.message, failure.remedy) == (
        "no_capacity",
        "The queue is full.",
        "Wait.",
    )
    service.refuse = None
    service.fail_after = (3, ChainBroken("DESK-3 left."))
    chat.regenerate(conversation)
    message = answer(qtbot, chat, conversation)
    assert message.status == "failed"
    assert len(message.text.split()) == 3


def test_stopping_cancels_in_the_fleet(
    qtbot: QtBot, chat: ChatModel, service: QueueingService
) -> None:
    service.pace = 0.05
    service.default_max = 60
    conversation = chat.ask(NEW, "hello")
    qtbot.waitUntil(lambda: bool(chat.messages(conversation)[-1].text))
    chat.stop(conversation)
    qtbot.waitUntil(lambda: len(service.cancelled) == 1)

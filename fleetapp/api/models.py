"""Loopback routes for the model library of this PC. Thin, no logic."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from aiohttp import web

from fleetapp.agent.librarian import ModelCalls
from fleetapp.api.admin import Route, done, read_body
from fleetapp.api.errors import json_response
from fleetapp.api.views import stream_views


class _Get(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: str
    name: str = ""
    accept_licence: bool = False


class _Import(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    name: str = ""


class _Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    job: str


class _Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: str


class ModelRoutes:
    """Handlers.

    Args:
        models: who does it.
    """

    def __init__(self, models: Callable[[], ModelCalls]) -> None:
        self._models = models

    def routes(self) -> tuple[Route, ...]:
        """All of them."""
        return (
            ("GET", "models", self._view),
            ("GET", "models/events", self._events),
            ("POST", "models/get", self._get),
            ("POST", "models/import", self._import),
            ("POST", "models/verify", self._verify),
            ("POST", "models/cancel", self._cancel),
            ("POST", "models/remove", self._remove),
        )

    async def _view(self, _request: web.Request) -> web.Response:
        return json_response(await self._models().view())

    async def _events(self, request: web.Request) -> web.StreamResponse:
        return await stream_views(request, self._models().events())

    async def _get(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Get)
        return json_response(
            await self._models().get(asked.model, asked.name, asked.accept_licence)
        )

    async def _import(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Import)
        return json_response(await self._models().import_path(asked.path, asked.name))

    async def _verify(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Model)
        return json_response(await self._models().verify(asked.model))

    async def _cancel(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Job)
        return json_response(await self._models().cancel(asked.job))

    async def _remove(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Model)
        await self._models().remove(asked.model)
        return done()

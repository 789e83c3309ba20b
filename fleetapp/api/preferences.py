"""Loopback routes of the settings window: settings, autostart, the support bundle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec
from aiohttp import web

from fleetapp.agent.preferences import SettingsCalls
from fleetapp.api.admin import Route, read_body
from fleetapp.api.errors import json_response
from fleetapp.types import AutostartView, BundleView


class AutostartCalls(Protocol):
    """Starting the desktop app with the user's session."""

    async def view(self) -> AutostartView:
        """As it stands."""
        ...

    async def set(self, on: bool) -> AutostartView:
        """Switch it; ManagedByPolicy, StorageError if that cannot be."""
        ...


class PreferenceCalls(Protocol):
    """What these routes ask of the agent."""

    @property
    def preferences(self) -> SettingsCalls:
        """Its settings."""
        ...

    @property
    def autostart(self) -> AutostartCalls:
        """The operating system's switch."""
        ...

    async def support_bundle(self, path: str) -> BundleView:
        """Write the bundle to a file; BadRequest if the path is not absolute, StorageError."""
        ...


class _Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    value: bool | int | str


class _Reset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str


class _Switch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    on: bool


class _Bundle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str


class PreferenceRoutes:
    """Handlers. ``?language=de`` chooses the words of a setting.

    Args:
        agent: who does it.
    """

    def __init__(self, agent: Callable[[], PreferenceCalls]) -> None:
        self._agent = agent

    def routes(self) -> tuple[Route, ...]:
        """All of them."""
        return (
            ("GET", "settings", self._settings),
            ("POST", "settings", self._change),
            ("POST", "settings/reset", self._reset),
            ("GET", "autostart", self._autostart),
            ("POST", "autostart", self._set_autostart),
            ("POST", "support-bundle", self._bundle),
        )

    async def _settings(self, request: web.Request) -> web.Response:
        return json_response(await self._agent().preferences.view(_language(request)))

    async def _change(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Change)
        calls = self._agent().preferences
        return json_response(await calls.change(asked.name, asked.value, _language(request)))

    async def _reset(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Reset)
        calls = self._agent().preferences
        return json_response(await calls.reset(asked.name, _language(request)))

    async def _autostart(self, _request: web.Request) -> web.Response:
        return json_response(await self._agent().autostart.view())

    async def _set_autostart(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Switch)
        return json_response(await self._agent().autostart.set(asked.on))

    async def _bundle(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Bundle)
        return json_response(await self._agent().support_bundle(asked.path))


def _language(request: web.Request) -> str:
    return request.query.get("language", "en")

"""Loopback routes for the coordinator's office: its recovery file, and moving it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from aiohttp import web

from fleetapp.agent.office import OfficeCalls
from fleetapp.api.admin import Route, done, read_body
from fleetapp.api.errors import json_response
from fleetapp.api.feed import Limits
from fleetapp.fleet.recovery import MAX_FILE

_LIMITS = Limits(body=MAX_FILE, body_seconds=10.0)


class _Export(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    passphrase: str


class _Use(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file: str
    passphrase: str
    revoke_old: bool = False


class _Move(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    device_id: str


class OfficeRoutes:
    """Handlers.

    Args:
        office: who does it.
    """

    def __init__(self, office: Callable[[], OfficeCalls]) -> None:
        self._office = office

    def routes(self) -> tuple[Route, ...]:
        """All of them."""
        return (
            ("POST", "fleet/recovery/export", self._export),
            ("POST", "fleet/recovery/use", self._use),
            ("POST", "fleet/move", self._move),
        )

    async def _export(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Export)
        return json_response({"file": await self._office().export_recovery(asked.passphrase)})

    async def _use(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Use, _LIMITS)
        await self._office().use_recovery(asked.file, asked.passphrase, asked.revoke_old)
        return done()

    async def _move(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Move)
        await self._office().move_coordinator(asked.device_id)
        return done()

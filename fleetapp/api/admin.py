"""Routes for admins: on every PC's loopback API, and on the hub's front for admins elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar, get_args

import msgspec
from aiohttp import web

from fleetapp.api.body import read_json_body
from fleetapp.api.errors import json_response
from fleetapp.api.feed import Limits
from fleetapp.api.schema import explain, parse_object
from fleetapp.errors import BadRequest
from fleetapp.hub.admin import Admin
from fleetapp.types import Decision, GivenRole

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Route = tuple[str, str, Handler]
"""Method, path below a prefix, what answers."""

_T = TypeVar("_T")
_LIMITS = Limits(body=64 * 1024, body_seconds=10.0)
LAST = 50
"""Entries of the audit log if nobody says how many."""


class _Device(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    device_id: str


class _Role(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    device_id: str
    role: GivenRole


class _Rename(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    device_id: str
    name: str


class _Name(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str


class _Code(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hours: float = 24.0
    uses: int = 10
    approve: bool = False


class _Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    parallel: int = 0
    per_minute: int = 0


class AdminRoutes:
    """Handlers of what only admins may do.

    Args:
        admin: who does it for a request; raises NotAMember if the request is not an admin's.
    """

    def __init__(self, admin: Callable[[web.Request], Admin]) -> None:
        self._admin = admin

    def routes(self) -> tuple[Route, ...]:
        """All of them."""
        return (
            *(("POST", f"fleet/{d}", partial(self._decide, d)) for d in get_args(Decision)),
            ("POST", "fleet/role", self._role),
            ("POST", "fleet/rename", self._rename),
            ("POST", "fleet/name", self._rename_fleet),
            ("GET", "fleet/audit", self._audit),
            ("GET", "fleet/audit/check", self._check),
            ("GET", "fleet/codes", self._codes),
            ("POST", "fleet/codes", self._make_code),
            ("DELETE", "fleet/codes/{id}", self._revoke_code),
            ("GET", "keys", self._keys),
            ("POST", "keys", self._make_key),
            ("DELETE", "keys/{id}", self._revoke_key),
        )

    async def _decide(self, decision: Decision, request: web.Request) -> web.Response:
        admin, asked = self._admin(request), await read_body(request, _Device)
        await admin.decide(decision, asked.device_id)
        return done()

    async def _role(self, request: web.Request) -> web.Response:
        admin, asked = self._admin(request), await read_body(request, _Role)
        await admin.set_role(asked.device_id, asked.role)
        return done()

    async def _rename(self, request: web.Request) -> web.Response:
        admin, asked = self._admin(request), await read_body(request, _Rename)
        await admin.rename(asked.device_id, asked.name)
        return done()

    async def _rename_fleet(self, request: web.Request) -> web.Response:
        admin, asked = self._admin(request), await read_body(request, _Name)
        await admin.rename_fleet(asked.name)
        return done()

    async def _audit(self, request: web.Request) -> web.Response:
        admin, text = self._admin(request), request.query.get("last", str(LAST))
        if not text.isascii() or not text.isdecimal() or len(text) > 9:
            raise BadRequest("'last' is the number of entries.", param="last")
        return json_response(await admin.audit(int(text)))

    async def _check(self, request: web.Request) -> web.Response:
        noted = request.query.get("noted", "")
        return json_response(await self._admin(request).verify_audit(noted))

    async def _codes(self, request: web.Request) -> web.Response:
        return json_response(await self._admin(request).codes())

    async def _make_code(self, request: web.Request) -> web.Response:
        admin, asked = self._admin(request), await read_body(request, _Code)
        return json_response(await admin.make_code(asked.hours, asked.uses, asked.approve))

    async def _revoke_code(self, request: web.Request) -> web.Response:
        await self._admin(request).revoke_code(request.match_info["id"])
        return done()

    async def _keys(self, request: web.Request) -> web.Response:
        return json_response(await self._admin(request).keys())

    async def _make_key(self, request: web.Request) -> web.Response:
        admin, asked = self._admin(request), await read_body(request, _Key)
        return json_response(await admin.make_key(asked.name, asked.parallel, asked.per_minute))

    async def _revoke_key(self, request: web.Request) -> web.Response:
        await self._admin(request).revoke_key(request.match_info["id"])
        return done()


def done() -> web.Response:
    """The answer when there is nothing to say."""
    return json_response({"ok": True})


async def read_body(request: web.Request, kind: type[_T], limits: Limits = _LIMITS) -> _T:
    """The body as ``kind``; no body at all stands for one without fields.

    Raises:
        BadRequest and its kinds: it is something else.
    """
    raw = await read_json_body(request, limits) if request.can_read_body else b"{}"
    try:
        return msgspec.convert(parse_object(raw), kind)
    except msgspec.ValidationError as error:
        raise explain(error) from error

"""An admin on a PC that is not the coordinator: the same calls, over the control connection."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec

from fleetapp.agent.hublink import HubLink, removed
from fleetapp.agent.joining import read_reply
from fleetapp.errors import NoHub, NotAMember, ProtocolError
from fleetapp.fleet.control import BROKEN_JSON
from fleetapp.hub.keys import ApiKeyView
from fleetapp.types import AuditCheck, AuditEntry, Decision, GivenRole, JoinCodeView

CALL_SECONDS = 20.0
_T = TypeVar("_T")


class RemoteAdmin:
    """``hub.admin.Admin`` by way of ``/admin`` on the hub, which checks the role of this PC."""

    def __init__(self, link: HubLink) -> None:
        self._link = link

    async def decide(self, decision: Decision, device_id: str) -> None:
        await self._call("POST", f"fleet/{decision}", Any, {"device_id": device_id})

    async def set_role(self, device_id: str, role: GivenRole) -> None:
        await self._call("POST", "fleet/role", Any, {"device_id": device_id, "role": role})

    async def rename(self, device_id: str, name: str) -> None:
        await self._call("POST", "fleet/rename", Any, {"device_id": device_id, "name": name})

    async def rename_fleet(self, name: str) -> None:
        await self._call("POST", "fleet/name", Any, {"name": name})

    async def codes(self) -> Sequence[JoinCodeView]:
        return await self._call("GET", "fleet/codes", tuple[JoinCodeView, ...])

    async def make_code(self, hours: float, uses: int, approve: bool) -> JoinCodeView:
        body = {"hours": hours, "uses": uses, "approve": approve}
        return await self._call("POST", "fleet/codes", JoinCodeView, body)

    async def revoke_code(self, code_id: str) -> None:
        await self._call("DELETE", f"fleet/codes/{quote(code_id, safe='')}", Any)

    async def keys(self) -> Sequence[ApiKeyView]:
        return await self._call("GET", "keys", tuple[ApiKeyView, ...])

    async def make_key(self, name: str, parallel: int, per_minute: int) -> ApiKeyView:
        body = {"name": name, "parallel": parallel, "per_minute": per_minute}
        return await self._call("POST", "keys", ApiKeyView, body)

    async def revoke_key(self, key_id: str) -> None:
        await self._call("DELETE", f"keys/{quote(key_id, safe='')}", Any)

    async def audit(self, count: int) -> Sequence[AuditEntry]:
        return await self._call("GET", f"fleet/audit?last={count}", tuple[AuditEntry, ...])

    async def verify_audit(self, noted: str) -> AuditCheck:
        path = f"fleet/audit/check?noted={quote(noted, safe='')}"
        return await self._call("GET", path, AuditCheck)

    async def _call(self, method: str, path: str, kind: type[_T], body: object = None) -> _T:
        more = {} if body is None else {
            "data": msgspec.json.encode(body), "headers": {"Content-Type": "application/json"}
        }  # fmt: skip
        try:
            async with (
                asyncio.timeout(CALL_SECONDS),
                self._link.request(method, f"/admin/{path}", **more) as response,
            ):
                raw = await read_reply(response)
        except NotAMember as exc:
            raise removed() if self._link.removed else exc from None
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            why = "in time" if isinstance(exc, TimeoutError) else f"({exc or type(exc).__name__})"
            raise NoHub(f"The coordinator did not answer {why}.") from exc
        try:
            return msgspec.json.decode(raw, type=kind)
        except BROKEN_JSON as exc:
            raise ProtocolError(f"The coordinator's answer cannot be read: {exc}.") from exc

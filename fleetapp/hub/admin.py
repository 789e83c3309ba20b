"""What an admin may ask of the fleet, wherever that admin sits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from msgspec import structs

from fleetapp.errors import BadRequest
from fleetapp.hub.decisions import decide, rename, rename_fleet, set_role
from fleetapp.hub.hub import Hub
from fleetapp.hub.keys import ApiKeyView
from fleetapp.types import AuditCheck, AuditEntry, Decision, GivenRole, JoinCodeView

LOCAL = "local"
"""The actor that the coordinator's own user is."""
MAX_ENTRIES = 10_000
"""Lines of the audit log in one answer."""


class Admin(Protocol):
    """Implemented by the hub (:class:`HubAdmin`) and, over the network, by every other member.

    All raise FleetError; NotAMember if whoever asks is no admin.
    """

    async def decide(self, decision: Decision, device_id: str) -> None:
        """The admin's word on one PC, by its whole device id. NotFound if it is about nobody."""
        ...

    async def set_role(self, device_id: str, role: GivenRole) -> None:
        """Make a member an admin or an admin a plain member. NotFound if it is about nobody."""
        ...

    async def rename(self, device_id: str, name: str) -> None:
        """Call a member ``name``; empty gives it its own name back. NotFound, BadRequest."""
        ...

    async def rename_fleet(self, name: str) -> None:
        """Call the whole fleet ``name``. BadRequest if that is no name."""
        ...

    async def codes(self) -> Sequence[JoinCodeView]:
        """Join codes, without their secrets."""
        ...

    async def make_code(self, hours: float, uses: int, approve: bool) -> JoinCodeView:
        """A new join code; its text is in the reply and nowhere else."""
        ...

    async def revoke_code(self, code_id: str) -> None:
        """Make a code worthless. NotFound if there is none."""
        ...

    async def keys(self) -> Sequence[ApiKeyView]:
        """API keys, without their secrets."""
        ...

    async def make_key(self, name: str, parallel: int, per_minute: int) -> ApiKeyView:
        """A new API key; its text is in the reply and nowhere else. A limit of 0 is none."""
        ...

    async def revoke_key(self, key_id: str) -> None:
        """Make an API key worthless. NotFound if there is none."""
        ...

    async def audit(self, count: int) -> Sequence[AuditEntry]:
        """The newest entries of the audit log, oldest first."""
        ...

    async def verify_audit(self, noted: str) -> AuditCheck:
        """Follow the chain of the whole audit log; see ``hub.audit``."""
        ...


class HubAdmin:
    """An ``Admin`` on the coordinator.

    Args:
        hub: what is administered.
        actor: who does it, for the audit log: a device id, or ``LOCAL``.
    """

    def __init__(self, hub: Hub, actor: str) -> None:
        self._hub = hub
        self._actor = actor

    def _note(self, action: str, **details: str | int | float | bool) -> None:
        self._hub.audit.write(self._actor, action, **details)

    async def decide(self, decision: Decision, device_id: str) -> None:
        decide(self._hub, decision, device_id, self._actor)

    async def set_role(self, device_id: str, role: GivenRole) -> None:
        set_role(self._hub, device_id, role, self._actor)

    async def rename(self, device_id: str, name: str) -> None:
        rename(self._hub, device_id, name, self._actor)

    async def rename_fleet(self, name: str) -> None:
        rename_fleet(self._hub, name, self._actor)

    async def codes(self) -> Sequence[JoinCodeView]:
        return self._hub.codes.views()

    async def make_code(self, hours: float, uses: int, approve: bool) -> JoinCodeView:
        view = await asyncio.to_thread(
            self._hub.codes.create, hours=hours, uses=uses, approve=approve
        )
        self._note("code_created", code=view.code_id, uses=uses, approve=approve)
        return view

    async def revoke_code(self, code_id: str) -> None:
        self._hub.codes.revoke(code_id)
        self._note("code_revoked", code=code_id)

    async def keys(self) -> Sequence[ApiKeyView]:
        return [structs.replace(k, made_on=self._name(k)) for k in self._hub.keys.list()]

    def _name(self, key: ApiKeyView) -> str:
        """Of the PC where a key was made: what it is called now if it is a member still."""
        member = self._hub.membership.members.get(key.made_by)
        return member.name if member is not None else key.made_on

    async def make_key(self, name: str, parallel: int, per_minute: int) -> ApiKeyView:
        maker = self._hub.identity.device_id if self._actor == LOCAL else self._actor
        member = self._hub.membership.members.get(maker)
        view = self._hub.keys.create(
            name, parallel, per_minute, maker, member.name if member is not None else ""
        )
        self._note("key_created", key=view.id, name=view.name)
        return view

    async def revoke_key(self, key_id: str) -> None:
        self._hub.keys.revoke(key_id)
        self._note("key_revoked", key=key_id)

    async def audit(self, count: int) -> Sequence[AuditEntry]:
        if not 1 <= count <= MAX_ENTRIES:
            raise BadRequest(f"1 to {MAX_ENTRIES} lines can be asked for at once.", param="last")
        return await asyncio.to_thread(self._hub.audit.last, count)

    async def verify_audit(self, noted: str) -> AuditCheck:
        return await asyncio.to_thread(self._hub.audit.verify, noted)

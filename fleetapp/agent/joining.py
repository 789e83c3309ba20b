"""How a PC joins: find the hub, check its authority against the code, ask for a certificate.

The first fetch is unverified on purpose: the code carries the hash of the authority's key, so
nothing else needs to be trusted. Everything after that trusts only this authority.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import aiohttp
import msgspec

from fleetapp.errors import (
    BadRequest,
    BadSignature,
    FleetError,
    NoHub,
    ProtocolError,
    WrongFleet,
    from_code,
)
from fleetapp.fleet import certificates, tls
from fleetapp.fleet.control import AuthorityReply, JoinReply, JoinRequest, Signed
from fleetapp.fleet.enrolment import FleetInfo
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.joincode import JoinCode
from fleetapp.fleet.membership import verify_membership
from fleetapp.types import PROTOCOL_VERSION

log = logging.getLogger("fleetapp.agent.joining")

CALL_DEADLINE = 10.0
POLL_SECONDS = 2.0
MAX_REPLY = 1 << 20

Address = tuple[str, int]


class ErrorBody(msgspec.Struct, frozen=True):
    """How every HTTP surface of fleetapp words an error."""

    message: str
    code: str = ""
    remedy: str = ""


class ErrorReply(msgspec.Struct, frozen=True):
    error: ErrorBody


@dataclass(frozen=True)
class Joined:
    """What a node keeps."""

    authority: bytes
    leaf: bytes
    membership: Signed
    info: FleetInfo


async def read_reply(response: aiohttp.ClientResponse) -> bytes:
    """The body of a success, or the typed error of a failure.

    Raises:
        FleetError: what the other side said.
    """
    body = await response.content.read(MAX_REPLY)
    if response.status < 400:
        return body
    try:
        error = msgspec.json.decode(body, type=ErrorReply).error
    except msgspec.MsgspecError:
        raise ProtocolError(f"The coordinator answered with HTTP {response.status}.") from None
    raise from_code(error.code, error.message, error.remedy)


async def join(
    identity: Identity,
    code: JoinCode,
    addresses: Sequence[Address],
    name: str,
    waiting: Callable[[str], None],
    deadline: float,
) -> Joined:
    """Join through the first address whose authority is the code's.

    Args:
        identity: this PC's key.
        code: what the admin handed out.
        addresses: where a hub may be, best first.
        name: shown to the admin.
        waiting: told in one sentence what is being waited for.
        deadline: seconds for everything, the admin's approval included.

    Raises:
        NoHub: none of the addresses answers.
        WrongFleet: only hubs of other fleets answer.
        BadJoinCode and its kinds: what the hub says of the code.
    """
    failure: FleetError = NoHub(
        "No coordinator of that fleet was found on this network.",
        remedy="Check that it runs and is on the same network, or give its address "
        "(fleetapp fleet join CODE --hub HOST:PORT).",
    )
    async with asyncio.timeout(deadline):
        for address in addresses:
            try:
                return await _join_at(identity, code, address, name, waiting)
            except WrongFleet as exc:
                failure = exc
            except (aiohttp.ClientError, OSError) as exc:
                log.info("no hub at %s:%d: %s", *address, exc)
                failure = NoHub(
                    f"The coordinator at {address[0]}:{address[1]} cannot be reached: {exc}.",
                    remedy="Check the address, and that no firewall blocks the port.",
                )
    raise failure


async def _join_at(
    identity: Identity,
    code: JoinCode,
    address: Address,
    name: str,
    waiting: Callable[[str], None],
) -> Joined:
    base = f"https://{bracket(address[0])}:{address[1]}"
    where = f"The coordinator at {address[0]}:{address[1]}"
    timeout = aiohttp.ClientTimeout(total=CALL_DEADLINE)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        async with session.get(f"{base}/join/authority", ssl=tls.join_client_context()) as response:
            reply = _decode(await read_reply(response), AuthorityReply)
        pem = reply.authority.encode()
        authority = certificates.check_authority(pem, code.spki_prefix)
        fleet = certificates.fleet_of(authority)
        ask = JoinRequest(
            protocol=PROTOCOL_VERSION,
            secret=code.secret.hex(),
            csr=identity.csr().decode(),
            name=name,
        )
        while True:
            try:
                async with session.post(
                    f"{base}/join/request",
                    data=msgspec.json.encode(ask),
                    headers={"Content-Type": "application/json"},
                    ssl=tls.pinned_context(pem),
                    server_hostname=tls.hostname_of(reply.hub_device, fleet),
                ) as response:
                    answer = _decode(await read_reply(response), JoinReply)
            except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as e:
                cause = getattr(e, "certificate_error", None) or e.os_error
                raise tls.explain_tls_error(cause, where) from e
            if not answer.pending:
                break
            waiting(f"Waiting for the admin to approve this PC; its id is {identity.device_id}.")
            await asyncio.sleep(POLL_SECONDS)
    if answer.membership is None:
        raise BadSignature(f"{where} sent no membership list.")
    membership = verify_membership(answer.membership, certificates.public_key_of(authority))
    hub = membership.members.get(reply.hub_device)
    if hub is None or "coordinator" not in hub.roles:
        raise WrongFleet(f"The PC at {address[0]} is not a coordinator of its fleet.")
    return Joined(
        authority=pem,
        leaf=answer.leaf.encode(),
        membership=answer.membership,
        info=FleetInfo(
            fleet_id=fleet,
            name=answer.fleet_name,
            hub_device=hub.device_id,
            hub_addresses=(f"{bracket(address[0])}:{address[1]}",),
        ),
    )


_Reply = TypeVar("_Reply")


def _decode(body: bytes, kind: type[_Reply]) -> _Reply:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as exc:
        raise ProtocolError(f"The PC that answered is not a coordinator: {exc}.") from exc


def bracket(host: str) -> str:
    """An IPv6 address as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def split_address(text: str) -> Address:
    """``host:port`` or ``[v6]:port`` in its parts.

    Raises:
        BadRequest: it is something else.
    """
    host, _, port = text.strip().rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise BadRequest(
            f"'{text}' is not an address of the form host:port.",
            remedy="Give the coordinator's address with its control port, e.g. 192.0.2.7:8485.",
        )
    return host.strip("[]"), int(port)

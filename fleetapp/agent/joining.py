"""How a PC joins: find the hub, check its authority against the code, ask for a certificate.

The first fetch is unverified on purpose: the code carries the hash of the authority's key, so
nothing else needs to be trusted. Everything after that trusts only this authority.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import aiohttp
import msgspec
from cryptography import x509

from fleetapp.errors import (
    BadSignature,
    FleetError,
    NoHub,
    ProtocolError,
    WrongFleet,
    from_code,
)
from fleetapp.fleet import tls
from fleetapp.fleet.control import Signed
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.joincode import JoinCode
from fleetapp.fleet.membership import verify_membership
from fleetapp.types import PROTOCOL_VERSION

log = logging.getLogger("fleetapp.agent.joining")

CALL_DEADLINE = 10.0
POLL_SECONDS = 2.0
MAX_REPLY = 1 << 20

Address = tuple[str, int]


class _AuthorityReply(msgspec.Struct, frozen=True):
    authority: str
    hub_device: str
    fleet: str


class _JoinReply(msgspec.Struct, frozen=True):
    pending: bool
    fleet_name: str
    leaf: str = ""
    membership: Signed | None = None


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

    authority: str
    leaf: str
    membership: Signed
    fleet_name: str
    hub: Address


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
    base = f"https://{_bracket(address[0])}:{address[1]}"
    timeout = aiohttp.ClientTimeout(total=CALL_DEADLINE)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        async with session.get(
            f"{base}/join/authority", ssl=tls.join_client_context()
        ) as response:
            reply = msgspec.json.decode(await read_reply(response), type=_AuthorityReply)
        certificate = x509.load_pem_x509_certificate(reply.authority.encode())
        if not hmac.compare_digest(tls.spki_bytes(certificate)[:16], code.authority_hash):
            raise WrongFleet(
                f"The coordinator at {address[0]} belongs to another fleet than the code.",
                remedy="Check the code, or give the address of the right coordinator.",
            )
        context = tls.pinned_context(reply.authority)
        fleet = tls.fleet_of(certificate)
        ask = {
            "protocol": PROTOCOL_VERSION,
            "secret": code.secret.hex(),
            "csr": identity.csr(fleet),
            "name": name,
        }
        while True:
            try:
                async with session.post(
                    f"{base}/join/request",
                    json=ask,
                    ssl=context,
                    server_hostname=tls.host_name(reply.hub_device, fleet),
                ) as response:
                    answer = msgspec.json.decode(await read_reply(response), type=_JoinReply)
            except (aiohttp.ClientConnectorCertificateError, ssl.SSLError) as exc:
                raise WrongFleet(
                    f"The coordinator at {address[0]} could not prove that it belongs to the "
                    f"code's fleet: {exc}."
                ) from exc
            if not answer.pending:
                break
            waiting(f"Waiting for the admin to approve this PC; its id is {identity.device_id}.")
            await asyncio.sleep(POLL_SECONDS)
    if answer.membership is None:
        raise BadSignature("The coordinator sent no membership list.")
    membership = verify_membership(answer.membership, reply.authority)
    if not any(
        m.device_id == reply.hub_device and "coordinator" in m.roles for m in membership.members
    ):
        raise WrongFleet(f"The PC at {address[0]} is not a coordinator of its fleet.")
    return Joined(
        authority=reply.authority,
        leaf=answer.leaf,
        membership=answer.membership,
        fleet_name=answer.fleet_name,
        hub=address,
    )


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host

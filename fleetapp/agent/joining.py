"""How a PC joins: find the hub, check its authority against the code, ask for a certificate.

The first fetch is unverified on purpose: the code carries the hash of the authority's key, so
nothing else needs to be trusted. Everything after that trusts only this authority.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TypeVar

import aiohttp
import msgspec

from fleetapp.errors import (
    BadRequest,
    BadSignature,
    FleetError,
    NoHub,
    NotAMember,
    ProtocolError,
    WrongFleet,
    from_code,
)
from fleetapp.fleet import certificates, tls
from fleetapp.fleet.control import (
    BROKEN_JSON,
    AuthorityReply,
    JoinReply,
    JoinRequest,
    Signed,
)
from fleetapp.fleet.enrolment import FleetInfo
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.joincode import JoinCode
from fleetapp.fleet.membership import verify_membership
from fleetapp.platform.network import connect_problem
from fleetapp.types import PROTOCOL_VERSION, DeviceId, FleetId

log = logging.getLogger("fleetapp.agent.joining")

CALL_DEADLINE = 10.0
POLL_SECONDS = 2.0
REQUEST = "/join/request"
MAX_REPLY = 8 << 20

Address = tuple[str, int]
_Reply = TypeVar("_Reply")


class ErrorBody(msgspec.Struct, frozen=True):
    """How every HTTP surface of fleetapp words an error."""

    message: str
    code: str = ""
    remedy: str = ""


APPROVAL = "Waiting for the admin"
"""How the sentence begins while a person has to say yes."""


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
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) > MAX_REPLY:
            raise ProtocolError("The PC that answered sends more than a reply may have.")
    if response.status < 400:
        return bytes(body)
    try:
        error = msgspec.json.decode(body, type=ErrorReply).error
    except BROKEN_JSON:
        raise ProtocolError(f"The coordinator answered with HTTP {response.status}.") from None
    raise from_code(error.code, error.message, error.remedy)


async def join(
    identity: Identity,
    code: JoinCode,
    addresses: Sequence[Address],
    name: str,
    waiting: Callable[[str], None],
    deadline: float,
    poll: float = POLL_SECONDS,
) -> Joined:
    """Join through the first address whose authority is the code's.

    Args:
        identity: this PC's key.
        code: what the admin handed out.
        addresses: where a hub may be, best first.
        name: shown to the admin.
        waiting: told in one sentence what is being waited for.
        deadline: seconds for everything, the admin's approval included.
        poll: seconds between two questions whether the admin has approved.

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
    timeout = aiohttp.ClientTimeout(total=CALL_DEADLINE)
    async with asyncio.timeout(deadline), aiohttp.ClientSession(timeout=timeout) as session:
        for address in addresses:
            # Anybody may announce anything, so whatever is wrong with one address is no reason
            # not to try the next; what the code's own fleet says is final.
            try:
                hub = await authority_at(session, code.spki_prefix, address)
            except (FleetError, aiohttp.ClientError, OSError) as exc:
                log.info("no hub of that fleet at %s:%d: %s", *address, exc)
                failure = _more_telling(failure, _unusable(exc, address))
                continue
            try:
                return await _ask(session, hub, identity, code, name, waiting, poll)
            except (aiohttp.ClientError, OSError) as exc:
                failure = _unusable(exc, address)
    raise failure


def proof_of_key(identity: Identity, name: str) -> JoinRequest:
    """The request of a member for a new certificate; signing it takes the key, and no code."""
    return JoinRequest(protocol=PROTOCOL_VERSION, secret="", csr=identity.csr().decode(), name=name)


async def ask_for_leaf(
    ask: JoinRequest,
    authority: bytes,
    fleet: FleetId,
    coordinators: Sequence[DeviceId],
    addresses: Sequence[Address],
) -> bytes:
    """A new leaf (PEM) from the first coordinator that answers.

    No certificate is shown, so it does not matter whether the present one has expired.

    Raises:
        NoHub: nobody answers; WrongFleet and others if those who do are somebody else.
        NotAMember: the fleet does not count this PC as a member.
    """
    failure: FleetError = NoHub("No coordinator was found.")
    timeout = aiohttp.ClientTimeout(total=CALL_DEADLINE)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for address in addresses:
            for device in coordinators:
                try:
                    hub = HubAddress(address, device, authority, fleet)
                    answer = await post(session, hub, ask, REQUEST, JoinReply)
                except (FleetError, aiohttp.ClientError, OSError) as exc:
                    failure = _unusable(exc, address)
                else:
                    if not answer.pending:
                        return answer.leaf.encode()
                    failure = NotAMember("The admin has not let this PC in yet.")
    raise failure


@dataclass(frozen=True)
class HubAddress:
    """A coordinator whose authority is the code's."""

    address: Address
    device: DeviceId
    authority: bytes
    fleet: FleetId
    ahead: float = 0.0
    """Seconds by which this PC's clock is ahead of the hub's, as far as the hub says the time."""

    @property
    def base(self) -> str:
        return f"https://{bracket(self.address[0])}:{self.address[1]}"

    @property
    def where(self) -> str:
        return f"The coordinator at {self.address[0]}:{self.address[1]}"


async def authority_at(
    session: aiohttp.ClientSession, spki_prefix: bytes, address: Address
) -> HubAddress:
    """The hub at an address, if it shows the authority whose hash begins with ``spki_prefix``.

    Nothing is verified but that: whether it has such an authority's leaf, the next call shows.

    Raises:
        WrongFleet, Malformed, ProtocolError: it does not.
        aiohttp.ClientError, OSError: nobody answers.
    """
    url = f"https://{bracket(address[0])}:{address[1]}/join/authority"
    async with session.get(url, ssl=tls.join_client_context()) as response:
        ahead = _ahead(response.headers.get("Date", ""))
        reply = _decode(await read_reply(response), AuthorityReply)
    pem = reply.authority.encode()
    authority = certificates.check_authority(pem, spki_prefix)
    return HubAddress(
        address, DeviceId(reply.hub_device), pem, certificates.fleet_of(authority), ahead
    )


async def membership_from(
    session: aiohttp.ClientSession, hub: HubAddress, ask: JoinRequest
) -> Signed:
    """The newest membership list that a hub has, for whoever proves a key that is in it.

    Raises:
        FleetError: what the hub says, or that it is not the one that it claims to be.
        aiohttp.ClientError, OSError: it does not answer.
    """
    return await post(session, hub, ask, "/join/membership", Signed)


async def _ask(
    session: aiohttp.ClientSession,
    hub: HubAddress,
    identity: Identity,
    code: JoinCode,
    name: str,
    waiting: Callable[[str], None],
    poll: float,
) -> Joined:
    ask = JoinRequest(
        protocol=PROTOCOL_VERSION,
        secret=code.secret.hex(),
        csr=identity.csr().decode(),
        name=name,
    )
    queued = False
    while True:
        try:
            answer = await post(session, hub, ask, REQUEST, JoinReply)
        except (aiohttp.ClientError, OSError):
            if not queued:
                raise
            # The coordinator restarts, say; it remembers who waits.
        else:
            if not answer.pending:
                return _check(hub, answer)
            queued = True
        waiting(f"Waiting for the admin to approve this PC; its id is {identity.device_id}.")
        await asyncio.sleep(poll)


async def post(
    session: aiohttp.ClientSession, hub: HubAddress, ask: object, path: str, kind: type[_Reply]
) -> _Reply:
    """Send a coordinator something over a connection that trusts only its authority.

    Raises:
        FleetError: what the other side says, or that it is not that coordinator.
        aiohttp.ClientError, OSError: it does not answer.
    """
    try:
        async with session.post(
            f"{hub.base}{path}",
            data=msgspec.json.encode(ask),
            headers={"Content-Type": "application/json"},
            ssl=tls.pinned_context(hub.authority),
            server_hostname=tls.hostname_of(hub.device, hub.fleet),
        ) as response:
            return _decode(await read_reply(response), kind)
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as exc:
        cause = getattr(exc, "certificate_error", None) or exc.os_error
        raise _about_clocks(tls.explain_tls_error(cause, hub.where), hub.ahead) from exc


def _ahead(date: str) -> float:
    try:
        return time.time() - parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _about_clocks(error: FleetError, ahead: float) -> FleetError:
    """Name the difference of the clocks where it may be the reason; else the error as it is."""
    if not isinstance(error, NotAMember) or abs(ahead) < certificates.CLOCK_SLACK.total_seconds():
        return error
    way = f"{abs(ahead) / 86_400:.0f} days {'ahead of' if ahead > 0 else 'behind'}"
    return NotAMember(
        f"{error.message} This PC's clock is {way} the coordinator's.",
        remedy="Set date and time of this PC (or of the coordinator, if that is the wrong one).",
    )


def _check(hub: HubAddress, answer: JoinReply) -> Joined:
    if answer.membership is None:
        raise BadSignature(f"{hub.where} sent no membership list.")
    authority = certificates.load_pem(hub.authority)
    membership = verify_membership(answer.membership, certificates.public_key_of(authority))
    coordinator = membership.members.get(hub.device)
    if coordinator is None or "coordinator" not in coordinator.roles:
        raise WrongFleet(f"The PC at {hub.address[0]} is not a coordinator of its fleet.")
    return Joined(
        authority=hub.authority,
        leaf=answer.leaf.encode(),
        membership=answer.membership,
        info=FleetInfo(
            fleet_id=hub.fleet,
            name=answer.fleet_name,
            hub_device=hub.device,
            hub_addresses=(f"{bracket(hub.address[0])}:{hub.address[1]}",),
        ),
    )


def _unusable(exc: Exception, address: Address) -> FleetError:
    """Why there is no hub at an address, in one sentence."""
    if isinstance(exc, FleetError):
        return exc
    return NoHub(
        f"The coordinator at {address[0]}:{address[1]} cannot be reached: {connect_problem(exc)}.",
        remedy="Check the address, and that no firewall blocks the port.",
    )


def _more_telling(known: FleetError, new: FleetError) -> FleetError:
    """Somebody of another fleet says more than somebody who does not answer."""
    return known if isinstance(known, WrongFleet) and isinstance(new, NoHub) else new


def _decode(body: bytes, kind: type[_Reply]) -> _Reply:
    """Send a coordinator something over a connection that trusts only its authority.

    Raises:
        FleetError: what the other side says, or that it is not that coordinator.
        aiohttp.ClientError, OSError: it does not answer.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except BROKEN_JSON as exc:
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

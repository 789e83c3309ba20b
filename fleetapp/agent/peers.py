"""Members as sources of chunks: reached over mutual TLS at the addresses the hub names."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable

import aiohttp

from fleetapp.agent.joining import bracket, read_reply
from fleetapp.agent.swarm import Giver
from fleetapp.errors import NotAMember, PeerClosed
from fleetapp.fleet import keys, tls
from fleetapp.fleet.control import Neighbour
from fleetapp.fleet.enrolment import Credentials
from fleetapp.fleet.trust import TrustList
from fleetapp.platform.network import Address, connect_problem, nearest_first

log = logging.getLogger("fleetapp.agent.peers")

CONNECT_DEADLINE = 3.0
LEFT_OUT = 600.0
"""How long a member that sent damaged data is asked for nothing (s)."""
_PIECE = 1 << 18


class Peers:
    """One per membership. Its connections are made on demand and closed with it.

    Args:
        credentials: of this PC.
        trust: who is a member.
        own: addresses of this PC, to try near ones first.
    """

    def __init__(
        self,
        credentials: Credentials,
        trust: TrustList,
        own: Callable[[], Iterable[Address]],
    ) -> None:
        self._credentials = credentials
        self._trust = trust
        self._own = own
        self._context = tls.client_context(credentials)
        self._session: aiohttp.ClientSession | None = None
        self._liars: dict[str, float] = {}

    def givers(self, sources: Iterable[Neighbour]) -> list[Giver]:
        """Those of the named members that may be asked."""
        now = time.monotonic()
        return [
            Giver(
                name=f"device {peer.device_id}", source=_Member(self, peer), device=peer.device_id
            )
            for peer in sources
            if peer.port
            and peer.device_id != self._credentials.device_id
            and self._trust.allows(peer.spki)
            and keys.device_id_of(peer.spki) == peer.device_id
            and now - self._liars.get(peer.device_id, -LEFT_OUT) >= LEFT_OUT
        ]

    def leave_out(self, giver: Giver) -> None:
        """It sent damaged data: ask it for nothing for a while."""
        self._liars[giver.device] = time.monotonic()

    def renew(self) -> None:
        """Show the leaf that is on disk now on new connections."""
        tls.show_leaf(self._context, self._credentials)

    async def close(self) -> None:
        """End all connections."""
        if self._session is not None:
            await self._session.close()

    @contextlib.asynccontextmanager
    async def get(
        self, peer: Neighbour, sha256: str, offset: int
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The response to one question, from the first address that answers.

        Raises:
            NotAMember: it has been shut out meanwhile.
            PeerClosed: it cannot be reached; aiohttp's errors while reading are the caller's.
        """
        self._trust.require(peer.spki)
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_DEADLINE)
            self._session = aiohttp.ClientSession(timeout=timeout)
        failure: Exception = NotAMember("It has no address.")
        for host in nearest_first(peer.hosts, self._own()):
            try:
                response = await self._session.get(
                    f"https://{bracket(host)}:{peer.port}/blobs/{sha256}",
                    headers={"Range": f"bytes={offset}-"} if offset else {},
                    ssl=self._context,
                    # The certificate's name is made of the key: another device has another name.
                    server_hostname=tls.hostname_of(peer.device_id, self._credentials.fleet_id),
                )
            except (aiohttp.ClientConnectorError, TimeoutError) as exc:
                failure = exc
                continue
            async with response:
                yield response
            return
        raise PeerClosed(f"It cannot be reached: {connect_problem(failure)}.")


class _Member:
    """A ``ChunkSource``."""

    def __init__(self, peers: Peers, peer: Neighbour) -> None:
        self._peers = peers
        self._peer = peer

    async def read(self, sha256: str, offset: int) -> AsyncIterator[bytes]:
        try:
            async with self._peers.get(self._peer, sha256, offset) as response:
                if response.status >= 400:
                    await read_reply(response)
                if offset and response.status != 206:
                    raise PeerClosed("It did not resume the chunk.")
                async for data in response.content.iter_chunked(_PIECE):
                    yield data
        except aiohttp.ClientError as exc:
            raise PeerClosed(f"It broke off ({exc or type(exc).__name__}).") from exc

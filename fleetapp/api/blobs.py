"""What members serve to one another: chunks of shards, by their hash, and nothing else."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from aiohttp import web

from fleetapp.agent.limiter import Limiter
from fleetapp.api.errors import error_middleware
from fleetapp.errors import BadRequest, NoCapacity, NotAMember
from fleetapp.fleet import tls
from fleetapp.fleet.trust import TrustList

AT_ONCE = 4
"""Chunks served at the same time; who comes then is sent to another source."""
SEND_DEADLINE = 30.0
_PIECE = 1 << 17


class BlobApi:
    """One route, for members only.

    Args:
        read: a chunk by its hash, verified; blocks on the disk. Raises NotFound.
        trust: who is a member.
        willing: whether this PC gives anything away just now.
        limiter: of what goes out.
    """

    def __init__(
        self,
        read: Callable[[str], bytes],
        trust: TrustList,
        willing: Callable[[], bool],
        limiter: Limiter,
    ) -> None:
        self._read = read
        self._trust = trust
        self._willing = willing
        self._limiter = limiter
        self._serving = 0

    def app(self) -> web.Application:
        """To be served behind ``tls.server_context``, which asks for a certificate."""
        app = web.Application(middlewares=[error_middleware], client_max_size=1024)
        app.router.add_get("/blobs/{sha256}", self._blob)
        return app

    async def _blob(self, request: web.Request) -> web.StreamResponse:
        spki = _spki(request)
        self._trust.require(spki)
        if not self._willing():
            raise NoCapacity("This PC shares nothing at present.", remedy="Ask another.")
        if self._serving >= AT_ONCE:
            raise NoCapacity("This PC serves others already.", remedy="Ask another.")
        self._serving += 1
        try:
            data = await asyncio.to_thread(self._read, request.match_info["sha256"])
            return await self._send(request, spki, data)
        finally:
            self._serving -= 1

    async def _send(self, request: web.Request, spki: str, data: bytes) -> web.StreamResponse:
        size = len(data)
        start = offset(request.headers.get("Range", ""), size)
        response = web.StreamResponse(status=206 if start else 200)
        response.content_length = size - start
        if start:
            response.headers["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
        async with asyncio.timeout(SEND_DEADLINE):
            await response.prepare(request)
        for at in range(start, size, _PIECE):
            piece = data[at : at + _PIECE]
            await self._limiter.take(len(piece))
            if not self._trust.allows(spki) or not self._willing():
                assert request.transport is not None
                request.transport.abort()
                break
            async with asyncio.timeout(SEND_DEADLINE):
                await response.write(piece)
        return response


def _spki(request: web.Request) -> str:
    ssl_object = request.transport.get_extra_info("ssl_object") if request.transport else None
    spki = tls.peer_spki(ssl_object) if ssl_object is not None else None
    if spki is None:
        raise NotAMember("This address serves members of the fleet only.")
    return spki


def offset(header: str, size: int) -> int:
    """Start of a ``bytes=N-`` range; 0 without one.

    Raises:
        BadRequest: another form of range, or beyond the end.
    """
    if not header:
        return 0
    found = re.fullmatch(r"bytes=([0-9]{1,18})-", header)
    if found is None or int(found[1]) >= size:
        raise BadRequest("That range of the chunk cannot be served.")
    return int(found[1])

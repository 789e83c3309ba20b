"""The OpenAI API for programs on this PC: passed on to the hub over the fleet's own trust."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl

import aiohttp
import msgspec
from aiohttp import web

from fleetapp.agent.agent import Agent
from fleetapp.agent.hublink import REMOVED_REMEDY, HubLink, removed
from fleetapp.agent.joining import read_reply
from fleetapp.api.auth import Authorize
from fleetapp.api.errors import error_body
from fleetapp.api.sse import connected
from fleetapp.errors import Cancelled, ChainBroken, FleetError, NoHub, NotAMember, TooSlow
from fleetapp.platform.network import connect_problem

log = logging.getLogger("fleetapp.api.proxy")

PASSED = ("Content-Type", "Accept")
RETURNED = ("Content-Type", "Cache-Control", "Allow", "X-Request-Id", "X-Fleet-Devices")
BODY_SECONDS = 60.0
WHY_SECONDS = 2.0
"""For the coordinator to say whether it has shut this PC out."""
LOOK_EVERY = 0.2
"""How soon it is noticed that a client left while its whole answer was being made (s)."""


def add_proxy_routes(app: web.Application, agent: Agent, authorize: Authorize) -> None:
    """Register ``/v1/*`` and ``/healthz`` of the loopback address."""

    async def watched(request: web.Request) -> web.StreamResponse:
        authorize(request)
        passing = asyncio.ensure_future(forward(request))
        try:
            while not passing.done():
                await asyncio.wait({passing}, timeout=LOOK_EVERY)
                if not passing.done() and not connected(request):
                    break  # nobody reads it any more: cancelling ends the request at the hub
            else:
                return passing.result()
        finally:
            passing.cancel()
            await asyncio.wait({passing}, timeout=LOOK_EVERY)
        raise Cancelled("The client left.")

    async def forward(request: web.Request) -> web.StreamResponse:
        fleet = agent.hub_link
        if fleet is None:
            raise NotAMember("This PC belongs to no fleet, so nothing can answer.")
        headers = {n: request.headers[n] for n in PASSED if n in request.headers}
        body = await _body(request)
        response: web.StreamResponse | None = None
        last = b""
        try:
            async with fleet.link.request(
                request.method, f"/api{request.path_qs}", data=body, headers=headers
            ) as answer:
                if answer.status == 403 and fleet.link.removed:
                    raise removed()  # the coordinator's words are about "the other side"
                response = web.StreamResponse(status=answer.status)
                for name in RETURNED:
                    if name in answer.headers:
                        response.headers[name] = answer.headers[name]
                await response.prepare(request)
                async for data in answer.content.iter_any():
                    await response.write(data)
                    last = (last + data)[-2:]
        except (aiohttp.ClientError, TimeoutError, ssl.SSLError) as exc:
            silent = isinstance(exc, TimeoutError)
            out = None if silent else await _shut_out(fleet.link)
            if response is None:
                if out is not None:
                    raise out from exc
                why = "it has gone silent" if silent else connect_problem(exc)
                raise NoHub(
                    f"The coordinator cannot be reached: {why}.",
                    remedy="Check that it runs; this PC reconnects by itself.",
                ) from exc
            await _end_broken(request, response, last, out or _gone())
            return response
        await response.write_eof()
        return response

    app.router.add_route("*", "/v1/{tail:.*}", watched)
    app.router.add_get("/healthz", watched)


async def _body(request: web.Request) -> bytes:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except TimeoutError as exc:
        raise TooSlow(
            f"The body did not arrive within {BODY_SECONDS:.0f} s.", remedy="Send it again."
        ) from exc


async def _shut_out(link: HubLink) -> NotAMember | None:
    """Asked after a connection broke: whether that was because this PC is no member any more."""
    try:
        async with (
            asyncio.timeout(WHY_SECONDS),
            link.request("GET", "/api/healthz") as answer,
        ):
            await read_reply(answer)
    except NotAMember:
        return NotAMember(
            "This PC was removed from the fleet while it was being answered.",
            remedy=REMOVED_REMEDY,
        )
    except (FleetError, aiohttp.ClientError, OSError, TimeoutError) as exc:
        log.debug("why the connection broke is not known: %s", exc)
    return None


def _gone() -> FleetError:
    return ChainBroken(
        "The coordinator has gone while it was answering.",
        remedy="Ask again; this PC reconnects by itself.",
    )


async def _end_broken(
    request: web.Request, response: web.StreamResponse, last: bytes, why: FleetError
) -> None:
    """End a response that has begun so that no client takes it for whole.

    A stream of events that broke between two of them can still say why; anything else is cut.
    """
    log.warning("%s", why.message)
    if response.content_type == "text/event-stream" and last in (b"", b"\n\n"):
        event = b"data: " + msgspec.json.encode(error_body(why)) + b"\n\n"
        with contextlib.suppress(ConnectionError):
            await response.write(event)
            await response.write_eof()
    elif request.transport is not None:
        request.transport.abort()

"""Reading a request's body within bounds of size and time."""

from __future__ import annotations

import asyncio

import aiohttp
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from fleetapp.api.feed import Limits
from fleetapp.errors import BadRequest, TooLarge, TooSlow, WrongMediaType


async def read_json_body(request: web.Request, limits: Limits) -> bytes:
    """The bytes of a JSON body, unpacked if they came compressed.

    The bounds are our own: the server's ``client_max_size`` is for whoever owns the application.

    Raises:
        WrongMediaType: the body says that it is something else than JSON.
        TooLarge: more than ``limits.body`` bytes, before or after unpacking.
        TooSlow: it did not arrive within ``limits.body_seconds``.
        BadRequest: its encoding is broken.
    """
    if request.content_type != "application/json":
        raise WrongMediaType("The body is not declared as JSON.")
    too_large = TooLarge(
        f"The body is larger than {limits.body // 2**20} MiB.", remedy="Shorten the prompt."
    )
    if (request.content_length or 0) > limits.body:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in request.content.iter_any():
                body += part
                if len(body) > limits.body:
                    raise too_large
    except TimeoutError as error:
        raise TooSlow(
            f"The body did not arrive within {limits.body_seconds:.0f} s.",
            remedy="Send the request again.",
        ) from error
    except (HttpProcessingError, aiohttp.ClientPayloadError, web.RequestPayloadError) as error:
        raise BadRequest(
            "The body's encoding is broken.", remedy="Send it uncompressed."
        ) from error
    return bytes(body)

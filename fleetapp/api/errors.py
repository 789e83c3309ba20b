"""The one table from errors to HTTP, and the middleware that applies it.

Every error body is ``{"error": {"message", "type", "param", "code", "remedy"}}``: what the OpenAI
client reads, plus one sentence of what to do.
"""

from __future__ import annotations

import logging
import traceback
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from fleetapp.errors import BadRequest, FleetError, NotFound, RateLimited, TooLarge

log = logging.getLogger("fleetapp.api")

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    409: "conflict_error",
    429: "rate_limit_error",
}
"""OpenAI's coarse classes; any other 4xx is invalid_request_error, any 5xx server_error."""


class MethodNotAllowed(BadRequest):
    code = "method_not_allowed"
    http_status = 405


def error_type(status: int) -> str:
    """OpenAI's ``type`` of an HTTP status."""
    return _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")


def error_body(error: FleetError) -> dict[str, Any]:
    """The JSON of an error; ``param`` is null when no field is to blame, as OpenAI has it."""
    return {
        "error": {
            "message": error.message,
            "type": error_type(error.http_status),
            "param": (error.param or None) if isinstance(error, BadRequest) else None,
            "code": error.code,
            "remedy": error.remedy,
        }
    }


def error_response(error: FleetError) -> web.Response:
    """An error as a whole response."""
    response = json_response(error_body(error), status=error.http_status)
    if error.http_status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, RateLimited):
        response.headers["Retry-After"] = str(error.seconds)
    if error.http_status == 408:
        response.force_close()  # the rest of the body may still arrive and is not a request
    return response


def json_response(value: object, status: int = 200) -> web.Response:
    """``value`` as JSON, by msgspec."""
    return web.Response(
        body=msgspec.json.encode(value), status=status, content_type="application/json"
    )


def internal(error: Exception) -> FleetError:
    """Log an exception that nobody foresaw and return what the caller may know of it.

    Only places are logged: the text of an exception may quote a prompt.
    """
    where = "".join(traceback.format_tb(error.__traceback__))
    log.error("unexpected %s while serving a request\n%s", type(error).__name__, where)
    return FleetError(
        "Something went wrong inside fleetapp.",
        remedy="Try again; if it happens again, send the log of this PC to your admin.",
    )


@web.middleware
async def error_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every exception of a handler into the JSON above."""
    try:
        return await handler(request)
    except FleetError as error:
        return error_response(error)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return _routing_response(request, error)
    except Exception as error:  # noqa: BLE001 - the outermost frame of a request: nothing above acts
        return error_response(internal(error))


def _routing_response(request: web.Request, error: web.HTTPException) -> web.Response:
    """What aiohttp itself refuses: unknown paths, wrong methods, bodies over the server's limit."""
    path = "".join(c for c in request.path[:200] if c.isprintable())
    if isinstance(error, web.HTTPNotFound):
        return error_response(NotFound(f"There is nothing at {request.method} {path}."))
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        response = error_response(
            MethodNotAllowed(f"{path} takes {allowed}, not {request.method}.")
        )
        response.headers["Allow"] = allowed
        return response
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return error_response(TooLarge("The body is larger than a request may be."))
    return error_response(BadRequest(f"The request was refused: {error.reason}."))


def use_error_middleware(app: web.Application) -> None:
    """Install the middleware once, whichever routes come first."""
    if error_middleware not in app.middlewares:
        app.middlewares.insert(0, error_middleware)

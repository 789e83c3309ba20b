"""Who may call: API keys on the fleet's address, a private token on loopback."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from fleetapp.errors import TrustError, Unauthorized
from fleetapp.hub.keys import ApiKeyView, KeyBook

KEY: Final[web.RequestKey[ApiKeyView]] = web.RequestKey("key", ApiKeyView)
"""Under this name a request carries the key that let it in, if one did."""

Authorize = Callable[[web.Request], None]
"""Returns, or raises Unauthorized or TrustError."""

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost"})


def bearer(request: web.Request) -> str:
    """The key that a request presents.

    Raises:
        Unauthorized: no ``Authorization: Bearer`` header, or several.
    """
    values = request.headers.getall("Authorization", [])
    if len(values) != 1:
        raise Unauthorized("The request carries no API key.")
    scheme, _, key = values[0].partition(" ")
    key = key.strip()
    if scheme.lower() != "bearer" or not key:
        raise Unauthorized("The Authorization header is not 'Bearer <key>'.")
    return key


def key_authorizer(book: KeyBook) -> Authorize:
    """For the fleet's address: any key of the book."""

    def authorize(request: web.Request) -> None:
        request[KEY] = book.check(bearer(request))

    return authorize


def loopback_authorizer(token: str) -> Authorize:
    """For 127.0.0.1: the token of the state folder, from a program and not from a web page."""
    expected = hashlib.sha256(token.encode()).digest()

    def authorize(request: web.Request) -> None:
        require_loopback(request)
        presented = bearer(request).encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(hashlib.sha256(presented).digest(), expected):
            raise Unauthorized(
                "This is not the token of this PC's agent.",
                remedy="Read it from the file 'api-token' in the agent's state folder.",
            )

    return authorize


def require_loopback(request: web.Request) -> None:
    """Refuse names that only a rebound DNS entry can have brought here, and foreign pages.

    Raises:
        TrustError: Host is not a loopback name, or Origin is another site.
    """
    hosts = request.headers.getall("Host", [])
    if len(hosts) != 1 or _host_name(hosts[0]) not in LOOPBACK_NAMES:
        raise TrustError(
            "The Host header does not name this PC's loopback address.",
            remedy="Use http://127.0.0.1:<port>.",
        )
    origin = request.headers.get("Origin")
    if origin is not None and origin.lower() != f"http://{hosts[0].lower()}":
        raise TrustError(
            "A web page of another origin may not use the local API.",
            remedy="Call it from a program on this PC instead.",
        )


def _host_name(host: str) -> str:
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises on a port that is no number
    except ValueError:
        return ""
    if parts.username is not None or parts.path:
        return ""
    return (parts.hostname or "").lower()

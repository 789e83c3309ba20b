"""Talks to this PC's agent, or to any OpenAI-compatible server, from synchronous commands.

aiohttp under ``asyncio.Runner`` rather than ``http.client``: every wait has a deadline of its own,
and Ctrl+C interrupts a read on Windows too, where a blocking socket would sit it out.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec
import psutil

from fleetapp.api.sse import EventParser
from fleetapp.errors import (
    AgentNotRunning,
    BadRequest,
    FleetError,
    FleetUnavailable,
    Malformed,
    NoHub,
    NotFound,
    PeerTimeout,
    Unauthorized,
    UserError,
    from_code,
)
from fleetapp.platform.lock import InstanceLock
from fleetapp.platform.paths import Paths

CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 30.0
SLOW_SECONDS = 180.0
"""For what the agent does before it answers: finding and joining a fleet, planning a chain."""
SILENCE_SECONDS = 150.0
"""On a stream. fleetapp comments every few seconds, but other servers need not."""
START_SECONDS = 15.0
"""Within which an agent that has taken its folder answers."""
_ALIVE_SECONDS = 2.0
"""For an agent beside us to show that it is alive."""
APPEAR_SECONDS = 1.0
"""Within which one that was started together with this command takes its folder."""
MAX_ERROR = 64 * 1024

_T = TypeVar("_T")


class Client:
    """An HTTP client for one server. Use as a context manager.

    Args:
        base: URL that paths are appended to, without a trailing slash.
        key: sent as bearer token, if not empty.
        unreachable: makes the error for a server that does not answer, from a reason.
        gone: the error for a connection that breaks in the middle of an answer.
    """

    def __init__(
        self,
        base: str,
        key: str,
        unreachable: Callable[[str], FleetError],
        gone: Callable[[], FleetError],
    ) -> None:
        self.base = base
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._unreachable = unreachable
        self.gone = gone
        self._runner = asyncio.Runner()
        self._session: aiohttp.ClientSession | None = None

    def __enter__(self) -> Self:
        self._session = self._runner.run(self._open())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            self._runner.run(self._session.close())
        self._runner.close()

    async def _open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            headers=self._headers, timeout=aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS)
        )

    def request(
        self, method: str, path: str, body: object = None, seconds: float = REQUEST_SECONDS
    ) -> Any:
        """The JSON of an answer.

        Raises:
            FleetError: what the server says, or why it could not be asked.
        """

        async def go() -> Any:
            async with asyncio.timeout(seconds), self._send(method, path, body) as response:
                raw = await response.read()
            return _json(raw)

        return self._run(go(), began=False)

    def events(
        self,
        method: str,
        path: str,
        body: object = None,
        comment: Callable[[str], None] = lambda _: None,
    ) -> Generator[str, None, None]:
        """The ``data`` of each server-sent event; closing the iterator closes the connection.

        ``comment`` is told each comment between the events.

        Raises:
            FleetError: what the server says, why it could not be asked, or that it has gone.
        """
        parser = EventParser(comment=comment)
        response = self._run(self._start(method, path, body), began=False)
        try:
            while data := self._run(_read(response), began=True):
                try:
                    yield from parser.feed(data)
                except ValueError as error:
                    raise Malformed("The server sent a broken event stream.") from error
        finally:
            response.close()

    async def _start(self, method: str, path: str, body: object) -> aiohttp.ClientResponse:
        async with asyncio.timeout(SILENCE_SECONDS):
            response = await self._send(method, path, body).__aenter__()
        if response.content_type != "text/event-stream":
            response.close()
            raise Malformed(
                "The server did not answer with a stream of events.",
                remedy="Check that the address is that of an OpenAI-compatible API.",
            )
        return response

    def _send(self, method: str, path: str, body: object) -> _Checked:
        assert self._session is not None
        data = None if body is None else msgspec.json.encode(body)
        headers = {} if data is None else {"Content-Type": "application/json"}
        return _Checked(
            self._session.request(
                method,
                self.base + path,
                data=data,
                headers=headers,
                allow_redirects=False,  # a redirect would carry the key to somebody else
            )
        )

    def _run(self, work: Awaitable[_T], *, began: bool) -> _T:
        async def go() -> _T:
            return await work

        try:
            return self._runner.run(go())
        except asyncio.CancelledError:
            # Only Ctrl+C cancels here; the runner forgets it if it comes just as it begins.
            if asyncio.iscoroutine(work):
                work.close()  # it may never have begun, which Python would complain of
            raise KeyboardInterrupt from None
        except TimeoutError as error:
            raise PeerTimeout(
                "The server took too long to answer.", remedy="Try again in a moment."
            ) from error
        except (aiohttp.ClientError, ConnectionError, ssl.SSLError) as error:
            if began or isinstance(error, aiohttp.ServerDisconnectedError):
                raise self.gone() from error
            raise self._unreachable(_reason(error)) from error
        except (aiohttp.InvalidURL, UnicodeError, ValueError) as error:
            raise BadRequest(f"'{self.base}' is not an address that can be asked.") from error


class _Checked:
    """A response whose status was looked at; errors are raised as the classes they stand for."""

    def __init__(self, request: Any) -> None:
        self._request = request

    async def __aenter__(self) -> aiohttp.ClientResponse:
        response: aiohttp.ClientResponse = await self._request.__aenter__()
        if 200 <= response.status < 300:
            return response
        try:
            raw = await response.content.read(MAX_ERROR)
        finally:
            response.close()
        raise error_of(response.status, raw)

    async def __aexit__(self, *what: object) -> None:
        await self._request.__aexit__(*what)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    async with asyncio.timeout(SILENCE_SECONDS):
        return await response.content.readany()


def _json(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Malformed(
            "The server's answer is not JSON.",
            remedy="Check that the address is that of an OpenAI-compatible API.",
        ) from error


def _reason(error: Exception) -> str:
    cause = getattr(error, "os_error", None) or error
    return getattr(cause, "strerror", None) or str(cause) or type(error).__name__


def error_of(status: int, raw: bytes) -> FleetError:
    """The error behind an HTTP status and body: ours by its code, others' by their status."""
    try:
        told = json.loads(raw)["error"]
        return told_error(told, status)
    except (ValueError, KeyError, TypeError, RecursionError):
        return _by_status(status)(f"The server refused with HTTP status {status}.")


def told_error(told: Mapping[str, Any], status: int = 500) -> FleetError:
    """An error object of an answer or of a stream as the class it stands for."""
    message = str(told["message"])
    code = str(told.get("code") or "")
    remedy = str(told.get("remedy") or "")
    found = from_code(code, message, remedy)
    if type(found) is FleetError and code != FleetError.code:
        return _by_status(status)(message, remedy=remedy)
    return found


def _by_status(status: int) -> type[FleetError]:
    known = {401: Unauthorized, 403: Unauthorized, 404: NotFound}
    if status in known:
        return known[status]
    if 400 <= status < 500 and status != 429:
        return UserError
    return FleetUnavailable


class AgentFile(msgspec.Struct, frozen=True):
    """``agent.json``: written when the loopback API answers, removed at the end."""

    pid: int
    port: int
    version: str = ""


def find_agent(home: Path) -> tuple[AgentFile, str]:
    """The running agent of a state folder, and the token of its loopback API.

    Raises:
        AgentNotRunning: there is none; files that a dead one left behind count for nothing.
    """
    paths = Paths(home)
    try:
        found = msgspec.json.decode(paths.agent_file.read_bytes(), type=AgentFile)
        token = paths.api_token.read_text("ascii").strip()
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise not_running(home) from error
    if not token or not 0 < found.port < 65536 or not _alive(found.pid):
        raise not_running(home)
    return found, token


def await_agent(home: Path) -> tuple[AgentFile, str]:
    """As ``find_agent``, but an agent that is just starting is waited for.

    Raises:
        AgentNotRunning: there is none, or it does not get ready in time.
    """
    began = time.monotonic()
    while True:
        try:
            return find_agent(home)
        except AgentNotRunning:
            passed = time.monotonic() - began
            owner = InstanceLock(Paths(home).lock_file).owner()
            starting = owner is not None and _alive(owner)
            if passed >= (START_SECONDS if starting else APPEAR_SECONDS):
                raise
        time.sleep(0.1)


def _alive(pid: int) -> bool:
    try:
        return bool(psutil.pid_exists(pid))
    except OverflowError:  # no pid at all
        return False


def not_running(home: Path) -> AgentNotRunning:
    """The error for a state folder without a living agent."""
    return AgentNotRunning(f"This PC's agent is not running (state folder {home}).")


def agent_client(home: Path) -> Client:
    """A client of this PC's agent.

    Raises:
        AgentNotRunning: there is none.
    """
    found, token = await_agent(home)
    return Client(
        f"http://127.0.0.1:{found.port}",
        token,
        unreachable=lambda _reason: not_running(home),
        gone=lambda: AgentNotRunning(
            "This PC's agent ended while it was being asked.",
            remedy="Start it again with 'fleetapp agent'.",
        ),
    )


def api_client(home: Path, url: str | None, key: str | None) -> Client:
    """A client of the API at ``url``, or of this PC's agent when there is no ``url``.

    Raises:
        BadRequest: the address is none, or the key cannot be one.
        AgentNotRunning: no address was given and there is no agent.
    """
    key = (key or "").strip()
    if not key.isascii() or any(c.isspace() or not c.isprintable() for c in key):
        raise BadRequest(
            "The API key has characters that no key has.", remedy="Copy it once more, whole."
        )
    if not url:
        found, token = await_agent(home)
        base = f"http://127.0.0.1:{found.port}/v1"
        return Client(
            base,
            key or token,
            unreachable=lambda _reason: not_running(home),
            gone=lambda: _coordinator_gone() if _answers(found.port) else _agent_gone(),
        )
    base = _base(url)
    return Client(
        base,
        key,
        unreachable=lambda reason: NoHub(
            f"{base} cannot be reached: {reason}.",
            remedy="Check the address, and that the server runs.",
        ),
        gone=_coordinator_gone,
    )


def _answers(port: int) -> bool:
    """Whether an agent is there still. One that has just been killed may for a moment have its
    process id, and even take connections, but says nothing any more.
    """
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_ALIVE_SECONDS) as asking:
            asking.sendall(b"HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            return bool(asking.recv(1))
    except TimeoutError:
        return True  # slow is not gone
    except OSError:
        return False


def _agent_gone() -> FleetError:
    return AgentNotRunning(
        "This PC's own agent ended in the middle of the answer.",
        remedy="Start it again with 'fleetapp agent', then ask again.",
    )


def _coordinator_gone() -> FleetError:
    return NoHub(
        "The connection broke in the middle of the answer: the coordinator has gone.",
        remedy="Ask again; if it stays away, 'fleetapp status' tells more.",
    )


def _base(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    odd = not parts.netloc.isprintable() or " " in parts.netloc
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or odd:
        raise BadRequest(
            f"'{url}' is not the address of an API.",
            remedy="Give it as http://host:port or http://host:port/v1.",
        )
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path if path.endswith('/v1') else path + '/v1'}"

"""Runs an agent with its HTTP fronts: the process behind ``fleetapp agent``."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import secrets
import signal
import ssl
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from aiohttp import web

from fleetapp import __version__
from fleetapp.agent.agent import Agent
from fleetapp.agent.deployed import DeployedJoin
from fleetapp.agent.limiter import Limiter
from fleetapp.agent.pc import Bound
from fleetapp.api.auth import key_authorizer, loopback_authorizer
from fleetapp.api.blobs import BlobApi
from fleetapp.api.control import ControlApi
from fleetapp.api.errors import use_error_middleware
from fleetapp.api.local import add_local_routes
from fleetapp.api.metrics import add_metrics_route
from fleetapp.api.openai import add_openai_routes
from fleetapp.api.proxy import add_proxy_routes
from fleetapp.errors import PortTaken, StorageError
from fleetapp.fleet import tls
from fleetapp.fleet.enrolment import Credentials
from fleetapp.fleet.trust import TrustList
from fleetapp.hub.hub import Hub
from fleetapp.logs import setup_logging
from fleetapp.platform import current
from fleetapp.platform.jobs import end_children_with_me
from fleetapp.platform.lock import InstanceLock
from fleetapp.platform.paths import Paths
from fleetapp.platform.stdio import take_stdin
from fleetapp.settings import SettingsStore

log = logging.getLogger("fleetapp.api.serve")

MAX_BODY = 16 * 2**20
SHUTDOWN_SECONDS = 2.0
IDLE_SECONDS = 20.0
"""For the whole head of a request to arrive: whoever dribbles or says nothing is hung up on."""


class HttpServers:
    """Opens the coordinator's fronts (``agent.infleet.Servers``)."""

    async def open_control(
        self, hub: Hub, trust: TrustList, credentials: Credentials, host: str, port: int
    ) -> Bound:
        """The members' front: TLS 1.3, a client certificate for all but joining."""
        context = tls.server_context(credentials, optional_client=True)
        bound = await listen(ControlApi(hub, trust).app(), host, port, "control_port", context)
        return replace(bound, renew=lambda: tls.show_leaf(context, credentials))

    async def open_blobs(
        self,
        read: Callable[[str], bytes],
        trust: TrustList,
        credentials: Credentials,
        willing: Callable[[], bool],
        limiter: Limiter,
        host: str,
        port: int,
    ) -> Bound:
        """What members serve to one another: TLS 1.3 with a client certificate."""
        context = tls.server_context(credentials)
        app = BlobApi(read, trust, willing, limiter).app()
        bound = await listen(app, host, port, "share_port", context)
        return replace(bound, renew=lambda: tls.show_leaf(context, credentials))

    async def open_api(self, hub: Hub, host: str, port: int) -> Bound:
        """The OpenAI-compatible front for programs with an API key."""
        app = web.Application(client_max_size=MAX_BODY)
        use_error_middleware(app)
        authorize = key_authorizer(hub.keys)
        add_openai_routes(app, hub.router, authorize)
        add_metrics_route(app, hub.router.health, hub.router.reports, authorize)
        return await listen(app, host, port, "api_port")


async def listen(
    app: web.Application,
    host: str,
    port: int,
    setting: str,
    context: ssl.SSLContext | None = None,
    idle: float = IDLE_SECONDS,
) -> Bound:
    """Serve an application; ``idle`` bounds the seconds a connection may be without a request.

    Raises:
        PortTaken: says which setting to change.
    """
    runner = web.AppRunner(
        app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS, keepalive_timeout=idle
    )
    await runner.setup()
    site = web.TCPSite(runner, host, port, ssl_context=context, reuse_address=None)
    try:
        await site.start()
    except OSError as exc:
        await runner.cleanup()
        if exc.errno in (errno.EADDRINUSE, 10048, errno.EACCES, 10013):
            raise PortTaken(
                f"Port {port} on {host} is used by another program.",
                remedy=f"Stop that program, or choose another port with the setting {setting} "
                "(0 takes any free one).",
            ) from exc
        raise PortTaken(
            f"The address {host}:{port} cannot be used: {exc.strerror or exc}.",
            remedy=f"Correct the setting {setting} or its address.",
        ) from exc
    bound = runner.addresses[0][1]
    return Bound(host=host, port=int(bound), close=runner.cleanup)


async def run_agent(
    home: Path, *, exit_with_stdin: bool = False, ready: Callable[[int], None] | None = None
) -> None:
    """Run until asked to end.

    Args:
        home: the state folder.
        exit_with_stdin: end when stdin closes, so that no agent outlives who started it.
        ready: told the loopback port once everything answers.

    Raises:
        AlreadyRunning, ReadOnly, PortTaken, BadSetting: why it could not start.
    """
    paths, platform = Paths(home), current()
    platform.make_private_dir(home)
    with InstanceLock(paths.lock_file):
        setup_logging(paths, "agent")
        end_children_with_me()
        settings = SettingsStore(paths, platform).load()
        token = _token(paths)
        agent = Agent(paths, platform, HttpServers())
        agent.bind(asyncio.get_running_loop())
        _end_on_signals(agent)
        if exit_with_stdin:
            _end_with_stdin(agent)
        app = web.Application(client_max_size=MAX_BODY)
        use_error_middleware(app)
        authorize = loopback_authorizer(token)
        add_local_routes(app, agent, token)
        add_proxy_routes(app, agent, authorize)
        local = await listen(app, "127.0.0.1", settings.local_port, "local_port")
        deployed = DeployedJoin(paths, agent)
        try:
            await deployed.look()
            agent.has_a_code = lambda: bool(deployed.code)
            await agent.start()
            platform.write_private(
                paths.agent_file,
                json.dumps(
                    {"pid": os.getpid(), "port": local.port, "version": __version__}
                ).encode(),
            )
            log.info("agent %s listens on 127.0.0.1:%d", __version__, local.port)
            if ready is not None:
                ready(local.port)
            joining = asyncio.create_task(deployed.run())
            try:
                await agent.finished.wait()
            finally:
                joining.cancel()
        finally:
            paths.agent_file.unlink(missing_ok=True)
            await agent.stop()
            await local.close()


def _token(paths: Paths) -> str:
    try:
        token = paths.api_token.read_text("ascii").strip()
    except FileNotFoundError:
        token = ""
    except (OSError, ValueError) as exc:
        raise StorageError(
            f"The token file {paths.api_token} cannot be read: {exc}.",
            remedy="Delete it; a new one is made at the next start.",
        ) from exc
    if len(token) < 20:
        token = secrets.token_urlsafe(32)
        current().write_private(paths.api_token, token.encode())
    return token


def _end_on_signals(agent: Agent) -> None:
    loop = asyncio.get_running_loop()
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"):
        number = getattr(signal, name, None)
        if number is None:
            continue
        with contextlib.suppress(NotImplementedError, ValueError):
            loop.add_signal_handler(number, agent.finish)
            continue
        # Windows' Proactor loop takes no handlers; the plain one wakes the loop instead.
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(agent.finish))


def _end_with_stdin(agent: Agent) -> None:
    loop, source = asyncio.get_running_loop(), take_stdin()

    def watch() -> None:
        with contextlib.suppress(OSError, ValueError):
            while source.read(4096):
                pass
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(agent.finish)

    threading.Thread(target=watch, name="stdin", daemon=True).start()

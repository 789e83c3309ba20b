"""The loopback API of an agent: how this PC's own programs and people steer it. Thin, no logic."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import msgspec
from aiohttp import web

from fleetapp.agent.librarian import ModelCalls
from fleetapp.agent.office import OfficeCalls
from fleetapp.api.admin import AdminRoutes, Handler, done, read_body
from fleetapp.api.auth import loopback_authorizer
from fleetapp.api.errors import json_response, use_error_middleware
from fleetapp.api.models import ModelRoutes
from fleetapp.api.office import OfficeRoutes
from fleetapp.api.preferences import PreferenceCalls, PreferenceRoutes
from fleetapp.api.views import stream_views
from fleetapp.engine.pipe import RunnerStats, TraceView
from fleetapp.hub.admin import Admin
from fleetapp.hub.planner.plan import FleetPlan
from fleetapp.types import (
    ChainView,
    Finding,
    FleetView,
    HardwareView,
    JoinCodeView,
    LocalStatus,
    Precision,
    SearchView,
)


class LocalAgent(PreferenceCalls, Protocol):
    """What the loopback API asks of the agent. Every method bounds its own time.

    All raise FleetError; NotAMember where a fleet is needed and there is none, NoHub where the
    coordinator is needed and cannot be reached.
    """

    async def status(self) -> LocalStatus:
        """This PC now."""
        ...

    async def search(self) -> SearchView:
        """What the search on the local network finds, and why not more."""
        ...

    async def hardware(self) -> HardwareView:
        """What this PC has to compute with."""
        ...

    async def checks(self, only: tuple[str, ...]) -> Sequence[Finding]:
        """How this PC is; ``only`` the checks of these names, or all if there are none."""
        ...

    def events(self) -> AsyncIterator[LocalStatus]:
        """The status now, and again on every change; closing the iterator ends it."""
        ...

    async def set_contribute(self, on: bool) -> None:
        """Remember whether this PC may work for the fleet, and act on it."""
        ...

    async def lend(self, device: str, on: bool) -> None:
        """Lend CPU, GPU or NPU, or not. BadRequest if there is no such class of devices."""
        ...

    async def pause(self, length: str, finish_first: bool) -> None:
        """Pause for ``30m``, ``1h``, ``4h``, until ``tomorrow``, or ``forever``.

        ManagedByPolicy if this PC may not pause.
        """
        ...

    async def resume(self) -> None:
        """End the pause, if there is one."""
        ...

    async def create_fleet(self, name: str) -> JoinCodeView:
        """Found a fleet on this PC; the answer is its first join code, ``code`` set."""
        ...

    async def join(self, code: str, hub_address: str) -> LocalStatus:
        """Join by a code; ``hub_address`` ("host:port") may be empty to look around by mDNS."""
        ...

    async def stop_joining(self) -> None:
        """Call an attempt to join off, if there is one."""
        ...

    async def leave(self) -> None:
        """Leave the fleet and forget its certificate."""
        ...

    async def fleet_view(self) -> FleetView:
        """The fleet as the hub sees it; works on members too."""
        ...

    def fleet_events(self) -> AsyncIterator[FleetView]:
        """The view now, and again on every change; closing the iterator ends it."""
        ...

    async def runners(self) -> Sequence[RunnerStats]:
        """Counters of this PC's runners."""
        ...

    async def trace(self, model: str) -> TraceView:
        """The most recent steps of a model's chain; only on the coordinator, which is its head.

        An empty ``model`` takes the first that is served.
        """
        ...

    async def plan(self, changes: tuple[str, ...]) -> FleetPlan:
        """What the planner would do now, or after changes ("+16", "-NAME", "model=…", "users=…").

        Only on the coordinator. Nothing is changed by it.
        """
        ...

    @property
    def admin(self) -> Admin:
        """What admins may ask."""
        ...

    @property
    def office(self) -> OfficeCalls:
        """The coordinator's office of this PC."""
        ...

    @property
    def models(self) -> ModelCalls:
        """The model library of this PC."""
        ...

    async def start_model(
        self, model: str, precision: Precision | None, stages: int, draft: str
    ) -> ChainView:
        """Plan a chain and begin to prepare it; returns as soon as there is a plan.

        ``precision`` None takes the setting; ``stages`` 0 leaves their number to the planner;
        ``draft`` is auto, lookup, off or a model to guess ahead with.
        """
        ...

    async def stop_model(self, model: str) -> None:
        """Take the model's chains down."""
        ...

    async def quit(self) -> None:
        """Ask the agent to end; returns before it does."""
        ...


class _Contribute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    on: bool


class _Lend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    device: str
    on: bool


class _Pause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    length: str
    finish_first: bool = False


class _Create(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str


class _Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    parallel: int = 0
    per_minute: int = 0


class _Join(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    code: str
    hub_address: str = ""


class _Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    what_if: tuple[str, ...] = ()


class _Start(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: str
    precision: Precision | None = None
    stages: int = 0
    draft: str = "auto"


class _Stop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: str


def add_local_routes(app: web.Application, agent: LocalAgent, token: str) -> None:
    """Serve ``/local/v1`` from ``app``, which must listen on 127.0.0.1 only.

    Args:
        app: gets the routes and the middleware that shapes errors.
        agent: who does it.
        token: the content of ``api-token``; every request needs it.
    """
    local = _Local(agent)
    authorize = loopback_authorizer(token)
    use_error_middleware(app)

    def guarded(handler: Handler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            authorize(request)
            return await handler(request)

        return handle

    routes: tuple[tuple[str, str, Handler], ...] = (
        ("GET", "status", local.status),
        ("GET", "events", local.events),
        ("GET", "search", local.search),
        ("GET", "hardware", local.hardware),
        ("GET", "checks", local.checks),
        ("POST", "contribute", local.contribute),
        ("POST", "lend", local.lend),
        ("POST", "pause", local.pause),
        ("POST", "resume", local.resume),
        ("POST", "quit", local.quit),
        ("POST", "fleet/create", local.create),
        ("POST", "fleet/join", local.join),
        ("POST", "fleet/join/stop", local.stop_joining),
        ("POST", "fleet/leave", local.leave),
        ("GET", "fleet", local.fleet),
        ("GET", "fleet/events", local.fleet_events),
        ("GET", "runners", local.runners),
        ("GET", "trace", local.trace),
        ("POST", "fleet/plan", local.plan),
        ("POST", "models/start", local.start),
        ("POST", "models/stop", local.stop),
        *AdminRoutes(lambda _: agent.admin).routes(),
        *OfficeRoutes(lambda: agent.office).routes(),
        *ModelRoutes(lambda: agent.models).routes(),
        *PreferenceRoutes(lambda: agent).routes(),
    )
    for method, path, handler in routes:
        app.router.add_route(method, f"/local/v1/{path}", guarded(handler))


class _Local:
    def __init__(self, agent: LocalAgent) -> None:
        self._agent = agent

    async def status(self, _request: web.Request) -> web.Response:
        return json_response(await self._agent.status())

    async def events(self, request: web.Request) -> web.StreamResponse:
        return await stream_views(request, self._agent.events())

    async def search(self, _request: web.Request) -> web.Response:
        return json_response(await self._agent.search())

    async def hardware(self, _request: web.Request) -> web.Response:
        return json_response(await self._agent.hardware())

    async def checks(self, request: web.Request) -> web.Response:
        only = tuple(name for name in request.query.get("only", "").split(",") if name)
        return json_response(await self._agent.checks(only))

    async def contribute(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Contribute)
        await self._agent.set_contribute(asked.on)
        return json_response(await self._agent.status())

    async def lend(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Lend)
        await self._agent.lend(asked.device, asked.on)
        return json_response(await self._agent.status())

    async def pause(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Pause)
        await self._agent.pause(asked.length, asked.finish_first)
        return json_response(await self._agent.status())

    async def resume(self, _request: web.Request) -> web.Response:
        await self._agent.resume()
        return json_response(await self._agent.status())

    async def quit(self, _request: web.Request) -> web.Response:
        await self._agent.quit()
        return done()

    async def create(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Create)
        code = await self._agent.create_fleet(asked.name)
        status = await self._agent.status()
        return json_response({"fleet_id": status.fleet_id, "code": code.code})

    async def join(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Join)
        return json_response(await self._agent.join(asked.code, asked.hub_address))

    async def stop_joining(self, _request: web.Request) -> web.Response:
        await self._agent.stop_joining()
        return done()

    async def leave(self, _request: web.Request) -> web.Response:
        await self._agent.leave()
        return done()

    async def fleet(self, _request: web.Request) -> web.Response:
        return json_response(await self._agent.fleet_view())

    async def fleet_events(self, request: web.Request) -> web.StreamResponse:
        return await stream_views(request, self._agent.fleet_events())

    async def runners(self, _request: web.Request) -> web.Response:
        return json_response(await self._agent.runners())

    async def trace(self, request: web.Request) -> web.Response:
        return json_response(await self._agent.trace(request.query.get("model", "")))

    async def plan(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Plan)
        return json_response(await self._agent.plan(asked.what_if))

    async def start(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Start)
        return json_response(
            await self._agent.start_model(asked.model, asked.precision, asked.stages, asked.draft)
        )

    async def stop(self, request: web.Request) -> web.Response:
        asked = await read_body(request, _Stop)
        await self._agent.stop_model(asked.model)
        return done()

"""``/v1`` as the official OpenAI client expects it. Thin: everything is decided elsewhere."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import msgspec
from aiohttp import web

from fleetapp.api import schema
from fleetapp.api.auth import KEY, Authorize
from fleetapp.api.body import read_json_body
from fleetapp.api.errors import error_body, internal, json_response, use_error_middleware
from fleetapp.api.feed import EventFeed, Limits
from fleetapp.api.replies import Reply, model_object
from fleetapp.api.several import together
from fleetapp.api.sse import ClientGone, EventStream, connected
from fleetapp.engine.pipe import Delta, Finished, Generate, Started
from fleetapp.errors import FleetError, NotFound
from fleetapp.hub.quota import Quotas
from fleetapp.hub.service import CompletionService, Event, Queued, Served


def add_openai_routes(
    app: web.Application,
    service: CompletionService,
    authorize: Authorize,
    limits: Limits | None = None,
    quotas: Quotas | None = None,
) -> None:
    """Serve the OpenAI-compatible API and ``/healthz`` from ``app``.

    Args:
        app: gets the routes and the middleware that shapes errors.
        service: who answers.
        authorize: called for every request but ``/healthz``.
        limits: deadlines and sizes.
        quotas: counts what the keys use.
    """
    api = _Api(service, authorize, limits or Limits(), quotas or Quotas())
    use_error_middleware(app)
    app.add_routes(
        [
            web.post("/v1/chat/completions", api.chat),
            web.post("/v1/completions", api.completion),
            web.get("/v1/models", api.models),
            web.get("/v1/models/{model:.+}", api.model),
            web.get("/healthz", api.health),
        ]
    )


class _Api:
    def __init__(
        self, service: CompletionService, authorize: Authorize, limits: Limits, quotas: Quotas
    ) -> None:
        self._quotas = quotas
        self._service = service
        self._authorize = authorize
        self._limits = limits

    async def health(self, _request: web.Request) -> web.Response:
        health = self._service.health()
        return json_response(msgspec.to_builtins(health), status=200 if health.ok else 503)

    async def models(self, request: web.Request) -> web.Response:
        self._authorize(request)
        data = [model_object(m) for m in self._service.served()]
        return json_response({"object": "list", "data": data})

    async def model(self, request: web.Request) -> web.Response:
        self._authorize(request)
        wanted = request.match_info["model"]
        for model in self._service.served():
            if model.model_id == wanted:
                return json_response(model_object(model))
        raise NotFound(
            "The fleet does not serve a model of that name.",
            remedy="'GET /v1/models' lists what can be asked.",
        )

    async def chat(self, request: web.Request) -> web.StreamResponse:
        self._authorize(request)
        call = schema.parse_chat(await read_json_body(request, self._limits))
        return await self._answer(request, call, chat=True)

    async def completion(self, request: web.Request) -> web.StreamResponse:
        self._authorize(request)
        call = schema.parse_completion(await read_json_body(request, self._limits))
        return await self._answer(request, call, chat=False)

    async def _answer(
        self, request: web.Request, call: schema.Call, chat: bool
    ) -> web.StreamResponse:
        key = request.get(KEY)
        with nullcontext() if key is None else self._quotas.use(key):
            return await self._answered(request, call, chat)

    async def _answered(
        self, request: web.Request, call: schema.Call, chat: bool
    ) -> web.StreamResponse:
        devices = next((m.devices for m in self._service.served() if m.model_id == call.model), ())
        reply = Reply(chat, call, devices)
        asked = [self._request(reply.request_id(i), call, i) for i in range(call.n)]
        begin = [partial(self._service.generate, call.model, request) for request in asked]
        events = begin[0]() if call.n == 1 else together(begin)
        feed = EventFeed(events, lambda: connected(request), self._limits)
        try:
            if call.stream:
                return await self._stream(EventStream(request, reply.headers()), feed, reply, call)
            return await self._whole(feed, reply)
        finally:
            await feed.close()

    @staticmethod
    def _request(request_id: str, call: schema.Call, index: int) -> Generate:
        """One of the answers; with a seed the later ones have the seeds that follow it."""
        sampling = call.sampling
        if index and sampling.seed is not None:
            sampling = msgspec.structs.replace(sampling, seed=sampling.seed + index)
        return Generate(
            request_id=request_id,
            sampling=sampling,
            messages=call.messages,
            prompt=call.prompt,
            token_ids=call.token_ids,
        )

    async def _whole(self, feed: EventFeed, reply: Reply) -> web.Response:
        deltas: list[Delta] = []
        while True:
            event = await feed.next(self._limits.keep_alive)
            if isinstance(event, Delta):
                deltas.append(event)
            elif isinstance(event, Served):
                reply.served_by(event)
            elif isinstance(event, Finished) and reply.end(event):
                response = json_response(reply.whole(deltas))
                response.headers.update(reply.headers())
                return response

    async def _stream(
        self, stream: EventStream, feed: EventFeed, reply: Reply, call: schema.Call
    ) -> web.StreamResponse:
        event = await feed.next(self._limits.commit)
        try:
            await stream.open()
            over = event is not None and await self._write(stream, event, reply, call)
            while not over:
                event = await feed.next(self._limits.keep_alive)
                if event is None:
                    await stream.comment()
                else:
                    over = await self._write(stream, event, reply, call)
            await stream.send_text(b"[DONE]")
            await stream.end()
        except ClientGone:
            pass  # nobody is left to be told
        except FleetError as error:
            await stream.end(error_body(error))  # no [DONE]: it would pretend success
        except Exception as error:  # noqa: BLE001 - the status line is out: the middleware is too late
            await stream.end(error_body(internal(error)))
        return stream.response

    async def _write(
        self,
        stream: EventStream,
        event: Event,
        reply: Reply,
        call: schema.Call,
    ) -> bool:
        """Say an event; True if it was the last one."""
        match event:
            case Queued():
                await stream.comment(f"queued {event.place}")
            case Served():
                reply.served_by(event)
            case Started() if call.messages is not None:
                await stream.send(reply.opening(event))
            case Delta():
                chunk = reply.delta(event)
                if chunk is not None:
                    await stream.send(chunk)
            case Finished():
                await stream.send(reply.closing(event))
                if reply.end(event):
                    if call.include_usage:
                        await stream.send(reply.usage_chunk())
                    return True
        return False

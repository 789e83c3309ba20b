"""The story of the demo: model, fleet, plan, question, table."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec

from fleetapp.bench.throwaway import Say, ThrowAwayFleet
from fleetapp.errors import FleetError, NoHub, from_code
from fleetapp.types import AssignmentView, ChainView, FleetView, Precision

ANSWER_SILENCE = 120.0
COUNTER_WAIT = 3.0
"""Heartbeats bring byte counters once a second; the table waits this long at most (s)."""


@dataclass(frozen=True)
class Options:
    """What ``fleetapp demo`` was asked for."""

    nodes: int
    prompt: str
    model: str
    max_tokens: int
    precision: Precision
    seed: int | None
    temperature: float
    draft: str = "auto"


class Served(msgspec.Struct, frozen=True):
    """Who held what."""

    name: str
    device_id: str
    stage: int
    layers: str
    downloaded_bytes: int
    reused_bytes: int


class Hop(msgspec.Struct, frozen=True):
    """Application bytes from one stage to the next, for this answer."""

    from_node: str
    to_node: str
    bytes: int
    bytes_per_token: float


class Result(msgspec.Struct, frozen=True):
    """What ``--json`` prints."""

    answer: str
    token_ids: tuple[int, ...]
    finish_reason: str
    prompt_tokens: int
    nodes: tuple[Served, ...]
    plan: dict[str, Any]
    ttft_ms: float
    tokens_per_second: float
    bytes_per_hop: tuple[Hop, ...]
    precision: str
    model: str


async def bring_up(fleet: ThrowAwayFleet, options: Options, say: Say) -> ChainView:
    """Form the fleet and serve the model, telling each step."""
    narrator = Narrator(say)
    await fleet.form()
    watcher = asyncio.create_task(narrator.follow(fleet))
    try:
        chain = await fleet.serve(options.model, options.precision, options.draft)
    finally:
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)
    narrator.tell(await fleet.view())
    return chain


async def ask(
    fleet: ThrowAwayFleet, options: Options, chain: ChainView, show: Callable[[str], None]
) -> Result:
    """Put the question to the fleet's own API, stream the answer, and measure.

    Raises:
        FleetError: what the fleet said instead of an answer.
    """
    before = {(h.from_device, h.to_device): h.bytes for h in (await _chain(fleet, chain)).hops}
    body: dict[str, Any] = {
        "model": options.model,
        "messages": [{"role": "user", "content": options.prompt}],
        "max_tokens": options.max_tokens,
        "temperature": options.temperature,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_token_ids": True,
    }
    if options.seed is not None:
        body["seed"] = options.seed
    text: list[str] = []
    ids: list[int] = []
    times: list[float] = []
    finish = ""
    usage: dict[str, int] = {}
    started = time.monotonic()
    async for event in _events(fleet, body):
        for choice in event.get("choices", ()):
            new = choice.get("token_ids") or []
            if new:
                times += [time.monotonic()] * len(new)
                ids += new
            piece = choice.get("delta", {}).get("content") or ""
            if piece:
                text.append(piece)
                show(piece)
            finish = choice.get("finish_reason") or finish
        usage = event.get("usage") or usage
    names = {a.device_id: a.node for a in chain.assignments}
    prompt_tokens = int(usage.get("prompt_tokens", 0))
    hops = await _hops(fleet, chain, before, prompt_tokens + len(ids), names)
    span = times[-1] - times[0] if len(times) > 1 else 0.0
    return Result(
        answer="".join(text),
        token_ids=tuple(ids),
        finish_reason=finish,
        prompt_tokens=prompt_tokens,
        nodes=tuple(
            Served(
                name=a.node,
                device_id=a.device_id,
                stage=a.stage,
                layers=str(a.layers),
                downloaded_bytes=a.total - a.from_cache,
                reused_bytes=a.from_cache,
            )
            for a in chain.assignments
        ),
        plan={
            "stages": len(chain.assignments),
            "layers": [[a.layers.start, a.layers.stop] for a in chain.assignments],
            "explanation": chain.plan,
        },
        ttft_ms=round((times[0] - started) * 1000, 1) if times else 0.0,
        tokens_per_second=round((len(times) - 1) / span, 1) if span else 0.0,
        bytes_per_hop=hops,
        precision=chain.precision,
        model=chain.model,
    )


async def _events(fleet: ThrowAwayFleet, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    timeout = aiohttp.ClientTimeout(total=None, sock_read=ANSWER_SILENCE)
    url = f"{fleet.api_url}/chat/completions"
    headers = {"Authorization": f"Bearer {fleet.api_key}"}
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(url, json=body, headers=headers) as response,
        ):
            if response.status >= 400:
                raise _error(await response.json())
            async for raw in response.content:
                line = raw.strip()
                if not line.startswith(b"data:"):
                    continue
                data = line[5:].strip()
                if data == b"[DONE]":
                    return
                event = json.loads(data)
                if "error" in event:
                    raise _error(event)
                yield event
    except (aiohttp.ClientError, TimeoutError, OSError) as exc:
        raise NoHub(
            f"The coordinator has gone while it was answering: {exc}.",
            remedy="Ask again once it is back.",
        ) from exc
    raise NoHub("The answer ended before it was complete.", remedy="Ask again.")


def _error(body: dict[str, Any]) -> FleetError:
    error = body.get("error", {})
    return from_code(
        str(error.get("code", "")), str(error.get("message", "")), str(error.get("remedy", ""))
    )


async def _chain(fleet: ThrowAwayFleet, chain: ChainView) -> ChainView:
    view = await fleet.view()
    return next((c for c in view.chains if c.chain == chain.chain), chain)


async def _hops(
    fleet: ThrowAwayFleet,
    chain: ChainView,
    before: dict[tuple[str, str], int],
    tokens: int,
    names: dict[str, str],
) -> tuple[Hop, ...]:
    """Counters once they have stopped moving."""
    end, last = time.monotonic() + COUNTER_WAIT, (await _chain(fleet, chain)).hops
    while time.monotonic() < end:
        await asyncio.sleep(1.2)
        now = (await _chain(fleet, chain)).hops
        if now == last and all(h.bytes for h in now):
            break
        last = now
    hops = []
    for hop in last:
        sent = hop.bytes - before.get((hop.from_device, hop.to_device), 0)
        hops.append(
            Hop(
                from_node=names.get(hop.from_device, hop.from_device),
                to_node=names.get(hop.to_device, hop.to_device),
                bytes=sent,
                bytes_per_token=round(sent / max(tokens, 1), 1),
            )
        )
    return tuple(hops)


class Narrator:
    """Tells every change of phase once."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._told: set[tuple[str, ...]] = set()

    async def follow(self, fleet: ThrowAwayFleet) -> None:
        """Tell until cancelled."""
        async for view in fleet.watch():
            self.tell(view)

    def tell(self, view: FleetView) -> None:
        """Tell what is new in a view."""
        for chain in view.chains:
            if chain.plan:
                self._once(f"Plan: {chain.plan}", "plan", chain.plan)
            for a in chain.assignments:
                self._once(_sentence(a), a.device_id, a.phase, str(a.layers), a.message)

    def _once(self, sentence: str, *key: str) -> None:
        if sentence and key not in self._told:
            self._told.add(key)
            self._say(sentence)


def _sentence(a: AssignmentView) -> str:
    done = {
        "waiting": "",
        "downloading": f"fetches layers {a.layers} ({a.total / 2**20:.0f} MiB).",
        "verifying": "verifies every byte by its hash.",
        "compiling": "compiles.",
        "loading": "loads.",
        "ready": f"is ready ({a.from_cache / 2**20:.0f} MiB were here already).",
        "linked": "is linked to its neighbours over TLS.",
        "failed": f"cannot: {a.message}",
    }[a.phase]
    return f"{a.node} {done}" if done else ""

"""``/metrics``: what the hub has counted, in the text format that Prometheus scrapes.

One writer of our own: the format is four kinds of line, and a client library would bring a
registry of global counters where ours are counted elsewhere (by the heads of the chains).
https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal

from aiohttp import web

from fleetapp.api.auth import Authorize
from fleetapp.api.errors import use_error_middleware
from fleetapp.engine.pipe import ChainStats, RunnerStats
from fleetapp.hub.service import ChainReport, Health

CONTENT_TYPE: Final = "text/plain; version=0.0.4"

Labels = dict[str, str]


class Page:
    """Samples gathered by metric, in the order in which the metrics came up."""

    def __init__(self) -> None:
        self._metrics: dict[str, list[str]] = {}

    def add(
        self,
        name: str,
        kind: Literal["counter", "gauge"],
        help_text: str,
        value: float,
        **labels: str,
    ) -> None:
        """One sample; ``name`` without prefix, and without ``_total`` for a counter."""
        full = f"fleetapp_{name}" + ("_total" if kind == "counter" else "")
        lines = self._metrics.setdefault(
            full, [f"# HELP {full} {help_text}", f"# TYPE {full} {kind}"]
        )
        told = ",".join(f'{k}="{_escaped(v)}"' for k, v in labels.items())
        lines.append(f"{full}{{{told}}} {_number(value)}" if told else f"{full} {_number(value)}")

    def text(self) -> str:
        """The whole page."""
        return "".join(f"{line}\n" for lines in self._metrics.values() for line in lines)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def page(health: Health, reports: Sequence[ChainReport]) -> str:
    """Everything as text."""
    found = Page()
    found.add("nodes_online", "gauge", "Connected PCs.", health.nodes_online)
    for report in reports:
        chain = report.view
        labels = {"chain": chain.chain, "model": chain.model}
        live = chain.state == "live"
        found.add("chain_live", "gauge", "1 if the chain answers now.", float(live), **labels)
        found.add("chain_epoch", "gauge", "How often it was formed.", chain.epoch, **labels)
        for state, count in (("running", chain.running), ("waiting", chain.waiting)):
            found.add("requests", "gauge", "Requests now.", count, **labels, state=state)
        nodes = {a.device_id: a for a in chain.assignments}
        for hop in chain.hops:
            stage = str(nodes[hop.from_device].stage)
            node = nodes[hop.from_device].node
            _sent(found, hop.bytes, labels, stage, node)
        if report.head is not None:
            _head(found, report.head, labels)
            if report.head.chain is not None:
                _chain(found, report.head.chain, labels, chain.nodes)
    return found.text()


def _sent(found: Page, count: int, labels: Labels, stage: str, node: str) -> None:
    found.add(
        "stage_sent_bytes",
        "counter",
        "Application bytes a stage sent to the next since the chain went live.",
        count,
        **labels,
        stage=stage,
        node=node,
    )


def _head(found: Page, head: RunnerStats, labels: Labels) -> None:
    found.add("cache_blocks", "gauge", "Cache blocks of the head.", head.blocks, **labels)
    free = head.free_blocks
    found.add("cache_blocks_free", "gauge", "Those that nobody holds.", free, **labels)
    kept = head.kept_blocks
    found.add("cache_blocks_kept", "gauge", "Those of ended requests, to build on.", kept, **labels)
    found.add("head_resident_bytes", "gauge", "Memory of the head's process.", head.rss, **labels)


def _chain(found: Page, c: ChainStats, labels: Labels, names: Sequence[str]) -> None:
    done = c.requests - c.failed - c.cancelled
    for outcome, ended in (("finished", done), ("failed", c.failed), ("cancelled", c.cancelled)):
        found.add("finished_requests", "counter", "Ended.", ended, **labels, outcome=outcome)
    counters: tuple[tuple[str, str, float], ...] = (
        ("prompt_tokens", "Of ended requests.", c.prompt_tokens),
        ("cached_prompt_tokens", "Found in the cache, not computed.", c.cached_tokens),
        ("answer_tokens", "Of ended requests.", c.answer_tokens),
        ("steps", "Frames that went around.", c.steps),
        ("step_sequences", "Sequences in them: over steps it is the batch width.", c.sequences),
        ("prefill_positions", "Computed for prompts.", c.prefill_tokens),
        ("decode_positions", "Computed for answers, drafts included.", c.decode_tokens),
        ("wire_seconds", "Spent between stages.", c.wire_seconds),
        ("head_wait_seconds", "Answers of steps lay at the head.", c.wait_seconds),
    )
    for name, text, count in counters:
        found.add(name, "counter", text, count, **labels)
    for stage, total in enumerate(c.stages):
        node = names[stage] if stage < len(names) else ""
        for part in ("compute", "wait", "host"):
            found.add(
                "stage_seconds",
                "counter",
                "What a stage has spent computing, on handling, and while frames waited.",
                getattr(total, part),
                **labels,
                stage=str(stage),
                node=node,
                part=part,
            )
    for position, drafted in enumerate(c.drafted, 1):
        at = {**labels, "position": str(position)}
        accepted = c.accepted[position - 1] if position <= len(c.accepted) else 0
        found.add("drafts", "counter", "Proposed, by position.", drafted, **at)
        found.add("drafts_accepted", "counter", "Of those, accepted.", accepted, **at)


def add_metrics_route(
    app: web.Application,
    health: Callable[[], Health],
    reports: Callable[[], Awaitable[Sequence[ChainReport]]],
    authorize: Authorize,
) -> None:
    """Serve ``GET /metrics`` from ``app``; it needs a key like every other request."""
    use_error_middleware(app)

    async def metrics(request: web.Request) -> web.Response:
        authorize(request)
        body = page(health(), await reports()).encode()
        return web.Response(body=body, headers={"Content-Type": f"{CONTENT_TYPE}; charset=utf-8"})

    app.router.add_get("/metrics", metrics)

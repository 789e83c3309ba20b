"""What a scraper sees: parseable lines, every chain and stage, nothing without a key."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from itertools import pairwise

import aiohttp
import pytest
from aiohttp import web

from fleetapp.api.metrics import Page, add_metrics_route, page
from fleetapp.engine.pipe import ChainStats, RunnerStats, StageTotals
from fleetapp.hub.service import ChainReport, Health
from fleetapp.types import AssignmentView, ChainView, HopView, LayerRange
from tests.support.api_server import serving
from tests.unit.api.conftest import KEY, authorize

LINE = re.compile(r'^[a-z_]+(\{([a-z_]+="([^"\\\n]|\\["\\n])*",?)*\})? -?[0-9.]+(e[+-]?[0-9]+)?$')
HEALTH = Health(True, "Serving.", 2, 1)


def report(*, head: bool = True) -> ChainReport:
    stages = [
        AssignmentView(f"dev{i}", node, "tiny", i, 2, LayerRange(i, i + 1), "linked")
        for i, node in enumerate(('DESK "1"', "José 測試\\"))
    ]
    view = ChainView(
        chain="c-1",
        model="tiny",
        precision="fast",
        epoch=3,
        state="live",
        reason="",
        assignments=tuple(stages),
        hops=(HopView("dev0", "dev1", 500), HopView("dev1", "dev0", 40)),
        running=2,
        waiting=1,
    )
    chain = ChainStats(
        steps=10,
        sequences=25,
        prefill_tokens=100,
        decode_tokens=60,
        wire_seconds=0.25,
        wait_seconds=0.5,
        stages=(StageTotals(0.1, 1.5, 0.01), StageTotals(0.2, 2.5, 0.02)),
        prompt_tokens=90,
        answer_tokens=50,
        cached_tokens=32,
        requests=9,
        failed=1,
        cancelled=2,
        drafted=(8, 4),
        accepted=(6, 1),
    )
    counted = dict.fromkeys(RunnerStats.__struct_fields__, 7)
    stats = RunnerStats(
        **{**counted, "free_blocks": 60, "kept_blocks": 3, "blocks": 64, "chain": chain}
    )
    return ChainReport(view, stats if head else None)


def samples(text: str) -> dict[str, float]:
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            assert LINE.match(line), line
            name, value = line.rsplit(" ", 1)
            assert name not in found
            found[name] = float(value)
    return found


def test_every_chain_and_stage_is_counted() -> None:
    found = samples(page(HEALTH, [report()]))
    of = 'chain="c-1",model="tiny"'
    first, second = 'stage="0",node="DESK \\"1\\""', 'stage="1",node="José 測試\\\\"'
    assert found["fleetapp_nodes_online"] == 2
    assert found[f"fleetapp_cache_blocks_free{{{of}}}"] == 60
    assert found[f"fleetapp_cache_blocks_kept{{{of}}}"] == 3
    assert found[f"fleetapp_chain_live{{{of}}}"] == 1
    assert found[f'fleetapp_requests{{{of},state="waiting"}}'] == 1
    assert found[f'fleetapp_finished_requests_total{{{of},outcome="finished"}}'] == 6
    assert found[f"fleetapp_steps_total{{{of}}}"] == 10
    assert found[f"fleetapp_wire_seconds_total{{{of}}}"] == 0.25
    assert found[f"fleetapp_cached_prompt_tokens_total{{{of}}}"] == 32
    assert found[f'fleetapp_stage_seconds_total{{{of},{first},part="compute"}}'] == 1.5
    assert found[f'fleetapp_stage_seconds_total{{{of},{second},part="wait"}}'] == 0.2
    assert found[f"fleetapp_stage_sent_bytes_total{{{of},{second}}}"] == 40
    assert found[f'fleetapp_drafts_total{{{of},position="1"}}'] == 8
    assert found[f'fleetapp_drafts_accepted_total{{{of},position="2"}}'] == 1


def test_a_metric_is_described_once_and_its_samples_lie_together() -> None:
    lines = page(HEALTH, [report(), report()]).splitlines()
    described = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(described) == len(set(described))
    order = [re.split(r"[{ ]", line)[0] for line in lines if not line.startswith("#")]
    changes = [a for a, b in pairwise(order) if a != b] + order[-1:]
    assert len(changes) == len(set(changes)) == len(described)


def test_a_chain_without_a_head_is_shown_all_the_same() -> None:
    found = samples(page(HEALTH, [report(head=False)]))
    assert found['fleetapp_chain_epoch{chain="c-1",model="tiny"}'] == 3
    assert not any("steps" in name for name in found)


def test_numbers_are_written_whole_where_they_are() -> None:
    made = Page()
    made.add("a", "gauge", "A.", 5.0)
    made.add("b", "counter", "B.", 0.1, x="line\nbreak")
    assert made.text() == (
        "# HELP fleetapp_a A.\n# TYPE fleetapp_a gauge\nfleetapp_a 5\n"
        "# HELP fleetapp_b_total B.\n# TYPE fleetapp_b_total counter\n"
        'fleetapp_b_total{x="line\\nbreak"} 0.1\n'
    )


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async def reports() -> list[ChainReport]:
        return [report()]

    app = web.Application()
    add_metrics_route(app, lambda: HEALTH, reports, authorize)
    async with serving(app) as base:
        yield base


async def test_it_is_served_to_who_has_a_key(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{url}/metrics") as refused:
            assert refused.status == 401
        headers = {"Authorization": f"Bearer {KEY}"}
        async with session.get(f"{url}/metrics", headers=headers) as answer:
            assert answer.status == 200
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert samples(await answer.text())

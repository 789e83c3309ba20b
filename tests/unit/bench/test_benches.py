"""Each bench, small, on the real model: every promised check is measured in its own run."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from fleetapp.bench import guest, pipeline, prefill, prefix, speculation, users
from fleetapp.bench.speculation import At
from fleetapp.engine.genai_child import CONTINUOUS_BATCHING, LLM_PIPELINE
from tests.support.sample_model import MODEL
from tests.support.stages import library

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(900)]


def test_users() -> None:
    effort = users.Effort(rounds=1, users=(1, 8), tokens=16, warmups=0)
    report = users.run(library(), MODEL, precision="exact", effort=effort)
    assert [c.name for c in report.checks] == ["users8_vs_genai_cb", "users1_vs_llmpipeline"]
    assert [(r["way"], r["users"]) for r in report.rows] == [
        (users.OURS, 1),
        (CONTINUOUS_BATCHING, 1),
        (LLM_PIPELINE, 1),
        (users.OURS, 8),
        (CONTINUOUS_BATCHING, 8),
    ]
    assert all(r["tok/s median"] > 0 for r in report.rows)


def test_pipeline_has_equal_tokens_a_full_picture_and_a_trace(tmp_path: Path) -> None:
    effort = pipeline.Effort(rounds=1, tokens=16, warmups=0)
    files = pipeline.Files(tmp_path / "three.svg", tmp_path / "three.json")
    report = pipeline.run(library(), MODEL, precision="exact", effort=effort, files=files)
    checks = {c.name: c for c in report.checks}
    assert set(checks) == {
        "one_user_ratio",
        "two_users_vs_single",
        "users8_ratio",
        "users16_ratio",
        "tokens_equal",
        "three_stage_fill",
    }
    assert checks["tokens_equal"].holds
    assert checks["three_stage_fill"].holds
    ET.parse(tmp_path / "three.svg")
    events = json.loads((tmp_path / "three.json").read_text())["traceEvents"]
    assert {e["pid"] for e in events if e["ph"] == "X"} == {0, 1, 2, 3}


def test_prefill() -> None:
    effort = prefill.Effort(rounds=1, stages=(1, 2), warmups=0, tokens=100)
    report = prefill.run(library(), MODEL, effort=effort)
    assert [c.name for c in report.checks] == ["decode_delay_chunks"]
    assert [r["stages"] for r in report.rows] == [1, 2]


def test_prefix_reuses_a_history_without_changing_the_answer() -> None:
    effort = prefix.Effort(rounds=1, stages=(1, 2), warmups=0)
    report = prefix.run(library(), MODEL, precision="exact", effort=effort)
    checks = {c.name: c for c in report.checks}
    assert set(checks) == {"ttft_gain", "tokens_equal"}
    assert checks["tokens_equal"].holds
    assert all(r["cached tokens"] > 1400 for r in report.rows)


def test_speculation_changes_no_token() -> None:
    effort = speculation.Effort(
        (At(0.0, 1, 24), At(0.02, 1, 16)), kinds=("list", "code"), full_rounds=1, full_tokens=12
    )
    report = speculation.run(library(), MODEL, effort=effort)
    checks = {c.name: c for c in report.checks}
    assert set(checks) == {"worst_cell_ratio", "full_vs_naive_100ms", "tokens_equal"}
    assert checks["tokens_equal"].holds
    assert len(report.rows) == 2 * 2 + 2


def test_a_guest_yields() -> None:
    effort = guest.Effort(rounds=1, users=(1,), release_after=1)
    report = guest.run(library(), MODEL, effort=effort)
    checks = {c.name: c for c in report.checks}
    assert tuple(checks) == guest.PROMISED
    assert checks["steps_after_activity"].holds
    assert 1.0 <= checks["memory_released_s"].value <= 1 + guest.MARGIN_SECONDS
    assert report.rows[0]["noticed ms"] <= 600

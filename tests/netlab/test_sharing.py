"""A PC that lacks a shard gets it from a neighbour that has it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.netlab.lab import Lab
from tests.netlab.promise import whole

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(400)]


def test_a_shard_comes_from_the_neighbour_that_holds_it(tmp_path: Path, library: Path) -> None:
    with Lab(tmp_path, 3, {"FLEETAPP_MODELS_DIR": str(library)}) as lab:
        lab.start()
        lab.form()
        lab.serve(deadline=120)
        first, second, third = lab.hosts
        before = whole(first, 16)
        for host in (third, second):
            host.stop()
        # As if the layers had been dealt the other way round before.
        shard = next(p for p in (third.home / "shards").iterdir() if (p / "stage.json").exists())
        shutil.move(shard, second.home / "shards" / shard.name)
        second.start()
        first.until(lambda _: first.state_of(second) == "online", 30)
        third.start()
        first.until_live(3, 120)
        assert whole(first, 16) == before
        device = second.get("status")["device_id"]
        fetched = [line for line in third.said(400).splitlines() if "fetched:" in line]
        assert f"bytes from device {device}" in fetched[-1]

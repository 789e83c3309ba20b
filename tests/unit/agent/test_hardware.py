import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fleetapp.agent.devices import Devices
from fleetapp.agent.hardware import billions, hardware_view
from fleetapp.engine import probe
from fleetapp.errors import PeerTimeout
from fleetapp.platform.fake import FakePlatform
from fleetapp.platform.paths import Paths

GIB = 2**30


def pc(tmp_path: Path) -> Any:
    return SimpleNamespace(
        platform=FakePlatform(),
        paths=Paths(tmp_path),
        guest=SimpleNamespace(memory_for_fleet=lambda: 6 * GIB, memory_held=GIB),
    )


async def test_devices_are_told_with_what_they_are_used_for(tmp_path: Path) -> None:
    asked = []

    def ask() -> probe.Probe:
        asked.append(1)
        return probe.Probe(
            "2026.4.1-1-abc",
            (
                probe.Device("CPU", "A processor"),
                probe.Device("GPU.0", "A graphics chip", memory=4 * GIB),
                probe.Device("NPU", error="driver too old"),
            ),
        )

    devices = Devices(lambda: "", ask)
    await asyncio.gather(devices.look(), hardware_view(pc(tmp_path), devices))
    found = await hardware_view(pc(tmp_path), devices)
    assert len(asked) == 1, "the probe costs seconds"
    assert [(d.kind, d.for_stages, d.error) for d in found.devices] == [
        ("CPU", True, ""),
        ("GPU", True, ""),
        ("NPU", False, "driver too old"),
    ]
    assert found.runtime == "2026.4.1"
    assert found.memory_for_models == 6 * GIB
    assert found.problem == ""


async def test_a_driver_that_hangs_is_said_and_asked_again(tmp_path: Path) -> None:
    answers = [PeerTimeout("A driver hangs.", remedy="Restart."), None]

    def ask() -> probe.Probe:
        if (error := answers.pop(0)) is not None:
            raise error
        return probe.Probe("1", (probe.Device("CPU", "A processor"),))

    devices = Devices(lambda: "", ask)
    found = await hardware_view(pc(tmp_path), devices)
    assert (found.problem, found.remedy, found.devices) == ("A driver hangs.", "Restart.", ())
    found = await hardware_view(pc(tmp_path), devices)
    assert found.problem == ""
    assert [d.id for d in found.devices] == ["CPU"]


@pytest.mark.parametrize(
    ("memory", "count"), [(-1, 0), (0, 0), (100 * 2**20, 0.1), (6 * GIB, 8.5), (12 * GIB, 17)]
)
def test_how_large_a_model_fits(memory: int, count: float) -> None:
    assert billions(memory) == count

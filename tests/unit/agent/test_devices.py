"""Which devices a PC offers, whatever its drivers do."""

from __future__ import annotations

import pytest

from fleetapp.agent.devices import Devices
from fleetapp.engine import probe
from fleetapp.engine.probe import Device, Probe
from fleetapp.errors import FleetError, PeerTimeout, RunnerFailed

AI_PC = Probe("r", (Device("CPU", "Core"), Device("GPU.0", "Arc"), Device("NPU", "AI Boost")))
ALL = frozenset({"CPU", "GPU", "NPU"})


async def found(answer: Probe | FleetError, wanted: str = "") -> Devices:
    def ask() -> Probe:
        if isinstance(answer, FleetError):
            raise answer
        return answer

    devices = Devices(lambda: wanted, ask)
    assert devices.found == {"CPU"}, "until it is known"
    await devices.look()
    return devices


async def test_an_ai_pc_has_all_three_and_computes_on_the_best_that_is_lent() -> None:
    devices = await found(AI_PC)
    assert devices.found == ALL
    assert devices.names == ("CPU: Core", "GPU.0: Arc", "NPU: AI Boost")
    assert devices.for_stages(ALL) == ("GPU",)
    assert devices.for_stages(frozenset({"CPU", "NPU"})) == ("CPU",)
    assert devices.for_stages(frozenset({"NPU"})) == (), "an NPU cannot page keys and values"
    assert devices.for_stages(frozenset()) == ()


@pytest.mark.parametrize("error", [PeerTimeout("hangs"), RunnerFailed("crashed")])
async def test_a_broken_driver_leaves_the_processor(error: FleetError) -> None:
    devices = await found(error)
    assert devices.found == {"CPU"}
    assert devices.for_stages(ALL) == ("CPU",)


async def test_a_device_that_cannot_be_asked_is_not_used() -> None:
    devices = await found(Probe("r", (Device("CPU"), Device("GPU", error="no driver"))))
    assert devices.found == {"CPU"}


async def test_what_is_laid_down_is_not_asked_for() -> None:
    devices = await found(RunnerFailed("never asked"), "gpu, cpu")
    assert devices.found == {"CPU", "GPU"}


async def test_this_machine_has_a_processor() -> None:
    devices = Devices(lambda: "", probe.run)
    await devices.look()
    assert "CPU" in devices.found
    assert any(n.startswith("CPU") for n in devices.names)

"""What this PC has to compute with, and how much of a model that could hold."""

from __future__ import annotations

from fleetapp.agent.devices import CLASSES, FOR_STAGES, Devices
from fleetapp.agent.pc import PC
from fleetapp.engine import probe
from fleetapp.errors import FleetError
from fleetapp.types import DeviceView, HardwareView

BYTES_PER_PARAMETER = 0.75
"""Of a model in 4 bits, with scales, embeddings and room for keys and values; SmolLM2-135M's file
alone has 0.73."""


async def hardware_view(pc: PC, devices: Devices) -> HardwareView:
    """Look, and never fail: what cannot be found out is said. Bounded by the probe's deadline."""
    problem = remedy = runtime = ""
    found: tuple[DeviceView, ...] = ()
    try:
        report = await devices.report()
    except FleetError as error:
        problem, remedy = error.message, error.remedy
    else:
        found = tuple(_device(d) for d in report.devices)
        runtime = report.runtime.split("-")[0]
        if report.missing:
            problem = f"The runtime cannot be loaded: {report.missing[0]}."
            remedy = "Install fleetapp anew; on Windows also the Visual C++ redistributable."
    free = pc.guest.memory_for_fleet()
    return HardwareView(
        cpu=pc.platform.cpu_name(),
        cores=pc.platform.cores(),
        memory_total=pc.platform.memory_total(),
        memory_free=pc.platform.memory_free(),
        memory_for_models=free,
        memory_held=pc.guest.memory_held,
        disk_free=pc.platform.disk_free(pc.paths.home),
        billion_parameters=billions(free),
        devices=found,
        runtime=runtime,
        problem=problem,
        remedy=remedy,
    )


def billions(memory: int) -> float:
    """Parameters that ``memory`` bytes hold in 4 bits, in billions: to a tenth, above 10 whole."""
    count = max(0, memory) / BYTES_PER_PARAMETER / 1e9
    return float(int(count)) if count >= 10 else int(count * 10) / 10


def _device(device: probe.Device) -> DeviceView:
    name = device.id.split(".")[0].upper()
    kind = next((c for c in CLASSES if c == name), None)
    return DeviceView(
        id=device.id,
        name=device.name,
        kind=kind or "other",
        memory=device.memory,
        for_stages=kind in FOR_STAGES,
        error=device.error,
    )

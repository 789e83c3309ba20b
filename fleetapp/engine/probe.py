"""Short-lived process that asks OpenVINO what this PC has: ``python -m fleetapp.engine.probe``.

A driver may crash or hang while it is asked. That must take nothing but this process with it.
Prints one JSON object (``Probe``) and ends.
"""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys

import msgspec

from fleetapp.errors import Malformed, PeerTimeout, RunnerFailed

DEADLINE = 60.0
"""Seconds; a GPU's first enumeration can take many."""
_STDERR = 2000


class Device(msgspec.Struct, frozen=True):
    """One device as OpenVINO names it. ``memory`` in bytes, 0 if it does not say."""

    id: str
    name: str = ""
    kind: str = ""
    capabilities: tuple[str, ...] = ()
    memory: int = 0
    error: str = ""
    """Why it is listed and yet cannot be asked."""


class Probe(msgspec.Struct, frozen=True):
    """What the runtime says; ``missing`` names packages that cannot be imported, and why."""

    runtime: str = ""
    devices: tuple[Device, ...] = ()
    missing: tuple[str, ...] = ()


def run(deadline: float = DEADLINE) -> Probe:
    """Ask in a process of its own.

    Args:
        deadline: seconds after which the process is killed.

    Raises:
        PeerTimeout: it hung.
        RunnerFailed: it died.
        Malformed: it said something else than a Probe.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "fleetapp.engine.probe"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=deadline,
            check=False,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except subprocess.TimeoutExpired as error:
        raise PeerTimeout(
            f"Asking for devices took more than {deadline:.0f} s, so a driver hangs.",
            remedy="Restart the PC, and update its graphics and NPU drivers if it happens again.",
        ) from error
    if done.returncode != 0:
        last = done.stderr.decode("utf-8", "replace")[-_STDERR:].strip().splitlines()
        raise RunnerFailed(
            f"Asking for devices ended with exit code {done.returncode}"
            f"{f' ({last[-1]})' if last else ''}.",
            remedy="Update the graphics and NPU drivers of this PC.",
        )
    try:
        return msgspec.json.decode(done.stdout, type=Probe)
    except msgspec.MsgspecError as error:
        raise Malformed("The device probe said nothing that makes sense.") from error


def probe() -> Probe:
    """Ask in this process. Never raises for a missing package or a broken device."""
    missing = []
    for package in ("openvino", "openvino_genai", "openvino_tokenizers"):
        try:
            __import__(package)
        except (ImportError, OSError, RuntimeError) as error:
            missing.append(f"{package}: {error}")
    if any(m.startswith("openvino:") for m in missing):
        return Probe(missing=tuple(missing))
    import openvino  # noqa: PLC0415 - only this process may load native code

    core = openvino.Core()
    return Probe(
        runtime=str(openvino.get_version()),
        devices=tuple(_device(core, name) for name in core.available_devices),
        missing=tuple(missing),
    )


def _device(core: object, name: str) -> Device:
    def ask(key: str, default: object) -> object:
        try:
            return core.get_property(name, key)  # type: ignore[attr-defined]
        except RuntimeError:  # not every device knows every property
            return default

    try:
        full = core.get_property(name, "FULL_DEVICE_NAME")  # type: ignore[attr-defined]
    except RuntimeError as error:
        return Device(name, error=str(error).splitlines()[0][:200])
    capabilities = ask("OPTIMIZATION_CAPABILITIES", ())
    memory = ask("GPU_DEVICE_TOTAL_MEM_SIZE", 0)
    return Device(
        id=name,
        name=str(full).strip(),
        kind=str(ask("DEVICE_TYPE", "")).removeprefix("Type.").lower(),
        capabilities=tuple(str(c) for c in capabilities) if isinstance(capabilities, list) else (),
        memory=memory if isinstance(memory, int) else 0,
    )


def main() -> int:
    """Entry of the process."""
    faulthandler.enable()
    answer = os.dup(1)
    os.dup2(2, 1)  # what a driver prints must not get into the answer
    with os.fdopen(answer, "wb") as out:
        out.write(msgspec.json.encode(probe()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

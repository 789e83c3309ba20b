"""What the first run says of devices, checks and work, in words."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QLocale

from fleetapp.types import DeviceView, Finding, HardwareView, ModelJob, SettingView
from ui import words

translate = QCoreApplication.translate


def device_kind(device: DeviceView) -> str:
    """What a device is called, beside its maker's name for it."""
    return {
        "CPU": translate("FirstRun", "Processor"),
        "GPU": translate("FirstRun", "Graphics processor"),
        "NPU": translate("FirstRun", "Neural processor"),
        "other": translate("FirstRun", "Other device"),
    }[device.kind]


def could_run(device: DeviceView, hardware: HardwareView) -> str:
    """What could be computed on a device of this PC."""
    if device.error:
        return translate("FirstRun", "It does not answer: {why}").format(why=device.error)
    if not device.for_stages:
        return translate(
            "FirstRun", "Is shown only: the models of a fleet do not run on this kind yet."
        )
    memory = device.memory if device.kind == "GPU" and device.memory else 0
    room = min(memory, hardware.memory_for_models) if memory else hardware.memory_for_models
    if hardware.memory_for_models <= 0 or hardware.billion_parameters <= 0:
        return translate("FirstRun", "Can compute, once there is memory to spare.")
    billions = hardware.billion_parameters * room / hardware.memory_for_models
    return translate(
        "FirstRun",
        "Alone a model of up to about {billions} billion parameters; "
        "together with others a part of a larger one.",
    ).format(billions=QLocale().toString(billions, "f", 1 if billions < 10 else 0))


def memory_line(hardware: HardwareView) -> str:
    """How much there is, and how much of it models may take now."""
    return translate("FirstRun", "{total}, of which models may take {room} now").format(
        total=words.size(hardware.memory_total), room=words.size(hardware.memory_for_models)
    )


def managed(setting: SettingView) -> str:
    """Why a setting cannot be changed here."""
    return translate("FirstRun", "Managed by {policy}.").format(policy=setting.where)


def job_line(job: ModelJob) -> str:
    """Phase, how far, and time left, as far as they are known."""
    parts = [
        {
            "starting": translate("FirstRun", "Starting"),
            "waiting": translate("FirstRun", "Waiting for another program"),
            "downloading": translate("FirstRun", "Downloading"),
            "unpacking": translate("FirstRun", "Unpacking"),
            "verifying": translate("FirstRun", "Verifying"),
            "copying": translate("FirstRun", "Copying"),
            "converting": translate("FirstRun", "Converting"),
            "inspecting": translate("FirstRun", "Looking at its layers"),
            "checking": translate("FirstRun", "Checking its parts against the whole"),
            "splitting": translate("FirstRun", "Cutting it into parts"),
            "hashing": translate("FirstRun", "Sealing its parts"),
        }[job.phase]
    ]
    if job.total > 0:
        if job.unit == "bytes":
            done, total = words.size(job.done), words.size(job.total)
        else:
            done, total = QLocale().toString(job.done), QLocale().toString(job.total)
        parts.append(translate("Words", "{done} of {total}").format(done=done, total=total))
    if job.seconds_left is not None:
        parts.append(words.time_left(job.seconds_left))
    return " · ".join(parts)


def check_name(finding: Finding) -> str:
    """What was looked at; the agent's own word for a check that is not known here."""
    return {
        "discovery": translate("FirstRun", "Finding other PCs"),
        "inbound": translate("FirstRun", "Being found by others"),
        "vpn": translate("FirstRun", "VPN"),
        "clock": translate("FirstRun", "Clock"),
    }.get(finding.key, finding.name)

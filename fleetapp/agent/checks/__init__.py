"""How this PC is, question by question. Each check answers one and changes nothing.

For ``fleetapp doctor``, the first run and the support bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import msgspec

from fleetapp.agent.checks.membership import agent, fleet
from fleetapp.agent.checks.network import clock, discovery, inbound, ports, vpn
from fleetapp.agent.checks.pc import (
    devices,
    disk,
    home,
    keyring,
    memory,
    models,
    packages,
    python,
    settings,
)
from fleetapp.agent.checks.subject import AgentSide, KnownAgent, NoAgent, Subject
from fleetapp.types import Finding

__all__ = ["CHECKS", "CONNECTION", "AgentSide", "KnownAgent", "NoAgent", "Subject", "examine"]

Check = Callable[[Subject], Finding]

CHECKS: tuple[Check, ...] = (
    python, packages, devices, memory, disk, home, settings, discovery, inbound, vpn, ports, clock,
    keyring, agent, fleet, models,
)  # fmt: skip
CONNECTION = ("discovery", "inbound", "clock", "vpn")
"""Names of those about the way to other PCs."""


def examine(
    subject: Subject, only: Collection[str] = (), checks: Collection[Check] = CHECKS
) -> Iterator[Finding]:
    """Run every check, or ``only`` those of these names; one that breaks is a finding too.

    Blocks, each check for some seconds at most.
    """
    for check in checks:
        name = check.__name__
        if only and name not in only:
            continue
        try:
            found = check(subject)
        except Exception as error:  # noqa: BLE001 - the list must come to its end
            found = Finding(
                name.capitalize(),
                "fail",
                f"Could not be checked ({type(error).__name__}: {error}).",
                "Run 'fleetapp doctor' again, and report it if it stays.",
            )
        yield msgspec.structs.replace(found, key=name)

"""What an admin can do to PCs, when, and what is asked before. Pure but for translations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QCoreApplication

from fleetapp.types import LocalStatus, NodeView
from ui.chat.safe_text import one_line
from ui.fleet import words

translate = QCoreApplication.translate

CommandName = Literal[
    "approve", "decline", "rename", "drain", "undrain", "admin", "member", "evict", "revoke",
    "reinstate",
]  # fmt: skip


@dataclass(frozen=True)
class Rights:
    """What the person at this PC may do in the fleet."""

    administers: bool = False
    coordinates: bool = False
    """The planner and the model library are on the coordinator only."""
    why_not: str = ""
    """Who may, if not this PC."""


def rights_of(status: LocalStatus | None) -> Rights:
    """By this PC's role."""
    if status is None or not status.fleet_id:
        return Rights()
    if status.role == "member":
        return Rights(
            why_not=translate(
                "Fleet",
                "You can look, but not change anything: this PC is a plain member. The coordinator "
                "and PCs with the role “admin” may; an admin can give this PC that role.",
            )
        )
    return Rights(administers=True, coordinates=status.role == "coordinator")


@dataclass(frozen=True)
class Command:
    """One thing to do to one PC or several."""

    name: CommandName
    label: Callable[[], str]
    fits: Callable[[NodeView], bool]
    question: Callable[[], str] = lambda: ""
    """Asked first if it does harm; empty if it does not."""
    consequence: Callable[[], str] = lambda: ""
    yes: Callable[[], str] = lambda: ""
    one_only: bool = False
    """Makes no sense for several PCs at once."""


def _member(node: NodeView) -> bool:
    return node.state in ("online", "suspected", "offline")


def _plain(node: NodeView) -> bool:
    return _member(node) and node.role != "coordinator"


COMMANDS: tuple[Command, ...] = (
    Command(
        "approve",
        lambda: translate("Fleet", "&Approve…"),
        lambda n: n.state == "pending",
        lambda: translate("Fleet", "Let {names} into the fleet?"),
        lambda: translate(
            "Fleet",
            "Go to that PC and compare: its screen must show the device id {ids}. Anybody who has "
            "the join code can choose a name.",
        ),
        lambda: translate("Fleet", "&Approve"),
        one_only=True,
    ),
    Command(
        "decline",
        lambda: translate("Fleet", "&Decline"),
        lambda n: n.state == "pending",
    ),
    Command("rename", lambda: translate("Fleet", "Re&name…"), _member, one_only=True),
    Command(
        "drain",
        lambda: translate("Fleet", "Dra&in"),
        lambda n: _member(n) and not n.drained,
    ),
    Command("undrain", lambda: translate("Fleet", "Re&sume"), lambda n: _member(n) and n.drained),
    Command(
        "admin",
        lambda: translate("Fleet", "&Make admin…"),
        lambda n: _plain(n) and n.role == "member",
        lambda: translate("Fleet", "Let whoever uses {names} administer the fleet?"),
        lambda: translate(
            "Fleet",
            "From there PCs can then be approved and shut out, join codes and API keys made, and "
            "roles given.",
        ),
        lambda: translate("Fleet", "&Make admin"),
    ),
    Command(
        "member",
        lambda: translate("Fleet", "Make plain &member"),
        lambda n: _plain(n) and n.role == "admin",
    ),
    Command(
        "evict",
        lambda: translate("Fleet", "&Evict…"),
        _plain,
        lambda: translate("Fleet", "Put {names} out of the fleet?"),
        lambda: translate(
            "Fleet",
            "Its connections are cut at once and others take its work over. It may join again with "
            "a join code. To keep it out for good, revoke it instead.",
        ),
        lambda: translate("Fleet", "&Evict"),
    ),
    Command(
        "revoke",
        lambda: translate("Fleet", "Re&voke…"),
        _plain,
        lambda: translate("Fleet", "Shut {names} out of the fleet for good?"),
        lambda: translate(
            "Fleet",
            "Its connections are cut at once, its certificate is worthless, and no join code lets "
            "it in again until an admin reinstates it. Right for a PC that is lost or stolen.",
        ),
        lambda: translate("Fleet", "&Revoke"),
    ),
    Command(
        "reinstate",
        lambda: translate("Fleet", "Reins&tate"),
        lambda n: n.state == "revoked",
    ),
)
BY_NAME = {command.name: command for command in COMMANDS}


def possible(command: Command, nodes: Sequence[NodeView], rights: Rights) -> bool:
    """Whether ``command`` can be given for all of these PCs."""
    if not nodes or not rights.administers or (command.one_only and len(nodes) > 1):
        return False
    return all(command.fits(n) for n in nodes)


def named(nodes: Sequence[NodeView]) -> str:
    """These PCs in a sentence."""
    return words.some([one_line(n.name) for n in nodes])


def request(command: CommandName, node: NodeView, name: str = "") -> tuple[str, dict[str, str]]:
    """Path and body that carry it out for one PC."""
    if command in ("admin", "member"):
        return "/local/v1/fleet/role", {"device_id": node.device_id, "role": command}
    if command == "rename":
        return "/local/v1/fleet/rename", {"device_id": node.device_id, "name": name}
    return f"/local/v1/fleet/{command}", {"device_id": node.device_id}

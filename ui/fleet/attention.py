"""What an admin should look at, most urgent first. Pure but for translations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QCoreApplication

from fleetapp.types import FleetView, NodeView
from ui import agent_words
from ui.chat.safe_text import one_line
from ui.fleet import words
from ui.fleet.rows import Office

translate = QCoreApplication.translate

Urgency = Literal["question", "error", "note"]
"""Somebody waits for an answer; something does not work; something should be known."""


@dataclass(frozen=True)
class Concern:
    """One thing to look at."""

    urgency: Urgency
    text: str
    device_id: str = ""
    """Of the PC that waits for approval, or that it is about."""
    detail: str = ""


def concerns(view: FleetView, office: Office) -> list[Concern]:
    """All of them."""
    return [
        *_waiting(view),
        *_warnings(view),
        *_chains(view),
        *_certificates(view, office),
        *_versions(view, office),
        *_away(view),
    ]


def _waiting(view: FleetView) -> Iterator[Concern]:
    for node in view.nodes:
        if node.state == "pending":
            yield Concern(
                "question",
                translate("Fleet", "{name} asks to join.").format(name=one_line(node.name)),
                node.device_id,
                translate(
                    "Fleet", "Approve it only if its own screen shows this device id: {id}"
                ).format(id=node.device_id),
            )


def _warnings(view: FleetView) -> Iterator[Concern]:
    for sentence in view.warnings:
        yield Concern("error", one_line(agent_words.said(sentence)))


def _chains(view: FleetView) -> Iterator[Concern]:
    for chain in view.chains:
        if chain.state == "broken":
            yield Concern(
                "error",
                translate("Fleet", "{model} is not served: {why}").format(
                    model=chain.model, why=one_line(agent_words.said(chain.reason))
                ),
            )
        for a in (*chain.assignments, *chain.standbys):
            if a.phase == "failed":
                yield Concern(
                    "error",
                    translate("Fleet", "{name} could not load layers {layers} of {model}.").format(
                        name=one_line(a.node), layers=a.layers, model=a.model
                    ),
                    a.device_id,
                    one_line(agent_words.said(a.message)),
                )


def _certificates(view: FleetView, office: Office) -> Iterator[Concern]:
    for node in view.nodes:
        if node.state == "online" and office.certificate_soon(node):
            yield Concern(
                "error",
                translate(
                    "Fleet", "The certificate of {name} has not been renewed; time left: {left}."
                ).format(
                    name=one_line(node.name), left=words.ends(node.certificate_ends, office.now)
                ),
                node.device_id,
                translate("Fleet", "Check its clock and whether it can reach the coordinator."),
            )


def _versions(view: FleetView, office: Office) -> Iterator[Concern]:
    yield from _group(
        view,
        office.skewed,
        "note",
        translate("Fleet", "{n} PCs run another version than the coordinator ({version}): {names}"),
        translate("Fleet", "{names} runs another version than the coordinator ({version})."),
        version=office.version,
    )


def _away(view: FleetView) -> Iterator[Concern]:
    yield from _group(
        view,
        lambda n: n.state == "suspected",
        "error",
        translate("Fleet", "{n} PCs do not answer: {names}"),
        translate("Fleet", "{names} does not answer."),
    )
    yield from _group(
        view,
        lambda n: n.drained and n.state in ("online", "offline", "suspected"),
        "note",
        translate("Fleet", "{n} PCs are drained and get no work until resumed: {names}"),
        translate("Fleet", "{names} is drained and gets no work until it is resumed."),
    )
    yield from _group(
        view,
        lambda n: n.state == "offline" and not n.drained,
        "note",
        translate("Fleet", "{n} PCs are offline: {names}"),
        translate("Fleet", "{names} is offline."),
    )


def _group(
    view: FleetView,
    about: Callable[[NodeView], bool],
    urgency: Urgency,
    many: str,
    single: str,
    **fields: str,
) -> Iterator[Concern]:
    """One sentence about all of them: a hundred laptops that went home are one piece of news."""
    found = [n for n in view.nodes if about(n)]
    if not found:
        return
    names = words.some(sorted(one_line(n.name) for n in found))
    if len(found) == 1:
        yield Concern(urgency, single.format(names=names, **fields), found[0].device_id)
    else:
        yield Concern(urgency, many.format(n=len(found), names=names, **fields))

"""``fleetapp fleet approve|decline|revoke|reinstate|drain|…``: the admin's word on one PC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from fleetapp.cli import output
from fleetapp.cli.agent_cmds import as_type
from fleetapp.cli.client import Client, agent_client
from fleetapp.cli.context import App, common_options, pass_app
from fleetapp.errors import BadRequest, FleetError, NotFound, UserError
from fleetapp.hub.keys import ApiKeyView
from fleetapp.types import Decision, FleetView, NodeView

_END_FLEET = (
    "'fleetapp fleet move-coordinator' makes another PC the coordinator. To end the fleet, let the "
    "others leave and then 'fleetapp fleet leave' on it."
)
MEMBER_STATES = ("online", "suspected", "offline")


@dataclass(frozen=True)
class _Word:
    """What a decision is about and how it is worded."""

    help: str
    states: tuple[str, ...]
    """Of the PCs that it can be about."""
    done: str
    question: str = ""
    """Asked unless the whole device id was given; empty if the decision does no harm."""
    never_coordinator: str = ""
    """Why it cannot be about the coordinator; empty if it can."""


_WORDS: dict[Decision, _Word] = {
    "approve": _Word(
        "Let a PC in that waits for it. Compare the device id with the one on its own screen.",
        ("pending",),
        "{} is let in.",
        "{} asks to be let in. Does its own screen show this device id?",
    ),
    "decline": _Word(
        "Do not let a waiting PC in; it takes another join code to ask again.",
        ("pending",),
        "{} is not let in.",
    ),
    "revoke": _Word(
        "Shut a PC out: its connections are cut, and no join code lets it in again.",
        MEMBER_STATES,
        "{} is shut out of the fleet.",
        "Shut {} out of the fleet?",
        "The coordinator cannot be shut out of its own fleet.",
    ),
    "reinstate": _Word(
        "Let a revoked PC be a member again.",
        ("revoked",),
        "{} is a member again.",
    ),
    "drain": _Word(
        "Have a PC hand its work over to others and get none, as before maintenance.",
        MEMBER_STATES,
        "{} hands its work over and gets none until 'fleetapp fleet undrain'.",
    ),
    "undrain": _Word("Let a drained PC work again.", MEMBER_STATES, "{} may work again."),
    "evict": _Word(
        "Put a PC out of the fleet. Unlike a revoked one it may join again with a code.",
        MEMBER_STATES,
        "{} is out of the fleet.",
        "Put {} out of the fleet?",
        "The coordinator cannot be put out of its own fleet.",
    ),
}


def add_decisions(group: click.Group) -> None:
    """Put the commands into ``fleetapp fleet``."""
    for decision, word in _WORDS.items():
        group.add_command(_command(decision, word))


def _command(decision: Decision, word: _Word) -> click.Command:
    @click.command(decision, help=word.help)
    @click.argument("pc", metavar="DEVICE-OR-NAME")
    @click.option("--yes", is_flag=True, help="Do not ask.")
    @common_options
    @pass_app
    def command(app: App, /, pc: str, yes: bool) -> None:
        with agent_client(app.home) as client:
            view = as_type(client.request("GET", "/local/v1/fleet"), FleetView)
            node = find(view.nodes, pc, decision, word.states)
            named = f"{output.one_line(node.name)} ({node.device_id})"
            if word.never_coordinator and node.role == "coordinator":
                raise BadRequest(word.never_coordinator, remedy=_END_FLEET)
            if word.question and not yes and pc.lower() != node.device_id:
                click.confirm(word.question.format(named), abort=True)
            left = _keys_made_on(client, node) if decision in ("evict", "revoke") else []
            client.request("POST", f"/local/v1/fleet/{decision}", {"device_id": node.device_id})
        click.echo(word.done.format(named))
        if left:
            click.echo(_still_work(left))

    return command


def _keys_made_on(client: Client, node: NodeView) -> list[ApiKeyView]:
    try:
        found = as_type(client.request("GET", "/local/v1/keys"), tuple[ApiKeyView, ...])
    except FleetError:
        return []  # whoever may not list them is told by the decision itself
    return [k for k in found if k.made_by == node.device_id]


def _still_work(keys: Sequence[ApiKeyView]) -> str:
    names = ", ".join(f"{output.one_line(k.name)} ({k.id})" for k in keys)
    if len(keys) == 1:
        return (
            f"1 API key made there still works: {names}. "
            f"Revoke it with 'fleetapp keys revoke {keys[0].id}'."
        )
    return (
        f"{len(keys)} API keys made there still work: {names}. "
        "Revoke each with 'fleetapp keys revoke ID'."
    )


def find(nodes: Sequence[NodeView], text: str, decision: str, states: tuple[str, ...]) -> NodeView:
    """The one PC that somebody means by a device id, the beginning of one, or a name.

    Only PCs in one of ``states`` count, so that one that waits cannot pass for a member by its
    name; a whole device id means that PC and no other.

    Raises:
        NotFound: none.
        BadRequest: several.
        UserError: one, but not in such a state.
    """
    meant = [n for n in nodes if n.device_id == text.lower()] or [
        n
        for n in nodes
        if text and (n.name.casefold() == text.casefold() or n.device_id.startswith(text.lower()))
    ]
    if not meant:
        raise NotFound(
            f"No PC of this fleet has the name or device id '{text}'.",
            remedy="'fleetapp fleet nodes' lists them.",
        )
    fitting = [n for n in meant if n.state in states]
    if not fitting:
        raise UserError(
            f"{meant[0].name} ({meant[0].device_id}) is {meant[0].state}: nothing to {decision}.",
            remedy="'fleetapp fleet nodes' shows how each PC stands.",
        )
    if len(fitting) > 1:
        several = ", ".join(f"{n.name} ({n.device_id})" for n in fitting)
        raise BadRequest(
            f"'{text}' means several PCs: {several}.", remedy="Give the device id of one of them."
        )
    return fitting[0]

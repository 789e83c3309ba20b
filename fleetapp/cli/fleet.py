"""``fleetapp fleet …``: create, join, leave and look at the fleet."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from datetime import datetime

import click

from fleetapp.cli import output
from fleetapp.cli.agent_cmds import as_type, local_status, print_assignments
from fleetapp.cli.client import SLOW_SECONDS, agent_client
from fleetapp.cli.context import App, common_options, json_option, pass_app
from fleetapp.cli.decisions import add_decisions
from fleetapp.cli.plan import add_plan
from fleetapp.cli.texts import in_path, when
from fleetapp.cli.trust import add_trust
from fleetapp.cli.waiting import telling
from fleetapp.errors import BadRequest, FleetError
from fleetapp.types import ChainView, FleetView, JoinCodeView, LocalStatus, NodeView

JOIN_SECONDS = 620.0
"""Somewhat longer than the agent waits for the admin's yes."""
LOOK_EVERY = 0.5
"""How soon somebody who joins learns that an admin has to approve it (s)."""


@click.group()
@common_options
def fleet() -> None:
    """Create, join, leave and look at the fleet."""


add_decisions(fleet)
add_trust(fleet)
add_plan(fleet)


@fleet.command()
@click.argument("name")
@json_option
@common_options
@pass_app
def create(app: App, /, name: str, as_json: bool) -> None:
    """Found a fleet called NAME with this PC as its coordinator."""
    with agent_client(app.home) as client:
        made = client.request(
            "POST", "/local/v1/fleet/create", {"name": name}, seconds=SLOW_SECONDS
        )
    if as_json:
        output.print_json(made)
        return
    click.echo(f"The fleet '{output.one_line(name)}' is founded. Others join it with this code:\n")
    click.echo(f"    {output.one_line(str(made.get('code', '')))}\n")
    click.echo("'fleetapp fleet codes' shows when it expires and how often it can be used.")


@fleet.command()
@click.argument("code", nargs=-1, required=True)
@click.option("--hub", default="", metavar="HOST:PORT", help="[default: found by multicast DNS]")
@json_option
@common_options
@pass_app
def join(app: App, /, code: tuple[str, ...], hub: str, as_json: bool) -> None:
    """Join a fleet by CODE (spaces and dashes do not matter)."""
    body = {"code": " ".join(code), "hub_address": hub}
    with _telling_the_id(app), agent_client(app.home) as client:
        if not as_json:
            output.note(f"Asking {hub}…" if hub else "Looking for the coordinator…")
        found = as_type(
            client.request("POST", "/local/v1/fleet/join", body, seconds=JOIN_SECONDS), LocalStatus
        )
    if as_json:
        output.print_json(found)
        return
    click.echo(
        f"This PC is in the fleet '{output.one_line(found.fleet_name)}'. "
        f"{output.one_line(found.reason)}"
    )
    if not found.contribute:
        click.echo("It works for the fleet once you say 'fleetapp contribute on'.")


@contextlib.contextmanager
def _telling_the_id(app: App) -> Iterator[None]:
    """Meanwhile, say which device id the admin should see before approving, if one has to."""
    over = threading.Event()

    def watch() -> None:
        with contextlib.suppress(FleetError), agent_client(app.home) as client:
            while not over.wait(LOOK_EVERY):
                found = local_status(client)
                if found.device_id in found.reason:
                    output.note(found.reason)
                    return

    thread = threading.Thread(target=watch, name="approval", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(LOOK_EVERY)


@fleet.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
@pass_app
def leave(app: App, /, yes: bool) -> None:
    """Leave the fleet; the certificate of this PC is forgotten."""
    with agent_client(app.home) as client:
        if not yes:
            click.confirm("Leave the fleet? Coming back takes a new join code", abort=True)
        with telling(lambda: "Leaving; the coordinator is told, if it can be reached…"):
            client.request("POST", "/local/v1/fleet/leave", seconds=SLOW_SECONDS)
    click.echo("This PC has left the fleet.")


def _view(app: App) -> FleetView:
    with agent_client(app.home) as client:
        return as_type(client.request("GET", "/local/v1/fleet"), FleetView)


@fleet.command()
@json_option
@common_options
@pass_app
def status(app: App, /, as_json: bool) -> None:
    """How the fleet is: what needs attention first, then its chains."""
    view = _view(app)
    if as_json:
        output.print_json(view)
        return
    online = [n for n in view.nodes if n.state == "online"]
    lending = sum(n.contribute for n in online)
    click.echo(
        f"Fleet '{output.one_line(view.name)}' ({view.fleet_id}): {_count(view)}, "
        f"{len(online)} online, {lending} contributing."
    )
    for sentence in attention(view):
        click.echo(f"! {output.one_line(sentence)}")
    if not view.chains:
        click.echo("No model is served. 'fleetapp serve MODEL' starts one.")
    for chain in view.chains:
        _print_chain(chain)


def _count(view: FleetView) -> str:
    members = sum(n.state not in ("pending", "revoked") for n in view.nodes)
    return "1 PC" if members == 1 else f"{members} PCs"


def attention(view: FleetView) -> list[str]:
    """What somebody should look at, in sentences."""
    sentences = list(view.warnings)
    for node in view.nodes:
        if node.state == "pending":
            sentences.append(
                f"{node.name} waits to be approved: 'fleetapp fleet approve {node.device_id}' "
                "if its own screen shows that id."
            )
        elif node.drained:
            sentences.append(
                f"{node.name} is drained: it gets no work until 'fleetapp fleet undrain'."
            )
        elif node.state in ("offline", "suspected"):
            sentences.append(f"{node.name} is {node.state}{_seen(node)}.")
    for chain in view.chains:
        if chain.state == "broken":
            sentences.append(f"The chain of {chain.model} is broken: {chain.reason}")
        sentences += [
            f"{a.node} could not load its part of {a.model}: {a.message}"
            for a in chain.assignments
            if a.phase == "failed"
        ]
    return sentences


def _seen(node: NodeView) -> str:
    return "" if node.last_seen is None else f", last heard {_ago(node.last_seen)} ago"


def _ago(seconds: float) -> str:
    for limit, unit, size in ((90, "s", 1), (5400, "min", 60), (129_600, "h", 3600)):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} days"


def _print_chain(chain: ChainView) -> None:
    click.echo(
        f"\n{output.one_line(chain.model)} ({chain.precision}): {chain.state}, "
        f"{chain.running} running, {chain.waiting} waiting. {output.one_line(chain.reason)}"
    )
    if chain.plan:
        click.echo(output.one_line(chain.plan))
    if chain.assignments:
        print_assignments(chain.assignments)
    if chain.standbys:
        click.echo("Held ready, to take over when a PC leaves:")
        print_assignments(chain.standbys)


@fleet.command()
@json_option
@common_options
@pass_app
def nodes(app: App, /, as_json: bool) -> None:
    """The PCs of the fleet."""
    view = _view(app)
    if as_json:
        output.print_json(view.nodes)
        return
    output.print_table(
        ("PC", "Device id", "Role", "State", "Contributes", "Memory free", "Devices", "Version"),
        [
            (
                n.name,
                n.device_id,
                n.role,
                n.state,
                _contributes(n),
                _memory(n),
                ", ".join(n.hardware.devices) if n.hardware else "",
                n.app,
            )
            for n in view.nodes
        ],
    )


def _contributes(node: NodeView) -> str:
    if node.drained:
        return "drained"
    if node.contribute:
        return "draining" if node.reason == "draining" else "yes"
    return f"no: {node.reason.replace('_', ' ')}" if node.reason else "no"


def _memory(node: NodeView) -> str:
    if node.hardware is None:
        return ""
    return f"{output.size(node.hardware.memory_free)} of {output.size(node.hardware.memory_total)}"


@fleet.group(invoke_without_command=True)
@json_option
@common_options
@click.pass_context
def codes(ctx: click.Context, /, as_json: bool) -> None:
    """Join codes: list, new, revoke."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_codes, as_json=as_json)


@codes.command("list")
@json_option
@common_options
@pass_app
def list_codes(app: App, /, as_json: bool) -> None:
    """The join codes, without their secrets."""
    with agent_client(app.home) as client:
        found = as_type(client.request("GET", "/local/v1/fleet/codes"), tuple[JoinCodeView, ...])
    if as_json:
        output.print_json(found)
        return
    output.print_table(
        ("Id", "Made", "Expires", "Uses left", "Approval", "State"),
        [
            (
                c.code_id,
                when(c.created),
                when(c.expires),
                c.uses_left,
                "by hand" if c.approve else "at once",
                _code_state(c),
            )
            for c in found
        ],
    )


def _code_state(code: JoinCodeView) -> str:
    if code.revoked:
        return "revoked"
    if code.expires <= datetime.now().astimezone().timestamp():
        return "expired"
    return "valid" if code.uses_left > 0 else "used up"


@codes.command("new")
@click.option("--hours", type=float, default=24.0, show_default=True, help="How long it is valid.")
@click.option("--uses", type=int, default=10, show_default=True, help="How many PCs may use it.")
@click.option("--approve", is_flag=True, help="An admin lets in by hand each PC that uses it.")
@json_option
@common_options
@pass_app
def new_code(app: App, /, hours: float, uses: int, approve: bool, as_json: bool) -> None:
    """Make a join code; it is shown once."""
    if not 0 < hours <= 24 * 365:
        raise BadRequest("--hours must be more than 0 and at most a year.")
    if not 1 <= uses <= 10_000:
        raise BadRequest("--uses must be between 1 and 10000.")
    body = {"hours": hours, "uses": uses, "approve": approve}
    with agent_client(app.home) as client:
        made = as_type(client.request("POST", "/local/v1/fleet/codes", body), JoinCodeView)
    if as_json:
        output.print_json(made)
        return
    click.echo(output.one_line(made.code))
    pcs = "one PC" if made.uses_left == 1 else f"{made.uses_left} PCs"
    output.note(f"Valid until {when(made.expires)} for {pcs}; shown only now.")
    if made.approve:
        output.note("A PC that uses it waits until you let it in: 'fleetapp fleet approve'.")


@codes.command("revoke")
@click.argument("code_id")
@common_options
@pass_app
def revoke_code(app: App, /, code_id: str) -> None:
    """Make a join code worthless; who has joined with it stays."""
    with agent_client(app.home) as client:
        client.request("DELETE", f"/local/v1/fleet/codes/{in_path(code_id)}")
    click.echo(f"The code {output.one_line(code_id)} is revoked.")

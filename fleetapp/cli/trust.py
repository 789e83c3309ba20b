"""``fleetapp fleet role|rename|name|audit``: who may do what, and who did."""

from __future__ import annotations

import click

from fleetapp.cli import output
from fleetapp.cli.agent_cmds import as_type
from fleetapp.cli.client import agent_client
from fleetapp.cli.context import App, common_options, json_option, pass_app
from fleetapp.cli.decisions import MEMBER_STATES, find
from fleetapp.cli.recovery import move_coordinator, recovery
from fleetapp.cli.texts import in_path, when
from fleetapp.errors import StorageError
from fleetapp.types import AuditCheck, AuditEntry, FleetView, GivenRole

VERIFY_SECONDS = 120.0


def add_trust(group: click.Group) -> None:
    """Put the commands into ``fleetapp fleet``."""
    group.add_command(role)
    group.add_command(rename)
    group.add_command(name)
    group.add_command(audit)
    group.add_command(recovery)
    group.add_command(move_coordinator)


@click.command()
@click.argument("pc", metavar="DEVICE-OR-NAME")
@click.argument("role", type=click.Choice(["admin", "member"]))
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
@pass_app
def role(app: App, /, pc: str, role: GivenRole, yes: bool) -> None:
    """Make a PC an admin's, or a plain member again.

    An admin's PC may do from where it is what the coordinator may: approve, revoke, codes, keys,
    roles, audit.
    """
    with agent_client(app.home) as client:
        view = as_type(client.request("GET", "/local/v1/fleet"), FleetView)
        node = find(view.nodes, pc, f"make {role}", MEMBER_STATES)
        named = f"{output.one_line(node.name)} ({node.device_id})"
        if role == "admin" and not yes and pc.lower() != node.device_id:
            click.confirm(f"Let whoever uses {named} administer the fleet?", abort=True)
        client.request("POST", "/local/v1/fleet/role", {"device_id": node.device_id, "role": role})
    click.echo(f"{named} is {'an admin' if role == 'admin' else 'a plain member'} now.")


@click.command()
@click.argument("pc", metavar="DEVICE-OR-NAME")
@click.argument("name")
@common_options
@pass_app
def rename(app: App, /, pc: str, name: str) -> None:
    """Call a PC NAME in this fleet; an empty one ('') gives it its own name back."""
    with agent_client(app.home) as client:
        view = as_type(client.request("GET", "/local/v1/fleet"), FleetView)
        node = find(view.nodes, pc, "rename", MEMBER_STATES)
        body = {"device_id": node.device_id, "name": name}
        client.request("POST", "/local/v1/fleet/rename", body)
    shown = output.one_line(name.strip())
    called = f"called {shown}" if shown else "called what it calls itself"
    click.echo(f"{output.one_line(node.name)} ({node.device_id}) is now {called}.")


@click.command()
@click.argument("name")
@common_options
@pass_app
def name(app: App, /, name: str) -> None:
    """Call the fleet itself NAME, everywhere."""
    with agent_client(app.home) as client:
        client.request("POST", "/local/v1/fleet/name", {"name": name})
    click.echo(f"The fleet is now called {output.one_line(name.strip())}.")


@click.command()
@click.option("--last", type=click.IntRange(1, 10_000), default=20, show_default=True,
              help="How many of the newest entries.")  # fmt: skip
@click.option("--verify", is_flag=True, help="Check that nobody has changed the log.")
@click.option("--noted", default="", metavar="HASH",
              help="Check too that a hash noted earlier is still in it.")  # fmt: skip
@json_option
@common_options
@pass_app
def audit(app: App, /, last: int, verify: bool, noted: str, as_json: bool) -> None:
    """Who did what in the fleet, newest last."""
    with agent_client(app.home) as client:
        if verify or noted:
            path = f"/local/v1/fleet/audit/check?noted={in_path(noted.strip())}"
            _show_check(
                as_type(client.request("GET", path, seconds=VERIFY_SECONDS), AuditCheck), as_json
            )
            return
        found = as_type(
            client.request("GET", f"/local/v1/fleet/audit?last={last}"), tuple[AuditEntry, ...]
        )
    if as_json:
        output.print_json(found)
        return
    output.print_table(
        ("Number", "Time", "Who", "Did", "What"),
        [
            (e.seq, when(e.time), e.actor, e.action.replace("_", " "), _details(e.details))
            for e in found
        ],
    )


def _details(details: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in details.items())


def _show_check(check: AuditCheck, as_json: bool) -> None:
    if as_json:
        output.print_json(check)
    elif check.entries:
        entries = "1 entry" if check.entries == 1 else f"{check.entries} entries"
        click.echo(f"{entries}, {check.first} to {check.last}.")
        if check.first > 1:
            click.echo(f"Entries before {check.first} were taken away with their files.")
        click.echo(f"Newest hash: {output.one_line(check.head)}")
        output.note("Note it elsewhere: given to --noted later, it shows if the end was cut off.")
    else:
        click.echo("The log is empty.")
    if check.problems:
        raise StorageError(
            f"The audit log is not as it was written: {' '.join(check.problems)}",
            remedy="Compare it with a backup; until then do not rely on it.",
        )

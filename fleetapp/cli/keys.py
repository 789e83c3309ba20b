"""``fleetapp keys …``: API keys for programs that use the fleet."""

from __future__ import annotations

import click

from fleetapp.cli import output
from fleetapp.cli.agent_cmds import as_type
from fleetapp.cli.client import agent_client
from fleetapp.cli.context import App, common_options, json_option, pass_app
from fleetapp.cli.texts import in_path, when
from fleetapp.hub.keys import MAX_LIMIT, ApiKeyView


@click.group(invoke_without_command=True)
@json_option
@common_options
@click.pass_context
def keys(ctx: click.Context, /, as_json: bool) -> None:
    """API keys for programs: list, new, revoke."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_keys, as_json=as_json)


@keys.command("list")
@json_option
@common_options
@pass_app
def list_keys(app: App, /, as_json: bool) -> None:
    """The API keys, without their secrets."""
    with agent_client(app.home) as client:
        found = as_type(client.request("GET", "/local/v1/keys"), tuple[ApiKeyView, ...])
    if as_json:
        output.print_json(found)
    else:
        rows = [
            (
                k.id,
                k.name,
                when(k.created),
                k.made_on or k.made_by or "not noted",
                _limit(k.parallel),
                _limit(k.per_minute),
            )
            for k in found
        ]
        output.print_table(("Id", "Name", "Made", "Made on", "At a time", "A minute"), rows)


def _limit(number: int) -> str:
    return str(number) if number else "any number"


@keys.command("new")
@click.argument("name")
@click.option(
    "--parallel",
    type=click.IntRange(0, MAX_LIMIT),
    default=0,
    show_default=True,
    help="Requests it may have at a time; 0 means any number.",
)
@click.option(
    "--per-minute",
    type=click.IntRange(0, MAX_LIMIT),
    default=0,
    show_default=True,
    help="Requests it may make in a minute; 0 means any number.",
)
@json_option
@common_options
@pass_app
def new_key(app: App, /, name: str, parallel: int, per_minute: int, as_json: bool) -> None:
    """Make an API key for the program or person NAME; it is shown once.

    It works until it is revoked, also when the PC where it was made has left the fleet.
    """
    with agent_client(app.home) as client:
        body = {"name": name, "parallel": parallel, "per_minute": per_minute}
        made = as_type(client.request("POST", "/local/v1/keys", body), ApiKeyView)
    if as_json:
        output.print_json(made)
        return
    click.echo(output.one_line(made.key))
    output.note(f"Shown only now; 'fleetapp keys revoke {made.id}' makes it worthless.")


@keys.command("revoke")
@click.argument("key_id")
@common_options
@pass_app
def revoke_key(app: App, /, key_id: str) -> None:
    """Make an API key worthless at once."""
    with agent_client(app.home) as client:
        client.request("DELETE", f"/local/v1/keys/{in_path(key_id)}")
    click.echo(f"The key {output.one_line(key_id)} is revoked.")

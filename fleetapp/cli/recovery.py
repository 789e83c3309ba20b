"""``fleetapp fleet recovery|move-coordinator``: the coordinator's office on another PC."""

from __future__ import annotations

import os
from pathlib import Path

import click

from fleetapp.cli import output
from fleetapp.cli.agent_cmds import as_type, local_status
from fleetapp.cli.client import SLOW_SECONDS, agent_client
from fleetapp.cli.context import App, common_options, pass_app
from fleetapp.cli.decisions import MEMBER_STATES, find
from fleetapp.errors import BadRequest, NotAMember, NotFound, UserError
from fleetapp.fleet.recovery import MAX_FILE, MIN_PASSPHRASE, require_whole
from fleetapp.platform.files import storage_error
from fleetapp.types import FleetView

MAX_PASSPHRASE = 4096
_passphrase_option = click.option(
    "--passphrase-file",
    type=click.Path(path_type=Path),
    help="Its first line is the passphrase, instead of asking for it.",
)


@click.group()
@common_options
def recovery() -> None:
    """The file that brings the fleet back when its coordinator is gone for good."""


@recovery.command()
@click.argument("file", type=click.Path(path_type=Path))
@_passphrase_option
@common_options
@pass_app
def export(app: App, /, file: Path, passphrase_file: Path | None) -> None:
    """Write the recovery file, encrypted under a passphrase; on the coordinator.

    Make a new one after PCs have joined or were revoked.
    """
    if file.exists():
        raise BadRequest(f"{file} exists already.", remedy="Choose another name.")
    _require_coordinator(app)
    passphrase = _read(passphrase_file) if passphrase_file else _ask_twice()
    with agent_client(app.home) as client:
        made = client.request(
            "POST", "/local/v1/fleet/recovery/export", {"passphrase": passphrase},
            seconds=SLOW_SECONDS,
        )  # fmt: skip
    _write_new(file, str(made["file"]).encode())
    click.echo(f"{file} is written. Keep it offline, and its passphrase somewhere else.")


@recovery.command()
@click.argument("file", type=click.Path(path_type=Path))
@_passphrase_option
@click.option("--revoke-old", is_flag=True,
              help="Shut the old coordinator out, because it was stolen, say.")  # fmt: skip
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
@pass_app
def use(app: App, /, file: Path, passphrase_file: Path | None, revoke_old: bool, yes: bool) -> None:
    """Make this PC the coordinator of the file's fleet.

    Better on a member, which knows who was admitted and revoked since the file was made. On another
    PC the list of members is that of the file until members connect, which bring newer ones.
    """
    text = _load(file)
    require_whole(text.encode("utf-8", "replace"))
    if not yes:
        click.confirm(
            "Make this PC the coordinator? The old one will be a plain member", abort=True
        )
    passphrase = (
        _read(passphrase_file) if passphrase_file else click.prompt("Passphrase", hide_input=True)
    )
    body = {"file": text, "passphrase": passphrase, "revoke_old": revoke_old}
    with agent_client(app.home) as client:
        client.request("POST", "/local/v1/fleet/recovery/use", body, seconds=SLOW_SECONDS)
    click.echo("This PC coordinates the fleet now; the others find it by themselves.")
    output.note("Models stay on the PC where they are: get or import here what shall be served.")


@click.command("move-coordinator")
@click.argument("pc", metavar="DEVICE-OR-NAME")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
@pass_app
def move_coordinator(app: App, /, pc: str, yes: bool) -> None:
    """Make another PC the coordinator; this one, which is it now, stays a member."""
    _require_coordinator(app)
    with agent_client(app.home) as client:
        view = as_type(client.request("GET", "/local/v1/fleet"), FleetView)
        node = find(view.nodes, pc, "move to it", MEMBER_STATES)
        named = f"{output.one_line(node.name)} ({node.device_id})"
        if not yes and pc.lower() != node.device_id:
            click.confirm(f"Give the fleet to {named}? This PC cannot take it back", abort=True)
        client.request(
            "POST", "/local/v1/fleet/move", {"device_id": node.device_id}, seconds=SLOW_SECONDS
        )
    click.echo(f"{named} coordinates the fleet now, and this PC is a member.")
    output.note("Models stay on the PC where they are: get or import there what shall be served.")


def _require_coordinator(app: App) -> None:
    """Before anybody thinks of a passphrase."""
    with agent_client(app.home) as client:
        found = local_status(client)
    if not found.fleet_id:
        raise NotAMember("This PC belongs to no fleet.")
    if found.role != "coordinator":
        raise UserError(
            "This PC is not the coordinator of its fleet.", remedy="Do this on the coordinator."
        )


def _ask_twice() -> str:
    return str(
        click.prompt(
            f"Passphrase ({MIN_PASSPHRASE} characters or more)",
            hide_input=True,
            confirmation_prompt="The same again",
        )
    )


def _load(file: Path) -> str:
    try:
        with file.open("rb") as source:
            data = source.read(MAX_FILE + 1)
    except FileNotFoundError as exc:
        raise NotFound(f"There is no file {file}.") from exc
    except OSError as exc:
        raise BadRequest(f"{file} cannot be read ({exc.strerror}).") from exc
    if len(data) > MAX_FILE:
        raise BadRequest(f"{file} is too large to be a recovery file.")
    return data.decode("utf-8", "replace")


def _read(file: Path) -> str:
    try:
        with file.open("rb") as source:
            line = source.readline(MAX_PASSPHRASE)
        return line.decode("utf-8-sig").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as exc:
        raise BadRequest(f"The passphrase cannot be read from {file}: {exc}.") from exc


def _write_new(file: Path, data: bytes) -> None:
    """Never over another file, and readable by its user only."""
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        handle = os.open(file, flags, 0o600)
        with os.fdopen(handle, "wb") as out:
            out.write(data)
    except OSError as exc:
        raise storage_error(exc, file) from exc

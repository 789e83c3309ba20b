"""``fleetapp pause`` and ``fleetapp resume``."""

from __future__ import annotations

from typing import get_args

import click

from fleetapp.cli import output
from fleetapp.cli.agent_cmds import as_type
from fleetapp.cli.client import agent_client
from fleetapp.cli.context import App, common_options, json_option, pass_app
from fleetapp.contribution.pauses import PauseFor
from fleetapp.types import LocalStatus


@click.command()
@click.argument("length", type=click.Choice(get_args(PauseFor)), default="forever")
@click.option(
    "--finish-first", is_flag=True, help="Let running answers end; they may take ten minutes."
)
@json_option
@common_options
@pass_app
def pause(app: App, /, length: str, finish_first: bool, as_json: bool) -> None:
    """Stop contributing for LENGTH: 30m, 1h, 4h, until tomorrow 06:00, or until 'resume'."""
    body = {"length": length, "finish_first": finish_first}
    _tell(app, "pause", body, as_json=as_json)


@click.command()
@json_option
@common_options
@pass_app
def resume(app: App, /, as_json: bool) -> None:
    """End a pause; this PC contributes again as soon as the other rules let it."""
    _tell(app, "resume", {}, as_json=as_json)


def _tell(app: App, what: str, body: dict[str, object], *, as_json: bool) -> None:
    with agent_client(app.home) as client:
        found = as_type(client.request("POST", f"/local/v1/{what}", body), LocalStatus)
    if as_json:
        output.print_json(found.contribution)
    else:
        click.echo(output.one_line(found.contribution.sentence))

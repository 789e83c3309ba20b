"""``fleetapp support-bundle``: what somebody who helps needs, in one file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from fleetapp.agent.bundle import default_name, write_bundle
from fleetapp.cli import output
from fleetapp.cli.agent_cmds import as_type
from fleetapp.cli.client import SLOW_SECONDS, agent_client
from fleetapp.cli.context import App, common_options, json_option, pass_app
from fleetapp.cli.doctor import examine
from fleetapp.errors import AgentNotRunning, UserError
from fleetapp.platform import current
from fleetapp.platform.units import size
from fleetapp.types import BundleView


@click.command("support-bundle")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@json_option
@common_options
@pass_app
def support_bundle(app: App, /, file: Path | None, as_json: bool) -> None:
    """Write logs, settings, versions and the doctor's report to the zip FILE.

    Without FILE it gets a name with the time, in the current folder. No prompts, answers, codes,
    tokens or keys are in it; README.txt inside says what is.
    """
    target = (file or Path(default_name(datetime.now().astimezone()))).absolute()
    if target.exists():
        raise UserError(f"{target} exists already.", remedy="Give another name.")
    bundle = _write(app, target)
    if as_json:
        output.print_json(bundle)
    else:
        click.echo(f"{output.one_line(bundle.path)} ({size(bundle.size)})")
        output.note("Look through it before you send it to somebody outside.")


def _write(app: App, target: Path) -> BundleView:
    """By the agent if one runs, which knows more; else here."""
    try:
        with agent_client(app.paths.home) as client:
            body = {"path": str(target)}
            answer = client.request("POST", "/local/v1/support-bundle", body, SLOW_SECONDS)
            return as_type(answer, BundleView)
    except AgentNotRunning:
        facts = {"doctor": list(examine(app))}
        return write_bundle(target, app.paths, current(), facts)

"""``fleetapp doctor``: how this PC is, line by line, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from fleetapp.agent import checks
from fleetapp.cli import output
from fleetapp.cli.agent_cmds import as_type, local_status
from fleetapp.cli.client import agent_client, find_agent
from fleetapp.cli.context import App, common_options, json_option, pass_app
from fleetapp.errors import AgentNotRunning, FleetError
from fleetapp.settings import SettingsStore
from fleetapp.types import Finding, LocalStatus, SearchView

FAILED = 1
"""Exit code when at least one check failed; warnings alone end with 0."""
_STYLE = {"ok": ("ok  ", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "red")}


@click.command()
@json_option
@common_options
@click.pass_context
@pass_app
def doctor(app: App, /, ctx: click.Context, as_json: bool) -> None:
    """Check this PC: what works, what does not, and what to do about it."""
    findings = []
    for finding in examine(app):
        findings.append(finding)
        if not as_json:
            _print(finding)
    failed = sum(f.state == "fail" for f in findings)
    if as_json:
        output.print_json({"ok": not failed, "checks": findings})
    elif failed:
        click.echo(f"\n{failed} of {len(findings)} checks failed.")
    ctx.exit(FAILED if failed else 0)


def examine(app: App) -> Iterator[Finding]:
    """Run every check, with what a running agent knows better."""
    try:
        settings = SettingsStore(app.paths).load()
    except FleetError:
        settings = None
    return checks.examine(checks.Subject(app.paths, settings, _Agent(app.paths.home)))


@dataclass(frozen=True)
class _Agent:
    """The agent of a state folder, asked over its loopback API."""

    home: Path

    def runs(self) -> bool:
        try:
            find_agent(self.home)
        except AgentNotRunning:
            return False
        return True

    def search(self) -> SearchView | None:
        try:
            with agent_client(self.home) as client:
                return as_type(client.request("GET", "/local/v1/search"), SearchView)
        except FleetError:
            return None

    def status(self) -> LocalStatus:
        with agent_client(self.home) as client:
            return local_status(client)


def _print(finding: Finding) -> None:
    word, colour = _STYLE[finding.state]
    text = output.one_line(finding.detail)
    click.echo(f"{click.style(word, fg=colour)}  {finding.name + ':':<14}{text}")
    if finding.remedy and finding.state != "ok":
        click.echo(f"      {'':<14}{output.one_line(finding.remedy)}")

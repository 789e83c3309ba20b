"""``fleetapp doctor``: how this PC is, line by line, and what to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import click

from fleetapp.cli import output
from fleetapp.cli.checks import CHECKS, Finding, Subject
from fleetapp.cli.context import App, common_options, json_option, pass_app
from fleetapp.errors import FleetError
from fleetapp.settings import SettingsStore

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
        output.print_json({"ok": not failed, "checks": [dataclasses.asdict(f) for f in findings]})
    elif failed:
        click.echo(f"\n{failed} of {len(findings)} checks failed.")
    ctx.exit(FAILED if failed else 0)


def examine(app: App) -> Iterator[Finding]:
    """Run every check; one that breaks is a finding too."""
    try:
        settings = SettingsStore(app.paths).load()
    except FleetError:
        settings = None
    subject = Subject(app.paths, settings)
    for check in CHECKS:
        try:
            yield check(subject)
        except Exception as error:  # noqa: BLE001 - the doctor must come to the end of its list
            yield Finding(
                check.__name__.capitalize(),
                "fail",
                f"Could not be checked ({type(error).__name__}: {error}).",
                "Run 'fleetapp doctor' again, and report it if it stays.",
            )


def _print(finding: Finding) -> None:
    word, colour = _STYLE[finding.state]
    text = output.one_line(finding.detail)
    click.echo(f"{click.style(word, fg=colour)}  {finding.name + ':':<14}{text}")
    if finding.remedy and finding.state != "ok":
        click.echo(f"      {'':<14}{output.one_line(finding.remedy)}")

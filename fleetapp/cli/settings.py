"""``fleetapp settings …``: what is set, where it came from, and changing it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fleetapp.cli import output
from fleetapp.cli.context import App, common_options, json_option, pass_app
from fleetapp.errors import BadSetting
from fleetapp.settings import Explained, SettingsStore

HINT = "A running agent takes it over at its next start."


@click.group(invoke_without_command=True)
@json_option
@common_options
@click.pass_context
def settings(ctx: click.Context, /, as_json: bool) -> None:
    """Settings: list, get, set, reset."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_settings, as_json=as_json)


def _explained(app: App) -> tuple[Explained, ...]:
    return SettingsStore(app.paths).load().explain()


def _plain(value: Any) -> Any:
    if value is None:
        return ""
    return str(value) if isinstance(value, Path) else value


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(_plain(value)) or "(empty)"


def _origin(row: Explained) -> str:
    if row.locked:
        return f"Managed by {row.where}"
    return row.source if row.source in ("default", "environment") else f"{row.source} setting"


@settings.command("list")
@json_option
@common_options
@pass_app
def list_settings(app: App, /, as_json: bool) -> None:
    """All settings with their values and where those came from."""
    rows = _explained(app)
    if as_json:
        output.print_json([_row(r) for r in rows])
        return
    output.print_table(
        ("Setting", "Value", "From", "Meaning"),
        [(r.name, _shown(r.value), _origin(r), r.help) for r in rows],
    )


def _row(row: Explained) -> dict[str, Any]:
    return {
        "name": row.name,
        "value": _plain(row.value),
        "default": _plain(row.default),
        "source": row.source,
        "where": row.where,
        "locked": row.locked,
        "help": row.help,
    }


def _find(app: App, name: str) -> Explained:
    for row in _explained(app):
        if row.name == name:
            return row
    raise BadSetting(
        f"There is no setting called {output.one_line(name)}.",
        remedy="'fleetapp settings' lists them all.",
    )


@settings.command("get")
@click.argument("name")
@json_option
@common_options
@pass_app
def get_setting(app: App, /, name: str, as_json: bool) -> None:
    """Print the value of NAME."""
    row = _find(app, name)
    if as_json:
        output.print_json(_row(row))
    else:
        click.echo(output.one_line(_shown(row.value) if row.value not in (None, "") else ""))


@settings.command("set")
@click.argument("name")
@click.argument("value")
@common_options
@pass_app
def set_setting(app: App, /, name: str, value: str) -> None:
    """Set NAME to VALUE for this user."""
    after = SettingsStore(app.paths).set_user(name, value)
    row = next(r for r in after.explain() if r.name == name)
    click.echo(f"{name} is {output.one_line(_shown(row.value))}.")
    if row.source == "environment":
        output.note(f"The environment overrides it as long as FLEETAPP_{name.upper()} is set.")
    output.note(HINT)


@settings.command("reset")
@click.argument("name")
@common_options
@pass_app
def reset_setting(app: App, /, name: str) -> None:
    """Forget this user's value of NAME."""
    after = SettingsStore(app.paths).reset_user(name)
    row = next(r for r in after.explain() if r.name == name)
    click.echo(f"{name} is {output.one_line(_shown(row.value))}.")
    output.note(HINT)

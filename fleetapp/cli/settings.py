"""``fleetapp settings …``: what is set, where it came from, and changing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from fleetapp.cli import output
from fleetapp.cli.agent_cmds import as_type
from fleetapp.cli.client import agent_client
from fleetapp.cli.context import App, common_options, json_option, pass_app
from fleetapp.errors import AgentNotRunning, BadSetting
from fleetapp.settings import Explained, Settings, SettingsStore
from fleetapp.settings.view import plain, setting_view
from fleetapp.types import SettingView

PENDING = "The running agent takes it over at its next start."
NEXT_LOAD = "It holds for shards that are loaded from now on."


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


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(plain(value)) or "(empty)"


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
        "value": plain(row.value),
        "default": plain(row.default),
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


@settings.command("set", context_settings={"ignore_unknown_options": True})  # -1 is a value
@click.argument("name")
@click.argument("value")
@common_options
@pass_app
def set_setting(app: App, /, name: str, value: str) -> None:
    """Set NAME to VALUE for this user."""
    _change(
        app, name, ("settings", {"name": name, "value": value}), lambda s: s.set_user(name, value)
    )


@settings.command("reset")
@click.argument("name")
@common_options
@pass_app
def reset_setting(app: App, /, name: str) -> None:
    """Forget this user's value of NAME."""
    _change(app, name, ("settings/reset", {"name": name}), lambda s: s.reset_user(name))


def _change(
    app: App,
    name: str,
    ask: tuple[str, dict[str, str]],
    alone: Callable[[SettingsStore], Settings],
) -> None:
    """Let the running agent do it, which then acts on it; without one it is only kept."""
    path, body = ask
    try:
        with agent_client(app.paths.home) as client:
            view = as_type(client.request("POST", f"/local/v1/{path}", body), SettingView)
        running = True
    except AgentNotRunning:
        view = setting_view(alone(SettingsStore(app.paths)), name)
        running = False
    click.echo(f"{name} is {output.one_line(_shown(view.value))}.")
    if view.source == "environment":
        output.note(f"The environment overrides it as long as FLEETAPP_{name.upper()} is set.")
    if view.pending:
        output.note(PENDING)
    elif running and view.applies == "next load":
        output.note(NEXT_LOAD)

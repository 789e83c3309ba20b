"""Commands that ask this PC's agent to do something: status, contribute, serve, quit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import click
import msgspec

from fleetapp.cli import output
from fleetapp.cli.client import SLOW_SECONDS, Client, agent_client
from fleetapp.cli.context import App, common_options, json_option, pass_app
from fleetapp.engine.pipe import TraceView
from fleetapp.engine.trace import trace_file
from fleetapp.errors import Malformed, StorageError
from fleetapp.platform.units import counted
from fleetapp.types import AssignmentView, ChainView, LocalStatus, Precision

_REMOVED = "This PC does nothing for the fleet, which does not count it as a member any more."
_BYTES = ("waiting", "downloading", "verifying")
"""Phases in which what is counted is bytes that have come; later ones compile and load."""
_T = TypeVar("_T")


def as_type(value: Any, kind: type[_T]) -> _T:
    """An answer of the agent as the value it stands for.

    Raises:
        Malformed: the agent is of another version.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Malformed(
            "The agent's answer makes no sense to this program.",
            remedy="They may be of different versions: restart the agent.",
        ) from error


def local_status(client: Client) -> LocalStatus:
    """What the agent says of this PC."""
    return as_type(client.request("GET", "/local/v1/status"), LocalStatus)


@click.command()
@json_option
@common_options
@pass_app
def status(app: App, /, as_json: bool) -> None:
    """What this PC is doing, and why."""
    with agent_client(app.home) as client:
        found = local_status(client)
    if as_json:
        output.print_json(found)
        return
    _line("This PC", f"{found.name} ({found.device_id})")
    _line("State", f"{found.state.replace('_', ' ')}: {found.reason}")
    for warning in found.warnings:
        _line("Warning", warning)
    said = "on" if found.contribute else "off"
    why = _REMOVED if found.removed else found.contribution.sentence
    _line("Contribute", f"{said}: {why}".rstrip(": "))
    if found.fleet_id:
        _line("Fleet", f"{found.fleet_name} ({found.fleet_id}), as {found.role}")
    if found.hub:
        _line("Coordinator", found.hub)
    if found.api_url:
        _line("API", found.api_url)
    if found.assignments:
        print_assignments(found.assignments)


def _line(label: str, text: str) -> None:
    click.echo(f"{label + ':':<13}{output.one_line(text)}")


def print_assignments(assignments: tuple[AssignmentView, ...]) -> None:
    """Which shard is where, and how far it is."""
    output.print_table(
        ("Stage", "PC", "Model", "Layers", "Phase", ""),
        [
            (f"{a.stage + 1}/{a.stages}", a.node, a.model, a.layers, a.phase, _progress(a))
            for a in assignments
        ],
    )


def _progress(assignment: AssignmentView) -> str:
    parts = []
    if assignment.total and assignment.phase in _BYTES:
        parts.append(f"{output.size(assignment.done)} of {output.size(assignment.total)}")
    if assignment.message:
        parts.append(assignment.message)
    return ", ".join(parts)


@click.command()
@click.argument("what", type=click.Choice(["on", "off", "status"]), default="status")
@json_option
@common_options
@pass_app
def contribute(app: App, /, what: str, as_json: bool) -> None:
    """Say whether the fleet may use this PC: on, off, or status."""
    with agent_client(app.home) as client:
        if what == "status":
            found = local_status(client)
        else:
            body = {"on": what == "on"}
            found = as_type(client.request("POST", "/local/v1/contribute", body), LocalStatus)
    if as_json:
        output.print_json(
            {
                "contribute": found.contribute,
                "state": found.state,
                "contribution": found.contribution,
            }
        )
    else:
        uses = found.contribute and not found.removed
        does = "may use this PC" if uses else "does not use this PC"
        why = found.contribution.sentence if uses else found.reason
        click.echo(f"The fleet {does}. {output.one_line(why)}".rstrip())


@click.command()
@click.argument("model")
@click.option("--precision", type=click.Choice(["fast", "exact"]), help="[default: the setting]")
@click.option("--stages", type=click.IntRange(min=1), help="[default: what the planner thinks]")
@click.option(
    "--draft",
    default="auto",
    show_default=True,
    help="Guess ahead: auto, lookup, off, or a model with the same vocabulary.",
)
@json_option
@common_options
@pass_app
def serve(
    app: App,
    /,
    model: str,
    precision: Precision | None,
    stages: int | None,
    draft: str,
    as_json: bool,
) -> None:
    """Let the fleet answer with MODEL."""
    body = {"model": model, "precision": precision, "stages": stages or 0, "draft": draft}
    with agent_client(app.home) as client:
        chain = as_type(
            client.request("POST", "/local/v1/models/start", body, seconds=SLOW_SECONDS), ChainView
        )
    if as_json:
        output.print_json(chain)
        return
    click.echo(f"{output.one_line(chain.model)}: {chain.state}. {output.one_line(chain.reason)}")
    if chain.plan:
        click.echo(output.one_line(chain.plan))
    if chain.assignments:
        print_assignments(chain.assignments)


@click.command()
@click.argument("model")
@common_options
@pass_app
def unserve(app: App, /, model: str) -> None:
    """Stop answering with MODEL; its files stay."""
    with agent_client(app.home) as client:
        client.request("POST", "/local/v1/models/stop", {"model": model}, seconds=SLOW_SECONDS)
    click.echo(f"{output.one_line(model)} is no longer served.")


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default="trace.json")
@click.option("--model", default="", help="[default: the one that is served]")
@common_options
@pass_app
def trace(app: App, /, file: Path, model: str) -> None:
    """Write the chain's most recent steps to FILE, as Perfetto and chrome://tracing open it.

    Only on the coordinator, whose PC is the head of every chain.
    """
    with agent_client(app.home) as client:
        path = "/local/v1/trace?" + urlencode({"model": model})
        found = as_type(client.request("GET", path), TraceView)
    try:
        file.write_text(trace_file(found.steps, found.nodes), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{file} cannot be written: {error.strerror or error}.") from error
    click.echo(
        f"{output.one_line(str(file))}: {counted(len(found.steps), 'step')} of "
        f"{output.one_line(found.model)}. Open it at https://ui.perfetto.dev."
    )


@click.command("quit")
@common_options
@pass_app
def quit_agent(app: App, /) -> None:
    """End this PC's agent."""
    with agent_client(app.home) as client:
        client.request("POST", "/local/v1/quit")
    click.echo("The agent ends.")

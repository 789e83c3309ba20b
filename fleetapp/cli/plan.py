"""``fleetapp fleet plan``: who would serve what, how fast, and why."""

from __future__ import annotations

import click

from fleetapp.cli import output
from fleetapp.cli.agent_cmds import as_type
from fleetapp.cli.client import agent_client
from fleetapp.cli.context import App, common_options, json_option, pass_app
from fleetapp.hub.planner.plan import FleetPlan, ModelPlan


def add_plan(group: click.Group) -> None:
    """The command, in the group of the fleet."""
    group.add_command(plan)


@click.command()
@click.option(
    "--what-if",
    "changes",
    multiple=True,
    metavar="CHANGE",
    help="+GB: one more PC; -NAME: one less; model=NAME; users=NUMBER. Several are allowed.",
)
@json_option
@common_options
@pass_app
def plan(app: App, /, changes: tuple[str, ...], as_json: bool) -> None:
    """What the planner would do now, or if something were different; on the coordinator.

    Nothing is changed.
    """
    with agent_client(app.home) as client:
        found = as_type(
            client.request("POST", "/local/v1/fleet/plan", {"what_if": list(changes)}), FleetPlan
        )
    if as_json:
        output.print_json(found)
        return
    for model in found.models:
        _print_model(model)
    if found.memory:
        click.echo("Memory planned:")
        output.print_table(
            ("PC", "Memory"), [(node.name, output.size(node.bytes)) for node in found.memory]
        )


def _print_model(model: ModelPlan) -> None:
    click.echo(f"{output.one_line(model.model_id)}, {model.users} at once:")
    if model.chains:
        output.print_table(
            ("Chain", "Stage", "PC", "Device", "Layers", "Weights", "Cache", "ms a step"),
            [
                (
                    number + 1,
                    index,
                    stage.name,
                    stage.device,
                    str(stage.layers),
                    output.size(stage.weight_bytes),
                    output.size(stage.cache_bytes),
                    f"{stage.seconds * 1e3:.1f}",
                )
                for number, chain in enumerate(model.chains)
                for index, stage in enumerate(chain.stages)
            ],
        )
    for sentence in model.sentences:
        click.echo(output.one_line(sentence))
    if model.alternatives:
        output.print_table(
            ("Way", "tokens/s, one user", f"tokens/s, {model.users} at once", "PCs"),
            [
                ("this plan", f"{model.one_user:.1f}", f"{model.tokens_per_second:.1f}", ""),
                *(
                    (a.way, f"{a.one_user:.1f}", f"{a.tokens_per_second:.1f}", ", ".join(a.nodes))
                    for a in model.alternatives
                ),
            ],
        )
    click.echo("")

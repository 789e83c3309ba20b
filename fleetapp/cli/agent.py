"""``fleetapp agent``: run this PC's agent in the foreground."""

from __future__ import annotations

import asyncio

import click

from fleetapp.cli.context import App, common_options, pass_app


@click.command()
@common_options
@click.option(
    "--exit-with-stdin", is_flag=True, help="End when standard input closes (for parents)."
)
@pass_app
def agent(app: App, exit_with_stdin: bool) -> None:
    """Run this PC's agent until Ctrl+C."""
    from fleetapp.api.serve import run_agent  # noqa: PLC0415 - keeps --help fast

    def ready(port: int) -> None:
        if not exit_with_stdin:
            click.echo(f"The agent runs (state in {app.home}, local port {port}). Ctrl+C ends it.")

    asyncio.run(run_agent(app.home, exit_with_stdin=exit_with_stdin, ready=ready))

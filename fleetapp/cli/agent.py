"""``fleetapp agent``: run this PC's agent in the foreground."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from fleetapp.platform.paths import default_home


@click.command()
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    help="State folder of this agent (default: FLEETAPP_HOME, or the user's data folder).",
)
@click.option(
    "--exit-with-stdin", is_flag=True, help="End when standard input closes (for parents)."
)
def agent(state: Path | None, exit_with_stdin: bool) -> None:
    """Run this PC's agent until Ctrl+C."""
    from fleetapp.api.serve import run_agent  # noqa: PLC0415 - keeps --help fast

    home = (state or default_home()).absolute()

    def ready(port: int) -> None:
        if not exit_with_stdin:
            click.echo(f"The agent runs (state in {home}, local port {port}). Ctrl+C ends it.")

    asyncio.run(run_agent(home, exit_with_stdin=exit_with_stdin, ready=ready))

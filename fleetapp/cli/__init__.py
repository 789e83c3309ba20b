"""``fleetapp …``: everything the app does, for people without a screen.

Commands are imported when they are used, so that ``fleetapp --help`` answers at once.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NamedTuple

import click

from fleetapp import __version__
from fleetapp.cli import output
from fleetapp.cli.context import App, common_options
from fleetapp.errors import Cancelled, FleetError

BROKEN_PIPE = 141
"""Exit code when whoever read the output has gone: what a shell shows for SIGPIPE."""
USAGE = 2
INTERNAL = 1


class Lazy(NamedTuple):
    """A command that is imported on demand."""

    module: str
    attribute: str
    help: str


COMMANDS = {
    "demo": Lazy("fleetapp.cli.demo", "demo", "A throw-away fleet on this PC answers a question."),
    "ask": Lazy("fleetapp.cli.ask", "ask", "Ask one question and print the answer."),
    "chat": Lazy("fleetapp.cli.chat", "chat", "Chat in the terminal."),
    "agent": Lazy("fleetapp.cli.agent", "agent", "Run this PC's agent."),
    "status": Lazy("fleetapp.cli.agent_cmds", "status", "What this PC is doing."),
    "contribute": Lazy("fleetapp.cli.agent_cmds", "contribute", "May the fleet use this PC?"),
    "pause": Lazy("fleetapp.cli.contribution", "pause", "Stop contributing for a while."),
    "resume": Lazy("fleetapp.cli.contribution", "resume", "End a pause."),
    "fleet": Lazy("fleetapp.cli.fleet", "fleet", "Create, join, leave and look at the fleet."),
    "model": Lazy("fleetapp.cli.model", "model", "Get, import and inspect models."),
    "serve": Lazy("fleetapp.cli.agent_cmds", "serve", "Let the fleet answer with a model."),
    "unserve": Lazy("fleetapp.cli.agent_cmds", "unserve", "Stop answering with a model."),
    "keys": Lazy("fleetapp.cli.keys", "keys", "API keys for programs."),
    "settings": Lazy("fleetapp.cli.settings", "settings", "Show and change settings."),
    "doctor": Lazy("fleetapp.cli.doctor", "doctor", "Check this PC and say what to do."),
    "support-bundle": Lazy(
        "fleetapp.cli.support_bundle", "support_bundle", "Pack what somebody who helps needs."
    ),
    "trace": Lazy("fleetapp.cli.agent_cmds", "trace", "Write where the time of steps went."),
    "bench": Lazy("fleetapp.bench.commands", "bench", "Measurements that anyone can repeat."),
    "quit": Lazy("fleetapp.cli.agent_cmds", "quit_agent", "End this PC's agent."),
    "setup": Lazy("fleetapp.cli.setup", "setup", ""),
}
"""In the order of the help page; one without a help text is not on it."""


class _PipeClosed(Exception):
    """Carries a broken pipe past click, which would end the process by itself."""


class LazyGroup(click.Group):
    """A group whose commands live in modules that are imported when they are called."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return [n for n, lazy in COMMANDS.items() if lazy.help and _exists(lazy.module)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        lazy = COMMANDS.get(cmd_name)
        if lazy is None or not _exists(lazy.module):
            return super().get_command(ctx, cmd_name)
        command = getattr(importlib.import_module(lazy.module), lazy.attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, COMMANDS[name].help) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except OSError as error:
            if output.is_broken_pipe(error):
                raise _PipeClosed from error
            raise
        return result


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="fleetapp")
@common_options
def root() -> None:
    """An office's own laptops serving large language models together."""


def main(args: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code (see docs/cli.md).

    An error is one sentence of what happened and one of what to do, on stderr; a traceback only
    with ``--debug``.
    """
    output.prepare_streams()
    app = App()
    try:
        result = root.main(args, prog_name="fleetapp", standalone_mode=False, obj=app)
    except _PipeClosed:
        output.silence_stdout()
        return BROKEN_PIPE
    except (click.Abort, KeyboardInterrupt):
        return Cancelled.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except FleetError as error:
        if app.debug:
            traceback.print_exc()
        output.print_error(error)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the outermost frame: a sentence instead of a traceback
        return _internal(error, app)
    return result if isinstance(result, int) else 0


def _internal(error: Exception, app: App) -> int:
    if app.debug:
        traceback.print_exc()
    output.print_error(
        FleetError(
            f"Something went wrong inside fleetapp ({type(error).__name__}: {error}).",
            remedy="Run the command again with --debug and send the output to whoever looks after "
            "your fleet.",
        )
    )
    return INTERNAL


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False

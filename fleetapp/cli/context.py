"""What every command needs to know: which state folder, and whether to show tracebacks."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from fleetapp.platform.paths import Paths, default_home


@dataclass
class App:
    """Options that may stand before or behind a command's name."""

    home: Path = field(default_factory=default_home)
    debug: bool = False

    @property
    def paths(self) -> Paths:
        return Paths(self.home)


F = TypeVar("F", bound=Callable[..., Any])

pass_app = click.make_pass_decorator(App, ensure=True)


def _set_home(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value:
        home = Path(value).expanduser().absolute()
        ctx.ensure_object(App).home = home
        # whatever this process starts, or asks default_home() later, means the same folder
        os.environ["FLEETAPP_HOME"] = str(home)


def _set_debug(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(App).debug = True


def common_options(command: F) -> F:
    """Add ``--state`` and ``--debug``, which work before and behind a command's name."""
    command = click.option(
        "--state",
        metavar="DIR",
        expose_value=False,
        callback=_set_home,
        help="State folder [default: FLEETAPP_HOME or the user's data folder].",
    )(command)
    return click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=_set_debug,
        help="Show where an error came from.",
    )(command)


def json_option(command: F) -> F:
    """Add ``--json`` as the parameter ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")(command)

"""``fleetapp bench …``: measurements that anyone can repeat."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import click

from fleetapp.bench import common, parity
from fleetapp.errors import NotFound
from fleetapp.fleet.identity import Identity
from fleetapp.models import catalog, fetch
from fleetapp.models.library import Library
from fleetapp.platform import current
from fleetapp.platform.paths import Paths, default_home
from fleetapp.settings import SettingsStore
from fleetapp.types import Precision

SAMPLE = "smollm2-135m-instruct"


@click.group()
def bench() -> None:
    """Measure on this machine; every figure comes with what it was measured on."""


@bench.command("parity")
@click.option("--model", default=SAMPLE, show_default=True, help="A model of your library.")
@click.option(
    "--precision",
    type=click.Choice(get_args(Precision)),
    default="fast",
    show_default=True,
    help="Whose speeds are checked; tokens are always compared under exact.",
)
@click.option("--device", default="CPU", show_default=True, help="An OpenVINO device.")
@click.option("--quick", is_flag=True, help="Fewer rounds, under a minute.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
def parity_command(
    model: str, precision: Precision, device: str, quick: bool, as_json: bool
) -> None:
    """One PC: openvino-genai against our one stage and three stages; one core, one thread."""
    with _progress(as_json) as progress:
        library = _library_with(model, progress)
        report = parity.run(
            library,
            model,
            precision=precision,
            device=device,
            effort=parity.QUICK if quick else parity.FULL,
            progress=progress,
        )
    common.show(report, as_json=as_json)


def _library_with(model: str, progress: common.Progress) -> Library:
    """This state folder's library; a model of the catalogue is fetched if it is missing."""
    paths, platform = Paths(default_home()), current()
    configured = SettingsStore(paths, platform).load().models_dir
    root = Path(configured) if configured else paths.models
    library = Library(root, Identity.load_or_create(paths, platform))
    try:
        library.get(model)
    except NotFound:
        fetch.get(library, catalog.find(model), lambda p: progress(f"{p.phase} {model}"))
    return library


@contextmanager
def _progress(as_json: bool) -> Iterator[Callable[[str], None]]:
    """Lines on stderr, each over the one before if that is a terminal."""
    terminal = sys.stderr.isatty()
    last = ""

    def say(text: str) -> None:
        nonlocal last
        if text == last:
            return
        last = text
        if terminal:
            click.echo(f"\r\x1b[K{text}", nl=False, err=True)
        elif not as_json:
            click.echo(text, err=True)

    yield say
    if terminal:
        click.echo("\r\x1b[K", nl=False, err=True)

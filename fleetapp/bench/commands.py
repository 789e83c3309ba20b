"""``fleetapp bench …``: measurements that anyone can repeat."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from fleetapp.bench import (
    common,
    control,
    guest,
    parity,
    pipeline,
    planner,
    prefill,
    prefix,
    recovery,
    speculation,
    users,
)
from fleetapp.errors import NotFound
from fleetapp.fleet.identity import Identity
from fleetapp.models import catalog, fetch
from fleetapp.models.library import Library
from fleetapp.platform import current
from fleetapp.platform.paths import Paths, default_home
from fleetapp.settings import SettingsStore
from fleetapp.types import Precision

SAMPLE = "smollm2-135m-instruct"
F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def bench() -> None:
    """Measure on this machine; every figure comes with what it was measured on."""


def _options(precision: Precision = "fast") -> Callable[[F], F]:
    """What every bench can be told."""

    def decorate(command: F) -> F:
        for option in (
            click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead."),
            click.option("--quick", is_flag=True, help="Fewer rounds, under a minute."),
            click.option("--device", default="CPU", show_default=True, help="An OpenVINO device."),
            click.option(
                "--precision",
                type=click.Choice(get_args(Precision)),
                default=precision,
                show_default=True,
                help="Whose speeds are measured; tokens are compared under exact only.",
            ),
            click.option(
                "--model", default=SAMPLE, show_default=True, help="A model of your library."
            ),
        ):
            command = option(command)
        return command

    return decorate


def _run(
    measure: Callable[[Library, common.Progress], common.Report],
    model: str,
    as_json: bool,
    promised: Collection[str],
) -> None:
    """Measure, show, and say with the exit code whether every promised check was measured."""
    # The throw-away fleets of a bench have no keyring, and nobody needs to hear of each.
    logging.getLogger("fleetapp.fleet").setLevel(logging.ERROR)
    with _progress(as_json) as progress:
        report = measure(_library_with(model, progress), progress)
    common.show(report, as_json=as_json)
    missing = [name for name in promised if name not in {c.name for c in report.checks}]
    if missing:
        click.echo(f"Not measured: {', '.join(missing)}.", err=True)
        sys.exit(1)


@bench.command("parity")
@_options()
def parity_command(
    model: str, precision: Precision, device: str, quick: bool, as_json: bool
) -> None:
    """One PC: openvino-genai against our one stage and three stages; one core, one thread."""
    effort = parity.QUICK if quick else parity.FULL
    _run(
        lambda library, progress: parity.run(
            library, model, precision=precision, device=device, effort=effort, progress=progress
        ),
        model,
        as_json,
        ("one_stage_ratio", "three_stage_ratio", "tokens_equal"),
    )


@bench.command("users")
@_options()
def users_command(
    model: str, precision: Precision, device: str, quick: bool, as_json: bool
) -> None:
    """Many users on one PC: our one stage against openvino-genai's batching; one core."""
    effort = users.QUICK if quick else users.FULL
    _run(
        lambda library, progress: users.run(
            library, model, precision=precision, device=device, effort=effort, progress=progress
        ),
        model,
        as_json,
        ("users8_vs_genai_cb", "users1_vs_llmpipeline"),
    )


@bench.command("pipeline")
@_options()
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    default="pipeline.svg",
    show_default=True,
    help="Where to draw when each of three stages computed.",
)
@click.option(
    "--trace",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the same as a trace file (Perfetto, chrome://tracing).",
)
def pipeline_command(
    model: str,
    precision: Precision,
    device: str,
    quick: bool,
    as_json: bool,
    picture: Path,
    trace: Path | None,
) -> None:
    """Two PCs, one core each, over TLS: the pipeline against one PC and two replicas."""
    effort = pipeline.QUICK if quick else pipeline.FULL
    files = pipeline.Files(picture, trace)
    _run(
        lambda library, progress: pipeline.run(
            library,
            model,
            precision=precision,
            device=device,
            effort=effort,
            files=files,
            progress=progress,
        ),
        model,
        as_json,
        ("one_user_ratio", "two_users_vs_single", "users8_ratio", "users16_ratio"),
    )


@bench.command("prefill")
@_options()
def prefill_command(
    model: str, precision: Precision, device: str, quick: bool, as_json: bool
) -> None:
    """A long prompt comes while seven answers stream: how late are their tokens? One core a PC."""
    effort = prefill.QUICK if quick else prefill.FULL
    _run(
        lambda library, progress: prefill.run(
            library, model, precision=precision, device=device, effort=effort, progress=progress
        ),
        model,
        as_json,
        ("decode_delay_chunks",),
    )


@bench.command("prefix")
@_options()
def prefix_command(
    model: str, precision: Precision, device: str, quick: bool, as_json: bool
) -> None:
    """The next turn of a long conversation against a prompt nobody has seen; one core a PC."""
    effort = prefix.QUICK if quick else prefix.FULL
    _run(
        lambda library, progress: prefix.run(
            library, model, precision=precision, device=device, effort=effort, progress=progress
        ),
        model,
        as_json,
        ("ttft_gain",),
    )


@bench.command("planner")
@_options()
def planner_command(
    model: str, precision: Precision, device: str, quick: bool, as_json: bool
) -> None:
    """The planner: against trying everything, its speed, and what it predicts against measured."""
    effort = planner.QUICK if quick else planner.FULL
    _run(
        lambda library, progress: planner.run(
            library, model, precision=precision, device=device, effort=effort, progress=progress
        ),
        model,
        as_json,
        ("equals_brute_force", "ms_8x80", "ms_40x80", "median_prediction_error"),
    )


@bench.command("speculation")
@_options("exact")
@click.option(
    "--draft", default="", help="A smaller model of your library with the same vocabulary."
)
def speculation_command(
    model: str, precision: Precision, device: str, quick: bool, as_json: bool, draft: str
) -> None:
    """Guessing ahead by kind of prompt and by distance; two PCs, one core each."""
    effort = speculation.QUICK if quick else speculation.FULL
    _run(
        lambda library, progress: speculation.run(
            library,
            model,
            draft=draft,
            precision=precision,
            device=device,
            effort=effort,
            progress=progress,
        ),
        model,
        as_json,
        ("worst_cell_ratio", "full_vs_naive_100ms", "tokens_equal"),
    )


@bench.command("recovery")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@click.option("--quick", is_flag=True, help="A few disturbances only.")
@click.option("--model", default=SAMPLE, show_default=True, help="A model of your library.")
def recovery_command(model: str, quick: bool, as_json: bool) -> None:
    """PCs are killed, frozen, cut off and taken back while four answers stream."""
    effort = recovery.QUICK if quick else recovery.FULL
    _run(
        lambda library, progress: recovery.run(library, model, effort=effort, progress=progress),
        model,
        as_json,
        ("kills", "wrong_tokens", "hangs", "p95_pause_s", *(() if quick else ("detect_s",))),
    )


@bench.command("control")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@click.option("--quick", is_flag=True, help="100 members instead of 500, under a minute.")
def control_command(quick: bool, as_json: bool) -> None:
    """One coordinator with 500 members that come and go, and a member that idles. No model."""
    logging.getLogger("fleetapp.fleet").setLevel(logging.ERROR)
    with _progress(as_json) as progress:
        report = control.run(effort=control.QUICK if quick else control.FULL, progress=progress)
    common.show(report, as_json=as_json)


@bench.command("yield")
@_options()
def yield_command(
    model: str, precision: Precision, device: str, quick: bool, as_json: bool
) -> None:
    """Two PCs, one core each; a user comes back. How soon does that PC stop, and free memory?"""
    effort = guest.QUICK if quick else guest.FULL
    _run(
        lambda library, progress: guest.run(
            library, model, precision=precision, device=device, effort=effort, progress=progress
        ),
        model,
        as_json,
        guest.PROMISED,
    )


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

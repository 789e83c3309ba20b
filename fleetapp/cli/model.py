"""``fleetapp model …``: getting models, and looking after those that are here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
import msgspec

from fleetapp.cli import output
from fleetapp.cli.agent_cmds import as_type
from fleetapp.cli.client import SLOW_SECONDS, agent_client
from fleetapp.cli.context import App, common_options, json_option, pass_app
from fleetapp.errors import AgentNotRunning
from fleetapp.fleet.identity import Identity
from fleetapp.models import catalog, fetch
from fleetapp.models.library import Library
from fleetapp.models.manifest import ModelManifest
from fleetapp.models.progress import Progress, ProgressFn
from fleetapp.platform import current
from fleetapp.platform.paths import Paths
from fleetapp.settings import SettingsStore
from fleetapp.types import ModelsView

_MODELS = "/local/v1/models"

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID


class Summary(msgspec.Struct, frozen=True):
    """A model as ``--json`` shows it."""

    id: str
    family: str
    layers: int
    bytes: int
    context_length: int
    quantization: str
    licence: str
    source: str
    revision: str
    eos_ids: tuple[int, ...]
    vocab_size: int
    chat: bool
    """Whether it has a chat template."""


def _summary(manifest: ModelManifest) -> Summary:
    shape = manifest.architecture
    return Summary(
        id=manifest.model_id,
        family=shape.family,
        layers=shape.layers,
        bytes=sum(f.size for f in manifest.files),
        context_length=shape.context_length,
        quantization=manifest.quantization,
        licence=manifest.licence,
        source=manifest.source,
        revision=manifest.revision,
        eos_ids=shape.eos_ids,
        vocab_size=shape.vocab_size,
        chat=shape.chat_template is not None,
    )


def open_library(home: Path) -> Library:
    """The library that this state folder uses."""
    paths, platform = Paths(home), current()
    configured = SettingsStore(paths, platform).load().models_dir
    root = Path(configured) if configured else paths.models
    return Library(root, Identity.load_or_create(paths, platform))


def ensure_model(library: Library, name: str, console: Console) -> ModelManifest:
    """Return a model of the library, got from the catalogue first if it is missing.

    Args:
        library: where it is looked for and put.
        name: a model id, a catalogue name or a hub address.
        console: where progress is shown.
    """
    for manifest in library.models():
        if manifest.model_id == name:
            return manifest
    with showing(console) as progress:
        return fetch.get(library, catalog.find(name), progress)


@click.group(invoke_without_command=True)
@common_options
@click.pass_context
def model(ctx: click.Context) -> None:
    """Get, import and look after models."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_models, as_json=False)


@model.command("get")
@click.argument("name")
@click.option(
    "--source",
    type=click.Choice(get_args(fetch.Kind)),
    default="auto",
    show_default=True,
    help="Where from; auto tries one after the other.",
)
@click.option("--name", "model_id", help="What to call it here.")
@click.option("--keep", is_flag=True, help="Keep the fetched file beside the imported model.")
@click.option("--accept-licence", is_flag=True, help="Agree to the terms of a model that has some.")
@json_option
@common_options
@pass_app
def get_model(
    app: App,
    /,
    name: str,
    source: fetch.Kind,
    model_id: str | None,
    keep: bool,
    accept_licence: bool,
    as_json: bool,
) -> None:
    """Fetch the model NAME of the catalogue, or hf:OWNER/REPO[@REVISION][/FILE.gguf]."""
    entry = catalog.find(name)
    library = open_library(app.home)
    with _progress(as_json) as progress:
        manifest = fetch.get(
            library,
            entry,
            progress,
            source=source,
            model_id=model_id,
            keep=keep,
            accept_licence=accept_licence,
        )
    _done(manifest, as_json)


@model.command("import")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--name", "model_id", help="What to call it here.")
@json_option
@common_options
@pass_app
def import_model(app: App, /, path: Path, model_id: str | None, as_json: bool) -> None:
    """Import PATH: a GGUF file, or a folder with an OpenVINO IR."""
    library = open_library(app.home)
    with _progress(as_json) as progress:
        manifest = library.import_path(path, model_id, progress)
    _done(manifest, as_json)


def _done(manifest: ModelManifest, as_json: bool) -> None:
    if as_json:
        output.print_json(_summary(manifest))
        return
    shape = manifest.architecture
    size = output.size(sum(f.size for f in manifest.files))
    click.echo(
        f"{output.one_line(manifest.model_id)} is ready: {shape.family}, {shape.layers} layers, "
        f"{size}, licence {output.one_line(manifest.licence)}."
    )


@model.command("list")
@json_option
@common_options
@pass_app
def list_models(app: App, /, as_json: bool) -> None:
    """The models that are here, and those of the catalogue that are not."""
    found = [_summary(m) for m in open_library(app.home).models()]
    if as_json:
        output.print_json(found)
        return
    rows = [
        (s.id, s.family, s.layers, output.size(s.bytes), s.context_length, s.licence) for s in found
    ]
    if rows:
        output.print_table(("Model", "Family", "Layers", "Size", "Context", "Licence"), rows)
    else:
        click.echo("There are no models here yet.")
    here = {s.id for s in found}
    for entry in catalog.CATALOG:
        if entry.model_id not in here:
            output.note(f"To get: {entry.model_id} ({entry.title}; {entry.licence})")


@model.command("show")
@click.argument("model_id")
@json_option
@common_options
@pass_app
def show_model(app: App, /, model_id: str, as_json: bool) -> None:
    """Everything known of one model."""
    manifest, digest = open_library(app.home).get(model_id)
    if as_json:
        output.print_json(manifest)
        return
    summary = _summary(manifest)
    weights = manifest.layer_bytes
    rows: list[tuple[str, object]] = [
        ("Model", summary.id),
        ("Family", summary.family),
        ("Licence", summary.licence),
        ("Source", summary.source),
        ("Revision", summary.revision),
        ("Manifest", digest),
        ("Layers", f"{summary.layers}, {output.size(min(weights))} to {output.size(max(weights))}"),
        (
            "Embedding, head",
            f"{output.size(manifest.embedding_bytes)}, {output.size(manifest.head_bytes)}",
        ),
        ("Size", output.size(summary.bytes)),
        ("Weights", summary.quantization),
        ("Context", f"{summary.context_length} tokens"),
        ("Vocabulary", f"{summary.vocab_size} tokens"),
        ("End tokens", ", ".join(map(str, summary.eos_ids)) or "none"),
        ("Chat template", "yes" if summary.chat else "no"),
        ("Made by", manifest.converter),
    ]
    output.print_table(("", ""), rows)


@model.command("verify")
@click.argument("model_id")
@click.option("--deep", is_flag=True, help="Also run the whole model against its halves.")
@json_option
@common_options
@pass_app
def verify_model(app: App, /, model_id: str, deep: bool, as_json: bool) -> None:
    """Hash a model and its stages again."""
    library = open_library(app.home)
    with _progress(as_json) as progress:
        report = library.verify(model_id, progress, deep=deep)
    if as_json:
        output.print_json(report)
    else:
        click.echo(str(report))
    report.require_intact()


@model.command("remove")
@click.argument("model_id")
@common_options
@pass_app
def remove_model(app: App, /, model_id: str) -> None:
    """Delete a model and every stage made of it."""
    library = open_library(app.home)
    if not _removed_by_agent(app.home, library, model_id):
        library.remove(model_id)
    click.echo(f"{output.one_line(model_id)} is removed.")


def _removed_by_agent(home: Path, library: Library, model_id: str) -> bool:
    """Let the agent do it if one runs with this library: it knows whether the model is served.

    Raises:
        Busy: it is.
    """
    try:
        with agent_client(home) as client:
            folder = as_type(client.request("GET", _MODELS), ModelsView).folder
            if Path(folder) != library.root:
                return False
            body = {"model": model_id}
            client.request("POST", f"{_MODELS}/remove", body, seconds=SLOW_SECONDS)
    except AgentNotRunning:
        return False
    return True


@contextmanager
def _progress(as_json: bool) -> Iterator[ProgressFn]:
    from rich.console import Console  # noqa: PLC0415 - slow to import

    with showing(Console(stderr=True, markup=False, emoji=False, highlight=False), as_json) as show:
        yield show


@contextmanager
def showing(console: Console, quiet: bool = False) -> Iterator[ProgressFn]:
    """Show progress: bars on a terminal, a line a phase elsewhere, nothing if ``quiet``."""
    if quiet:
        yield lambda _: None
    elif not console.is_terminal:
        yield _Lines(console)
    else:
        from rich import progress as bars  # noqa: PLC0415 - slow to import

        with bars.Progress(
            bars.TextColumn("{task.description:<12}"),
            bars.BarColumn(),
            bars.TextColumn("{task.fields[amount]:>22}"),
            bars.TimeRemainingColumn(),
            bars.TextColumn("{task.fields[note]}", markup=False),
            console=console,
        ) as shown:
            yield _Bars(shown)


class _Lines:
    """One line at the beginning of each phase."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = ("", "")

    def __call__(self, progress: Progress) -> None:
        key = (progress.phase, progress.message)
        if key != self._last and (progress.phase != self._last[0] or progress.message):
            self._last = key
            size = output.size(progress.total) if _counts_bytes(progress) else ""
            text = " ".join(p for p in (progress.phase, size, progress.message) if p)
            self._console.print(output.one_line(text), markup=False)


class _Bars:
    """One bar a phase, with amount and time left."""

    def __init__(self, shown: object) -> None:
        from rich.progress import Progress as Shown  # noqa: PLC0415

        assert isinstance(shown, Shown)
        self._shown = shown
        self._task: TaskID | None = None
        self._phase = ""

    def __call__(self, progress: Progress) -> None:
        if self._task is None or progress.phase != self._phase:
            if self._task is not None:
                done = self._shown.tasks[-1].total or 1
                self._shown.update(self._task, completed=done, total=done)
            self._phase = progress.phase
            self._task = self._shown.add_task(progress.phase, total=None, amount="", note="")
        amount = ""
        if _counts_bytes(progress):
            amount = f"{output.size(progress.done)} of {output.size(progress.total)}"
        self._shown.update(
            self._task,
            completed=progress.done,
            total=progress.total or None,
            amount=amount,
        )
        if progress.message:  # stays until the next one or the end of the phase
            self._shown.update(self._task, note=output.one_line(progress.message))


def _counts_bytes(progress: Progress) -> bool:
    return progress.unit == "bytes" and progress.total > 0

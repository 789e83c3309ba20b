"""``fleetapp demo``: three PCs' worth of fleet on this one, for a minute."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

from fleetapp.bench.throwaway import ThrowAwayFleet
from fleetapp.cli.output import clean
from fleetapp.demo.run import Options, Result, ask, bring_up
from fleetapp.errors import BadRequest, Cancelled
from fleetapp.fleet.identity import Identity
from fleetapp.models.library import Library
from fleetapp.platform import current
from fleetapp.platform.paths import Paths, default_home
from fleetapp.settings import SettingsStore
from fleetapp.types import Precision

SAMPLE = "smollm2-135m-instruct"
QUESTION = "What is the capital of France?"
MAX_NODES = 16


@click.command()
@click.option("--nodes", type=int, default=3, show_default=True, help="How many agents.")
@click.option("--prompt", default=QUESTION, show_default=True, help="What to ask.")
@click.option("--model", default=SAMPLE, show_default=True, help="A model of your library.")
@click.option("--max-tokens", type=int, default=64, show_default=True)
@click.option("--precision", type=click.Choice(["fast", "exact"]), default="fast")
@click.option(
    "--draft",
    default="auto",
    show_default=True,
    help="Guess ahead: auto, lookup, off, or a model with the same vocabulary.",
)
@click.option("--temperature", type=float, default=0.0, show_default=True, help="0 is greedy.")
@click.option("--seed", type=int, help="For a temperature above 0: the same seed, the same text.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@click.option("--serve", is_flag=True, help="Keep it up and print READY <base-url> <api-key>.")
def demo(
    nodes: int,
    prompt: str,
    model: str,
    max_tokens: int,
    precision: Precision,
    draft: str,
    temperature: float,
    seed: int | None,
    as_json: bool,
    serve: bool,
) -> None:
    """Form a throw-away fleet on this PC and ask it a question."""
    if not 1 <= nodes <= MAX_NODES:
        raise BadRequest(f"--nodes must be between 1 and {MAX_NODES}, not {nodes}.")
    if max_tokens < 1:
        raise BadRequest(f"--max-tokens must be 1 or more, not {max_tokens}.")
    if not prompt.strip():
        raise BadRequest("--prompt is empty.", remedy="Give it a question.")
    options = Options(
        nodes=nodes,
        prompt=prompt,
        model=model,
        max_tokens=max_tokens,
        precision=precision,
        draft=draft,
        seed=seed,
        temperature=temperature,
    )
    teller = Teller(quiet=as_json or serve)
    models_dir = _model(options.model, teller)
    asyncio.run(_until_interrupted(_story(options, models_dir, teller, as_json, serve)))


class Teller:
    """Tells the story on the terminal.

    With ``--json`` or ``--serve`` on stderr: stdout then has the object or the READY line alone.
    """

    def __init__(self, quiet: bool) -> None:
        self.console = Console(stderr=quiet, highlight=False, soft_wrap=True)
        self._start = time.monotonic()

    def say(self, sentence: str) -> None:
        """One line with the time since the start."""
        self.console.print(f"[dim]{time.monotonic() - self._start:6.1f} s[/dim]  ", end="")
        self.console.print(sentence, markup=False)


def _model(model: str, teller: Teller) -> Path:
    """The user's own library, with the model in it."""
    from fleetapp.cli.model import ensure_model  # noqa: PLC0415 - keeps --help fast

    home = default_home()
    paths, platform = Paths(home), current()
    configured = SettingsStore(paths, platform).load().models_dir
    root = configured or paths.models
    library = Library(root, Identity.load_or_create(paths, platform))
    if any(m.model_id == model for m in library.models()):
        teller.say(f"{model} is in the library already.")
    else:
        teller.say(f"{model} is not here yet; getting it.")
        ensure_model(library, model, teller.console)
    return root


async def _story(
    options: Options, models_dir: Path, teller: Teller, as_json: bool, serve: bool
) -> None:
    async with ThrowAwayFleet(options.nodes, models_dir, teller.say) as fleet:
        chain = await bring_up(fleet, options, teller.say)
        if serve:
            click.echo(f"READY {fleet.api_url} {fleet.api_key}")
            sys.stdout.flush()
            await asyncio.Event().wait()
        teller.say(f"Asking: {options.prompt}")
        if not as_json:
            teller.console.print()
        result = await ask(fleet, options, chain, (lambda _: None) if as_json else _show)
    if as_json:
        click.echo(msgspec.json.encode(result).decode())
    else:
        _table(teller.console, result)


def _show(piece: str) -> None:
    sys.stdout.write(clean(piece))
    sys.stdout.flush()


def _table(console: Console, result: Result) -> None:
    console.print("\n")
    table = Table(title="Who answered", title_justify="left")
    table.add_column("PC")
    table.add_column("layers")
    table.add_column("sends to")
    table.add_column("bytes for this answer", justify="right")
    table.add_column("per token", justify="right")
    for index, node in enumerate(result.nodes):
        hop = result.bytes_per_hop[index] if index < len(result.bytes_per_hop) else None
        table.add_row(
            node.name,
            node.layers,
            hop.to_node if hop else "-",
            f"{hop.bytes:,}" if hop else "-",
            f"{hop.bytes_per_token:,.0f}" if hop else "-",
        )
    console.print(table)
    console.print(
        f"{len(result.token_ids)} tokens · first after {result.ttft_ms:.0f} ms · "
        f"{result.tokens_per_second:.1f} tokens/s · precision {result.precision} · "
        f"all on this one machine"
    )
    if result.precision == "fast" and len(result.nodes) > 1:
        console.print(
            "[dim]Under fast, hidden states travel in the device's own 16-bit type (f16 on a CPU "
            "without one); --precision exact computes and sends f32.[/dim]"
        )


async def _until_interrupted(story: object) -> None:
    """Run, and on Ctrl+C or a termination signal unwind, so that nothing stays behind.

    Raises:
        Cancelled: it was interrupted.
    """
    task = asyncio.ensure_future(story)  # type: ignore[call-overload]
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        raise Cancelled("Interrupted; the demo's fleet is gone.") from None

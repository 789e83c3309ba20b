"""``fleetapp ask``: one question, one answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any

import click

from fleetapp.cli import output
from fleetapp.cli.answers import Answer, choose_model, read_answer, why_it_waits
from fleetapp.cli.client import api_client
from fleetapp.cli.context import App, common_options, json_option, pass_app
from fleetapp.cli.waiting import telling
from fleetapp.errors import BadRequest

MAX_QUESTION = 8 * 1024 * 1024


def sampling_options(command: Any) -> Any:
    """Options of ``ask`` and ``chat`` alike."""
    for option in reversed(
        [
            click.option("-m", "--model", help="Model to ask [default: the first that is ready]."),
            click.option("-s", "--system", help="What the model is told before the question."),
            click.option(
                "--max-tokens", type=click.IntRange(min=1), help="Longest answer, in tokens."
            ),
            click.option(
                "--temperature",
                type=click.FloatRange(0, 2),
                help="0 always takes the likeliest token.",
            ),
            click.option(
                "--top-p",
                type=click.FloatRange(0, 1),
                help="Take tokens up to this share of likelihood.",
            ),
            click.option(
                "--top-k",
                type=click.IntRange(min=-1),
                help="Take only this many likeliest tokens; 0 takes all.",
            ),
            click.option("--seed", type=int, help="The same seed gives the same answer."),
            click.option("--stop", multiple=True, help="End before this text; may be repeated."),
            click.option("--url", envvar="FLEETAPP_URL", help="API to ask instead of this PC's."),
            click.option("--key", envvar="FLEETAPP_KEY", help="API key for --url."),
        ]
    ):
        command = option(command)
    return command


SAMPLING = ("max_tokens", "temperature", "top_p", "top_k", "seed")


def sampling_fields(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, as fields of a request."""
    fields = {name: options[name] for name in SAMPLING if options.get(name) is not None}
    if options.get("stop"):
        fields["stop"] = list(options["stop"])
    return fields


@click.command()
@click.argument("question", required=False)
@sampling_options
@json_option
@common_options
@pass_app
def ask(app: App, /, question: str | None, as_json: bool, **options: Any) -> None:
    """Ask QUESTION and print the answer as it is written.

    Without QUESTION, or with '-', the question is read from standard input.
    """
    text = _question(question)
    messages = [{"role": "user", "content": text}]
    if options["system"]:
        messages.insert(0, {"role": "system", "content": well_formed(options["system"])})
    with api_client(app.home, options["url"], options["key"]) as client:
        answer = Answer(choose_model(client, options["model"]))
        body = {"model": answer.model, "messages": messages, **sampling_fields(options)}
        ended_line = True

        def why() -> str:
            with api_client(app.home, options["url"], options["key"]) as another:
                return why_it_waits(another, answer)

        try:
            for piece in _told(read_answer(client, body, answer), why, quiet=as_json):
                if not as_json:
                    shown = output.clean(piece)
                    ended_line = shown.endswith("\n")
                    click.echo(shown, nl=False)
                    sys.stdout.flush()
        finally:
            if not ended_line:
                click.echo()
    if as_json:
        output.print_json(answer.as_json())
    elif sys.stdout.isatty() and (summary := answer.summary()):
        output.note(summary)


def _told(
    pieces: Generator[str, None, None], why: Callable[[], str], *, quiet: bool
) -> Iterator[str]:
    """``pieces``; until the first of them, say what is waited for if that takes long."""
    with closing(pieces):
        with telling(why, quiet):
            first = next(pieces, None)
        if first is not None:
            yield first
            yield from pieces


def _question(argument: str | None) -> str:
    if argument is not None and argument != "-":
        text = well_formed(argument)
    else:
        if argument is None and sys.stdin.isatty():
            raise BadRequest(
                "There is no question.", remedy='Give one: fleetapp ask "What is a fleet?"'
            )
        raw = sys.stdin.buffer.read(MAX_QUESTION + 1)
        if len(raw) > MAX_QUESTION:
            raise BadRequest(f"The question is larger than {output.size(MAX_QUESTION)}.")
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise BadRequest(
                f"The question is not valid UTF-8 (byte {error.start}).", remedy="Send UTF-8."
            ) from error
    if not text.strip():
        raise BadRequest("The question is empty.", remedy="Ask something.")
    return text


def well_formed(text: str) -> str:
    """``text``, if it can be sent; the shell may have passed bytes that are no characters.

    Raises:
        BadRequest: it cannot.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadRequest("The text is not valid UTF-8.", remedy="Type or paste it anew.") from error
    return text

"""``fleetapp chat``: a conversation in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from fleetapp.cli import output
from fleetapp.cli.answers import Answer, choose_model, read_answer
from fleetapp.cli.ask import sampling_fields, sampling_options, well_formed
from fleetapp.cli.client import Client, api_client
from fleetapp.cli.context import App, common_options, pass_app
from fleetapp.cli.conversation import COMMANDS, Conversation
from fleetapp.cli.view import MarkdownView, PlainView, View, note
from fleetapp.errors import FleetError

HISTORY = "chat-history"
PROMPT = "> "


@click.command()
@sampling_options
@common_options
@pass_app
def chat(app: App, /, **options: Any) -> None:
    """Chat in the terminal; /help shows what can be done there."""
    fancy = sys.stdin.isatty() and sys.stdout.isatty()
    with api_client(app.home, options["url"], options["key"]) as client:
        conversation = Conversation(
            model=choose_model(client, options["model"]),
            system=well_formed(options["system"] or ""),
            options=sampling_fields(options),
        )
        screen = output.console()
        lines = _typed(app, screen, conversation) if fancy else _piped()
        Chat(client, conversation, screen, fancy).run(lines)


def _typed(app: App, screen: Console, conversation: Conversation) -> Iterator[str]:
    """What a person types until Ctrl+D. Ctrl+C empties the line."""
    from fleetapp.cli.prompt import make_session, private_history  # noqa: PLC0415 - only on a tty
    from fleetapp.platform import current  # noqa: PLC0415

    history, problem = private_history(app.home / HISTORY, current())
    note(screen, f"{conversation.model}. /help for help, Ctrl+C stops an answer, Ctrl+D leaves.")
    if problem:
        note(screen, problem)
    session = make_session(history, [name.split(" ")[0] for name, _ in COMMANDS])
    while True:
        try:
            yield session.prompt(PROMPT)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _piped() -> Iterator[str]:
    """One message a line."""
    for line in sys.stdin:
        yield line.rstrip("\n")


class Chat:
    """Runs the thread: commands, questions, answers, and what goes wrong with them."""

    def __init__(
        self, client: Client, conversation: Conversation, screen: Console, fancy: bool
    ) -> None:
        self._client = client
        self._talk = conversation
        self._screen = screen
        self._fancy = fancy
        self._commands: dict[str, Callable[[str], None]] = {
            "/help": self._help,
            "/new": self._new,
            "/system": self._system,
            "/model": self._model,
            "/temp": self._temperature,
            "/retry": self._retry,
            "/save": self._save,
            "/stats": self._stats,
        }

    def run(self, lines: Iterator[str]) -> None:
        """Until the lines end or somebody says /exit."""
        for line in lines:
            text = line.strip()
            if text in ("/exit", "/quit"):
                return
            if text:
                self.take(text)

    def take(self, text: str) -> None:
        """One line: a command or a question. Errors are shown and the chat goes on."""
        word, _, rest = text.partition(" ")
        try:
            if word in self._commands:
                self._commands[word](rest.strip())
            elif word.startswith("/") and word[1:].isalpha():
                self._say(f"There is no command {word}; /help lists them.")
            else:
                self._ask(well_formed(text))
        except FleetError as error:
            self._error(error)

    def _ask(self, question: str) -> None:
        answer = Answer(self._talk.model)
        self._talk.failed = question
        try:
            self._show(question, answer)
        except KeyboardInterrupt:
            self._talk.answered(question, answer, stopped=True)
            self._say("Stopped.")
            return
        self._talk.answered(question, answer)
        if summary := answer.summary():
            self._say(summary)

    def _show(self, question: str, answer: Answer) -> None:
        view: View = MarkdownView(self._screen) if self._fancy else PlainView()
        # closing: on Ctrl+C the connection must go now, so that the fleet stops computing
        with (
            view,
            closing(read_answer(self._client, self._talk.request(question), answer)) as pieces,
        ):
            for piece in pieces:
                view.add(piece)

    def _error(self, error: FleetError) -> None:
        self._say(f"Error: {error.message}", "red")
        again = "/retry asks again." if self._talk.failed else ""
        if hint := f"{error.remedy} {again}".strip():
            self._say(hint)

    def _say(self, text: str, style: str = "dim") -> None:
        if self._fancy:
            note(self._screen, text, style)
        else:
            output.note(text)

    def _help(self, _: str) -> None:
        for name, what in COMMANDS:
            self._say(f"{name:<16}{what}", "")
        self._say("Alt+Enter, or \\ at the end of a line, begins a new line.", "")

    def _new(self, _: str) -> None:
        self._talk.clear()
        self._say("A new conversation.")

    def _system(self, text: str) -> None:
        self._talk.system = well_formed(text)
        self._say("It will be told that first." if text else "It is told nothing first.")

    def _model(self, name: str) -> None:
        listed = self._client.request("GET", "/models").get("data") or []
        known = [str(m.get("id")) for m in listed if isinstance(m, dict)]
        if not name:
            for model in known:
                self._say(f"{'*' if model == self._talk.model else ' '} {model}", "")
        elif name in known:
            self._talk.model = name
            self._say(f"Going on with {name}.")
        else:
            self._say(f"The fleet does not serve '{name}'; /model lists what it does.")

    def _temperature(self, text: str) -> None:
        if text:
            try:
                value = float(text)
            except ValueError:
                value = -1.0
            if not 0 <= value <= 2:
                self._say("The temperature is a number from 0 to 2.")
                return
            self._talk.options["temperature"] = value
        self._say(f"Temperature {self._talk.options.get('temperature', 'as the server has it')}.")

    def _retry(self, _: str) -> None:
        question = self._talk.take_back()
        if not question:
            self._say("There is nothing to ask again.")
            return
        if self._fancy:
            self._screen.print(Text(PROMPT + output.clean(question), style="dim"))
        self._ask(question)

    def _save(self, name: str) -> None:
        if not name:
            self._say("Say where: /save FILE")
            return
        path = Path(name).expanduser()
        try:
            self._talk.save(path)
        except FileExistsError:
            self._say(f"{path} exists already; choose another name.")
        except OSError as error:
            self._say(f"{path} cannot be written ({error.strerror}).")
        else:
            self._say(f"Saved as {path}.")

    def _stats(self, _: str) -> None:
        for name, value in self._talk.statistics():
            self._say(f"{name:<13}{value}", "")

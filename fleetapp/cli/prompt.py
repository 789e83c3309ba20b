"""The line one types in ``fleetapp chat``: several lines, history, commands completed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from fleetapp.errors import StorageError
from fleetapp.platform.base import Platform


def private_history(path: Path, platform: Platform) -> tuple[History, str]:
    """The history in ``path``, readable by its user only, and a sentence if it cannot be kept."""
    try:
        if not path.exists():
            platform.make_private_dir(path.parent)
            platform.write_private(path, b"")
        with path.open("ab"):
            pass
    except (StorageError, OSError) as error:
        return InMemoryHistory(), f"The history is not kept: {error}"
    return FileHistory(str(path)), ""


def make_session(history: History, commands: Sequence[str]) -> PromptSession[str]:
    """Enter sends; Alt+Enter, or a backslash at the end of the line, goes on in a new line."""
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("enter")
    def _send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    completer = WordCompleter(list(commands), sentence=True)
    return PromptSession(
        history=history,
        key_bindings=keys,
        multiline=True,
        completer=completer,
        complete_while_typing=False,
        prompt_continuation="  ",
    )

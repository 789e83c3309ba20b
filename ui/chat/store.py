"""Conversations on this PC's disk: one SQLite file, searched by words, nothing sent anywhere.

Every call is short enough for the Qt thread: reads go through an index, writes are not waited for
(write-ahead log, no sync per commit).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
from PySide6.QtCore import QCoreApplication

from ui.chat import schema
from ui.chat.errors import HistoryUnusable
from ui.chat.values import NEW, Conversation, Failure, Message, Options, Pause, Role, Served, Status

translate = QCoreApplication.translate

FILE = "chats.sqlite3"
TITLE_LENGTH = 60
"""Characters."""
FOUND = 200
"""Conversations a search shows at most."""

_CONVERSATION = "id, title, created, updated, model, system, temperature, max_tokens"
_MESSAGE = "id, conversation, role, text, created, status, model, details"


class _Details(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is only ever read together with its message."""

    failure: Failure | None = None
    served: Served = Served()
    pauses: tuple[Pause, ...] = ()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Details).decode


class ConversationStore:
    """Owns the file ``chats.sqlite3`` in ``home``, or a passing one in memory if it cannot.

    Args:
        home: the state folder.
        clock: seconds since 1970.
    """

    def __init__(self, home: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = home / FILE
        self.problem: HistoryUnusable | None = None
        """Why nothing is kept."""
        self.set_aside: Path | None = None
        """Where a damaged history has been put."""
        self.lost_file: Callable[[HistoryUnusable], object] = lambda _: None
        """Called when the history becomes a passing one while it is in use."""
        self._clock = clock
        try:
            self._db, self.set_aside = schema.open_file(self.path)
        except HistoryUnusable as error:
            self.problem = error
            self._db = schema.open_memory()
        self._mark_interrupted()

    def close(self) -> None:
        """Give the file back."""
        self._db.close()

    # conversations

    def conversations(self) -> list[Conversation]:
        """All, the one used last first."""
        rows = self._run(
            f"SELECT {_CONVERSATION} FROM conversations"  # noqa: S608 - columns are ours
            " ORDER BY updated DESC, id DESC"
        )
        return [_conversation(row) for row in rows]

    def conversation(self, conversation: int) -> Conversation | None:
        """One of them, or None if it has been deleted."""
        row = self._run(
            f"SELECT {_CONVERSATION} FROM conversations WHERE id = ?",  # noqa: S608 - columns are ours
            (conversation,),
        ).fetchone()
        return None if row is None else _conversation(row)

    def create(self, first_question: str, options: Options) -> Conversation:
        """A conversation that is called after its first question."""
        now = self._clock()
        made = self._run(
            "INSERT INTO conversations (title, created, updated, model, system, temperature,"
            " max_tokens) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (_title(first_question), now, now, *_columns(options)),
        )
        return Conversation(made.lastrowid or 0, _title(first_question), now, now, options)

    def rename(self, conversation: int, title: str) -> None:
        """Call it otherwise; an empty title changes nothing."""
        if title := " ".join(title.split())[:200]:
            self._run("UPDATE conversations SET title = ? WHERE id = ?", (title, conversation))

    def set_options(self, conversation: int, options: Options) -> None:
        """Remember what was chosen for it."""
        self._run(
            "UPDATE conversations SET model = ?, system = ?, temperature = ?, max_tokens = ?"
            " WHERE id = ?",
            (*_columns(options), conversation),
        )

    def delete(self, conversation: int) -> None:
        """For good, with messages and draft; what the file held of them is overwritten."""
        self._together(
            ("DELETE FROM conversations WHERE id = ?", (conversation,)),
            ("DELETE FROM drafts WHERE conversation = ?", (conversation,)),
        )
        self._forget()

    def delete_all(self) -> None:
        """Everything, for good."""
        self._together(*((f"DELETE FROM {t}", ()) for t in ("conversations", "drafts", "state")))  # noqa: S608
        self._forget()
        self._run("VACUUM")
        self._run("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _forget(self) -> None:
        """Take deleted words out of the index and out of the journal as well."""
        # an index of segments only notes what was deleted, until it is merged
        self._run("INSERT INTO messages_text (messages_text) VALUES ('optimize')")
        self._run("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def tidy(self) -> None:
        """Put the journal into the file, which waits for the disk."""
        self._run("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def copy_to(self, path: Path) -> None:
        """The whole history as one file that this program, or any SQLite, can read.

        Raises:
            HistoryUnusable: the file cannot be written.
        """
        try:
            path.unlink(missing_ok=True)
            self._db.execute("VACUUM INTO ?", (str(path),))
        except (sqlite3.Error, OSError) as error:
            odd = translate("Chat", "The history could not be copied to {file}: {why}.")
            raise HistoryUnusable(odd.format(file=path, why=error)) from error

    def search(self, words: str) -> list[Conversation]:
        """Conversations with all of these words in one message or in the title, newest first.

        A word also finds longer ones that begin with it; capitals and accents make no difference.
        """
        terms = words.split()
        if not terms:
            return self.conversations()
        titles = " AND ".join(["title LIKE ? ESCAPE '\\'"] * len(terms))
        likes = [_like(term) for term in terms]
        found: dict[int, Conversation] = {}
        for row in self._run(
            f"SELECT {_CONVERSATION} FROM conversations WHERE {titles}"  # noqa: S608 - placeholders only
            " ORDER BY updated DESC LIMIT ?",
            (*likes, FOUND),
        ):
            found[row[0]] = _conversation(row)
        for owner, excerpt in self._search_messages(terms, likes):
            known = found.get(owner) or self.conversation(owner)
            if known is not None and not known.excerpt:
                found[owner] = replace(known, excerpt=" ".join(excerpt.split()))
        return sorted(found.values(), key=lambda c: (-c.updated, -c.id))

    def _search_messages(self, terms: list[str], likes: list[str]) -> Iterator[tuple[int, str]]:
        if all(term.isascii() or (term.isalpha() and not _unspaced(term)) for term in terms):
            # quoted, a term is never taken for the search language; only letters and digits count
            query = " ".join(
                f'"{term.replace(chr(34), " ")}"*' for term in terms if _has_word(term)
            )
            if not query:
                return
            yield from self._run(
                "SELECT m.conversation, snippet(messages_text, 0, '', '', '…', 12)"
                " FROM messages_text JOIN messages m ON m.id = messages_text.rowid"
                " WHERE messages_text MATCH ? ORDER BY m.id DESC LIMIT 2000",
                (query,),
            )
            return
        # scripts written without spaces have no words that the index could know
        wanted = " AND ".join(["text LIKE ? ESCAPE '\\'"] * len(terms))
        for owner, text in self._run(
            f"SELECT conversation, text FROM messages WHERE {wanted}"  # noqa: S608 - placeholders only
            " ORDER BY id DESC LIMIT 2000",
            likes,
        ):
            at = max(0, text.lower().find(terms[0].lower()) - 30)
            yield owner, text[at : at + 80]

    # messages

    def messages(self, conversation: int) -> list[Message]:
        """In the order they were said."""
        rows = self._run(
            f"SELECT {_MESSAGE} FROM messages WHERE conversation = ? ORDER BY id",  # noqa: S608 - columns are ours
            (conversation,),
        )
        return [_message(row) for row in rows]

    def add(
        self,
        conversation: int,
        role: Role,
        text: str,
        *,
        status: Status = "complete",
        model: str = "",
    ) -> Message:
        """Append to a conversation, which becomes the newest."""
        now = self._clock()
        made = self._together(
            (
                (
                    "INSERT INTO messages (conversation, role, text, created, status, model)"
                    " VALUES (?, ?, ?, ?, ?, ?)"
                ),
                (conversation, role, text, now, status, model),
            ),
            ("UPDATE conversations SET updated = ? WHERE id = ?", (now, conversation)),
        )
        return Message(made.lastrowid or 0, conversation, role, text, now, status, model)

    def save(self, message: Message) -> None:
        """Write what has become of a message; nothing happens if it has been deleted meanwhile."""
        details = _Details(message.failure, message.served, message.pauses)
        self._run(
            "UPDATE messages SET text = ?, status = ?, model = ?, details = ? WHERE id = ?",
            (message.text, message.status, message.model, _encode(details), message.id),
        )

    def remove_from(self, message: Message) -> None:
        """Delete a message and everything after it."""
        self._run(
            "DELETE FROM messages WHERE conversation = ? AND id >= ?",
            (message.conversation, message.id),
        )

    # what was being typed, and where

    def draft(self, conversation: int) -> str:
        """What was typed and not sent."""
        row = self._run(
            "SELECT text FROM drafts WHERE conversation = ?", (conversation,)
        ).fetchone()
        return "" if row is None else str(row[0])

    def set_draft(self, conversation: int, text: str) -> None:
        """Remember it; an empty one is forgotten."""
        if not text:
            self._run("DELETE FROM drafts WHERE conversation = ?", (conversation,))
            return
        if conversation != NEW and self.conversation(conversation) is None:
            return
        self._run(
            "INSERT INTO drafts VALUES (?, ?) ON CONFLICT DO UPDATE SET text = excluded.text",
            (conversation, text),
        )

    def recall(self, name: str) -> str:
        """A small thing that was remembered, or the empty text."""
        row = self._run("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
        return "" if row is None else str(row[0])

    def remember(self, name: str, value: str) -> None:
        """Keep a small thing over a restart."""
        self._run(
            "INSERT INTO state VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            (name, value),
        )

    def _mark_interrupted(self) -> None:
        self._run("UPDATE messages SET status = 'interrupted' WHERE status = 'writing'")

    def _run(self, sql: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        return self._together((sql, values))

    def _together(self, *steps: tuple[str, Sequence[object]]) -> sqlite3.Cursor:
        """All of the steps or none; the cursor is that of the first.

        A disk that is full or gone must not take what somebody is reading with it: from then on
        the history is a passing one, and ``problem`` says so.
        """
        try:
            return self._attempt(steps)
        except sqlite3.Error as error:
            if self.problem is not None:
                raise
            self._go_on_in_memory(error)
            return self._attempt(steps)

    def _attempt(self, steps: Sequence[tuple[str, Sequence[object]]]) -> sqlite3.Cursor:
        if len(steps) == 1:
            return self._db.execute(*steps[0])
        self._db.execute("BEGIN")
        try:
            first, *_ = [self._db.execute(*step) for step in steps]
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        return first

    def _go_on_in_memory(self, error: sqlite3.Error) -> None:
        memory = schema.open_memory()
        try:
            self._db.backup(memory)
            self._db.close()
        except sqlite3.Error:
            # unreadable as well; the next start puts the file aside
            memory = schema.open_memory()
        self._db = memory
        self.problem = HistoryUnusable(
            translate("Chat", "The chat history {file} can no longer be written: {why}.").format(
                file=self.path, why=error
            ),
            remedy=translate(
                "Chat", "Chats work, but are not kept until fleetapp is started again."
            ),
        )
        self.lost_file(self.problem)


def _columns(options: Options) -> tuple[str, str, float, int]:
    return options.model, options.system, options.temperature, options.max_tokens


def _conversation(row: tuple[int, str, float, float, str, str, float, int]) -> Conversation:
    return Conversation(*row[:4], Options(*row[4:]))


def _message(row: tuple[int, int, Role, str, float, Status, str, bytes | None]) -> Message:
    details = _Details() if row[7] is None else _decode(row[7])
    return Message(*row[:7], details.failure, details.served, details.pauses)


def _title(question: str) -> str:
    """The first line, cut between two words where possible."""
    line = next((" ".join(part.split()) for part in question.splitlines() if part.strip()), "…")
    if len(line) <= TITLE_LENGTH:
        return line
    cut = line[:TITLE_LENGTH]
    whole = cut.rpartition(" ")[0]
    return (whole if len(whole) > TITLE_LENGTH // 2 else cut) + "…"


def _like(term: str) -> str:
    escaped = term.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _has_word(term: str) -> bool:
    return any(c.isalnum() for c in term)


def _unspaced(term: str) -> bool:
    """Chinese, Japanese, Thai, Lao, Khmer, Burmese."""
    return any(
        "\u0e00" <= c <= "\u0eff" or "\u1000" <= c <= "\u109f" or "\u1780" <= c <= "\u17ff"
        or "\u3040" <= c <= "\u30ff" or "\u3400" <= c <= "\u9fff" or c >= "\U00020000"
        for c in term
    )  # fmt: skip

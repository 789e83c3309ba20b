"""The history file: its tables, how older versions are brought up to date, how damage is met."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from PySide6.QtCore import QCoreApplication

from ui.chat.errors import HistoryUnusable

translate = QCoreApplication.translate

MIGRATIONS = (
    # 1: conversations, messages, and what was being typed
    """
    CREATE TABLE conversations (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        title TEXT NOT NULL,
        created REAL NOT NULL,
        updated REAL NOT NULL,
        model TEXT NOT NULL DEFAULT '',
        system TEXT NOT NULL DEFAULT '',
        temperature REAL NOT NULL DEFAULT 0,
        max_tokens INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX conversations_updated ON conversations (updated);
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        role TEXT NOT NULL,
        text TEXT NOT NULL,
        created REAL NOT NULL,
        status TEXT NOT NULL,
        model TEXT NOT NULL DEFAULT '',
        details BLOB
    );
    CREATE INDEX messages_conversation ON messages (conversation, id);
    CREATE TABLE drafts (conversation INTEGER PRIMARY KEY, text TEXT NOT NULL);
    CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    """,
    # 2: full-text search
    """
    CREATE VIRTUAL TABLE messages_text USING fts5 (
        text, content='messages', content_rowid='id', tokenize='unicode61 remove_diacritics 2'
    );
    INSERT INTO messages_text (rowid, text) SELECT id, text FROM messages;
    CREATE TRIGGER messages_inserted AFTER INSERT ON messages BEGIN
        INSERT INTO messages_text (rowid, text) VALUES (new.id, new.text);
    END;
    CREATE TRIGGER messages_deleted AFTER DELETE ON messages BEGIN
        INSERT INTO messages_text (messages_text, rowid, text) VALUES ('delete', old.id, old.text);
    END;
    CREATE TRIGGER messages_changed AFTER UPDATE OF text ON messages BEGIN
        INSERT INTO messages_text (messages_text, rowid, text) VALUES ('delete', old.id, old.text);
        INSERT INTO messages_text (rowid, text) VALUES (new.id, new.text);
    END;
    """,
)
"""Each brings the file from version n to n + 1. Never change one that was released; add one."""

VERSION = len(MIGRATIONS)
JOURNAL_PAGES = 16_000
"""Of 4 KiB, in the journal before it is put into the file although somebody may be looking."""
CHECK_UP_TO = 64 * 1024 * 1024
"""Bytes; a larger file is not checked page by page at every start."""


def open_file(path: Path) -> tuple[sqlite3.Connection, Path | None]:
    """The history at ``path``, of the current version; made if it is not there.

    Returns:
        The connection, and where a damaged file has been put aside, if there was one.

    Raises:
        HistoryUnusable: a newer fleetapp wrote it, or the folder or disk does not allow it.
    """
    try:
        try:
            return _open(path), None
        except sqlite3.DatabaseError as error:
            # OperationalError says the system refuses (locked, full, read-only), not the content
            if isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error):
                raise
            aside = set_aside(path)
            return _open(path), aside
    except (sqlite3.Error, OSError) as error:
        raise HistoryUnusable(
            translate("Chat", "The chat history {file} cannot be used: {why}.").format(
                file=path, why=error
            ),
            remedy=translate("Chat", "Chats work, but are not kept."),
        ) from error


def open_memory() -> sqlite3.Connection:
    """A history that ends with the app, for when there can be no file."""
    return _migrated(sqlite3.connect(":memory:", isolation_level=None))


def set_aside(path: Path) -> Path:
    """Rename a damaged file and its journals, so that a new one can begin and nothing is lost.

    Raises:
        OSError: it cannot be renamed.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.stem}.damaged-{stamp}{path.suffix}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.stem}.damaged-{stamp}-{number}{path.suffix}")
    path.replace(aside)
    for journal in ("-wal", "-shm"):
        beside = path.with_name(path.name + journal)
        if beside.exists():
            beside.replace(aside.with_name(aside.name + journal))
    return aside


def _open(path: Path) -> sqlite3.Connection:
    known = path.exists()
    connection = sqlite3.connect(path, isolation_level=None, timeout=2.0)
    try:
        if not known:
            path.chmod(0o600)  # what people ask is nobody else's business
        # written through at checkpoints only: a power cut may take the last second, never the file
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        # a checkpoint waits for the disk: when nobody does (see ``tidy``), unless it gets too large
        connection.execute(f"PRAGMA wal_autocheckpoint = {JOURNAL_PAGES}")
        if known and path.stat().st_size <= CHECK_UP_TO:
            _check(connection)
        return _migrated(connection)
    except BaseException:
        connection.close()
        raise


def _check(connection: sqlite3.Connection) -> None:
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise sqlite3.DatabaseError(f"malformed: {verdict}")


def _migrated(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.execute("PRAGMA foreign_keys = ON")
    # what is deleted shall be gone from the file as well
    connection.execute("PRAGMA secure_delete = ON")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise HistoryUnusable(
            translate(
                "Chat",
                "The chat history was written by a newer fleetapp (version {version} of the file; "
                "this one knows {known}).",
            ).format(version=version, known=VERSION),
            remedy=translate("Chat", "Update fleetapp. Until then chats work, but are not kept."),
        )
    for number in range(version, VERSION):
        # one transaction, so that an interrupted migration leaves the version before
        connection.executescript(
            f"BEGIN; {MIGRATIONS[number]} PRAGMA user_version = {number + 1}; COMMIT;"
        )
    return connection

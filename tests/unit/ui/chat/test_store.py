"""The history: kept, found, deleted for good, and never in the way."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ui.chat import schema
from ui.chat.errors import HistoryUnusable
from ui.chat.store import FILE, ConversationStore
from ui.chat.values import NEW, Failure, Options, Pause, Served


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "José 測試"
    folder.mkdir()
    return folder


@pytest.fixture
def store(home: Path) -> Iterator[ConversationStore]:
    times = iter(range(1000, 10_000))
    store = ConversationStore(home, lambda: float(next(times)))
    assert store.problem is None
    yield store
    store.close()


def test_a_conversation_is_there_after_a_restart(home: Path, store: ConversationStore) -> None:
    options = Options("tiny", "Be brief.", 0.5, 99)
    made = store.create("  What is\nthe capital?", options)
    assert made.title == "What is"
    store.add(made.id, "user", "What is\nthe capital?")
    answer = store.add(made.id, "assistant", "", status="writing", model="tiny")
    answer = replace(
        answer,
        text="Paris 日本 👩\u200d👧",
        status="failed",
        failure=Failure("no_hub", "No hub.", "Wait."),
        served=Served(("A", "B"), 3, 4, 0.1, 0.2, 0.3, 30.5),
        pauses=(Pause(2, 2.1, replaced=True),),
    )
    store.save(answer)
    store.close()
    again = ConversationStore(home)
    (known,) = again.conversations()
    assert known == again.conversation(made.id)
    assert known.options == options
    assert again.messages(made.id)[1] == answer
    again.close()


def test_an_answer_that_was_being_written_when_the_app_died_is_marked(
    home: Path, store: ConversationStore
) -> None:
    made = store.create("q", Options())
    store.save(replace(store.add(made.id, "assistant", "", status="writing"), text="half"))
    store.close()
    (message,) = ConversationStore(home).messages(made.id)
    assert (message.text, message.status) == ("half", "interrupted")


def test_the_one_used_last_comes_first(store: ConversationStore) -> None:
    first, second = store.create("first", Options()), store.create("second", Options())
    assert [c.id for c in store.conversations()] == [second.id, first.id]
    store.add(first.id, "user", "again")
    assert [c.id for c in store.conversations()] == [first.id, second.id]


def test_long_titles_end_between_words(store: ConversationStore) -> None:
    title = store.create("word " * 50, Options()).title
    assert title.endswith("word…")
    assert len(title) <= 61
    store.rename(1, "  new\n name ")
    assert store.conversations()[0].title == "new name"
    store.rename(1, "   ")
    assert store.conversations()[0].title == "new name"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("capital", {"France"}),
        ("CAPIT fran", {"France"}),
        ("ecole", {"School"}),
        ("France", {"France"}),
        ("東京", {"Japan"}),
        ("京", {"Japan"}),
        ("capital nothing", set()),
        ('"quo', {"Odd"}),
        ("100%", {"Odd"}),
        ("a_b", {"Odd"}),
        ("AND", {"Odd"}),
        ("NEAR(", set()),
        ("*", set()),
        ("'; DROP TABLE messages; --", set()),
    ],
)
def test_search(store: ConversationStore, words: str, found: set[str]) -> None:
    for title, text in (
        ("France", "The capital of France is Paris."),
        ("School", "Une école à Évian."),
        ("Japan", "日本の首都は東京です"),
        ("Odd", 'A "quoted" 100% a_b thing and more'),
    ):
        store.add(store.create(title, Options()).id, "user", text)
    assert {c.title for c in store.search(words)} == found
    assert len(store.search("  ")) == 4


def test_search_shows_where_and_follows_changes(store: ConversationStore) -> None:
    made = store.create("Title", Options())
    message = store.add(made.id, "assistant", "before " * 50 + "needle " + "after " * 50)
    (found,) = store.search("needle")
    assert "needle" in found.excerpt
    assert len(found.excerpt) < 200
    store.save(replace(message, text="something else"))
    assert store.search("needle") == []
    assert len(store.search("something")) == 1


def test_removing_from_a_message_on(store: ConversationStore) -> None:
    made, other = store.create("a", Options()), store.create("b", Options())
    messages = [store.add(made.id, "user", str(n)) for n in range(5)]
    kept = store.add(other.id, "user", "kept")
    store.remove_from(messages[2])
    assert [m.text for m in store.messages(made.id)] == ["0", "1"]
    assert store.messages(other.id) == [kept]
    # what was removed is not brought back by an answer that comes late
    store.save(replace(messages[3], text="late"))
    assert len(store.messages(made.id)) == 2


def test_deleted_is_gone_from_the_file(home: Path, store: ConversationStore) -> None:
    def left(secret: str) -> bool:
        return any(secret.encode() in path.read_bytes() for path in home.iterdir())

    for secret in ("firstsecret", "secondsecret", "thirdsecret"):
        made = store.create(secret, Options(system=secret))
        store.add(made.id, "user", f"some {secret} text")
        store.set_draft(made.id, secret)
    store.remember("x", "statesecret")
    assert left("firstsecret")
    store.delete(1)
    assert [c.id for c in store.conversations()] == [3, 2]
    assert (store.messages(1), store.draft(1)) == ([], "")
    assert not left("firstsecret")
    assert left("secondsecret")
    store.delete_all()
    assert (store.conversations(), store.search("secondsecret")) == ([], [])
    assert not any(map(left, ("secondsecret", "thirdsecret", "statesecret")))


def test_drafts(home: Path, store: ConversationStore) -> None:
    made = store.create("a", Options())
    store.set_draft(NEW, "for a new one")
    store.set_draft(made.id, "here")
    store.set_draft(77, "of one that was deleted")
    store.close()
    again = ConversationStore(home)
    assert (again.draft(NEW), again.draft(made.id), again.draft(77)) == (
        "for a new one",
        "here",
        "",
    )
    again.set_draft(NEW, "")
    assert again.draft(NEW) == ""


def test_the_whole_history_as_one_file(tmp_path: Path, store: ConversationStore) -> None:
    store.add(store.create("a", Options()).id, "user", "text")
    target = tmp_path / "copy" / FILE
    with pytest.raises(HistoryUnusable, match="could not be copied"):
        store.copy_to(target)
    target.parent.mkdir()
    target.write_text("was there before")
    store.copy_to(target)
    copy = ConversationStore(target.parent)
    assert [c.title for c in copy.search("text")] == ["a"]
    copy.close()


@pytest.mark.parametrize("damage", ["garbage", "middle", "cut", "empty header"])
def test_a_damaged_file_is_put_aside_and_said(home: Path, damage: str) -> None:
    store = ConversationStore(home)
    for n in range(50):
        store.add(store.create(f"c{n}", Options()).id, "user", "text " * 200)
    store.close()
    path = home / FILE
    data = path.read_bytes()
    path.write_bytes(
        {
            "garbage": b"not a database at all " * 500,
            "middle": data[:8192] + b"\xff" * (len(data) - 8192),
            "cut": data[: len(data) // 3],
            "empty header": b"\0" * 100 + data[100:],
        }[damage]
    )
    damaged = path.read_bytes()
    again = ConversationStore(home)
    assert again.problem is None
    assert again.set_aside is not None
    assert again.set_aside.read_bytes() == damaged
    assert again.conversations() == []
    again.add(again.create("new", Options()).id, "user", "works")
    again.close()
    third = ConversationStore(home)
    assert third.set_aside is None
    assert len(third.search("works")) == 1


def test_a_file_of_a_newer_version_is_left_alone(home: Path) -> None:
    store = ConversationStore(home)
    store.create("a", Options())
    store.close()
    connection = sqlite3.connect(home / FILE)
    connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    connection.close()
    before = (home / FILE).read_bytes()
    store = ConversationStore(home)
    assert store.problem is not None
    assert "newer" in str(store.problem)
    store.add(store.create("works", Options()).id, "user", "all the same")
    assert len(store.search("same")) == 1
    store.close()
    assert (home / FILE).read_bytes() == before


@pytest.mark.parametrize("version", range(schema.VERSION))
def test_an_older_file_is_brought_up_to_date(home: Path, version: int) -> None:
    connection = sqlite3.connect(home / FILE, isolation_level=None)
    for step in schema.MIGRATIONS[:version]:
        connection.executescript(step)
    if version:
        connection.execute(
            "INSERT INTO conversations (title, created, updated) VALUES ('old', 1, 1)"
        )
        connection.execute(
            "INSERT INTO messages (conversation, role, text, created, status)"
            " VALUES (1, 'user', 'kept words', 1, 'complete')"
        )
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    store = ConversationStore(home)
    assert (store.problem, store.set_aside) == (None, None)
    assert len(store.search("kept")) == bool(version)
    store.close()


def test_a_migration_that_is_interrupted_leaves_the_version_before(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ConversationStore(home).close()
    broken = (*schema.MIGRATIONS, "CREATE TABLE half (x); INSERT INTO no_such_table VALUES (1);")
    monkeypatch.setattr(schema, "MIGRATIONS", broken)
    monkeypatch.setattr(schema, "VERSION", len(broken))
    with pytest.raises(HistoryUnusable):
        schema.open_file(home / FILE)
    connection = sqlite3.connect(home / FILE)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(broken) - 1,)
    assert not connection.execute("SELECT * FROM sqlite_master WHERE name = 'half'").fetchall()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path / "not there")
    assert store.problem is not None
    made = store.create("works", Options())
    store.add(made.id, "user", "x")
    assert len(store.messages(made.id)) == 1


def test_a_disk_that_fills_up_takes_nothing_away(home: Path, store: ConversationStore) -> None:
    made = store.create("a", Options())
    store.add(made.id, "user", "before")
    said: list[HistoryUnusable] = []
    store.lost_file = said.append
    store._db.execute("PRAGMA max_page_count = 1")  # SQLite then says: database or disk is full
    store.add(made.id, "user", "x" * 100_000)
    assert [m.text[:6] for m in store.messages(made.id)] == ["before", "xxxxxx"]
    (problem,) = said
    assert "no longer be written" in str(problem)
    store.close()
    assert [m.text for m in ConversationStore(home).messages(made.id)] == ["before"]


def test_another_window_of_the_same_file_does_not_block(
    home: Path, store: ConversationStore
) -> None:
    other = ConversationStore(home)
    made = store.create("a", Options())
    store.add(made.id, "user", "from one")
    other.add(made.id, "user", "from the other")
    assert [m.text for m in store.messages(made.id)] == ["from one", "from the other"]
    other.close()


def test_only_the_owner_reads_the_file(home: Path, store: ConversationStore) -> None:
    assert (home / FILE).stat().st_mode & 0o077 == 0


def test_two_thousand_messages_are_read_in_a_moment(store: ConversationStore) -> None:
    made = store.create("a", Options())
    for n in range(2000):
        store.add(made.id, "user" if n % 2 == 0 else "assistant", f"{n} " + "words " * 100)
    begun = time.thread_time()
    assert len(store.messages(made.id)) == 2000
    assert time.thread_time() - begun < 0.15
    begun = time.thread_time()
    assert len(store.search("1999")) == 1
    assert time.thread_time() - begun < 0.05

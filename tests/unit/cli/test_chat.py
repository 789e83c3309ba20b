import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from fleetapp.cli.answers import Answer
from fleetapp.cli.conversation import Conversation
from fleetapp.cli.prompt import make_session, private_history
from fleetapp.errors import ChainBroken
from fleetapp.hub.service import ServedModel
from fleetapp.platform import current
from tests.support.cli import TOKEN, Run
from tests.support.fake_service import FakeService


def said(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    raw = "".join(f"{line}\n" for line in lines).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))


def thread(service: FakeService, index: int) -> list[tuple[str, str]]:
    return [(m.role, m.content) for m in service.seen[index].messages or ()]


@pytest.mark.usefixtures("running")
def test_a_conversation_carries_what_was_said(
    run: Run, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.tokens = lambda _r, _n: ["Sure", "."]
    said(monkeypatch, "/system Be kind.", "one", "two", "/new", "three", "/exit", "never sent")
    code, out, err = run("chat")
    assert code == 0
    assert out == "Sure.\n" * 3
    assert "DESK-1 → José 測試 → DESK-3" in err
    assert "tok/s" in err
    assert "first token after" in err
    system, first = ("system", "Be kind."), [("user", "one"), ("assistant", "Sure.")]
    assert thread(service, 1) == [system, *first, ("user", "two")]
    assert thread(service, 2) == [system, ("user", "three")]
    assert len(service.seen) == 3


@pytest.mark.usefixtures("running")
def test_an_error_is_shown_and_can_be_retried(
    run: Run, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.tokens = lambda _r, _n: ["Sure", "."]
    service.fail_after = (1, ChainBroken("DESK-3 has left."))
    said(monkeypatch, "one", "/retry", "two")
    code, _, err = run("chat")
    assert code == 0
    assert err.count("Error: DESK-3 has left.") == 3
    assert "/retry asks again." in err
    # never two user messages in a row: a failed question is not part of the thread
    assert [thread(service, i) for i in range(3)] == [
        [("user", "one")],
        [("user", "one")],
        [("user", "two")],
    ]


@pytest.mark.usefixtures("running")
def test_commands(
    run: Run, service: FakeService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    service.models += (ServedModel("other", 1, 64, ready=True),)
    file = tmp_path / "talk.json"
    said(
        monkeypatch, "/help", "/model", "/model none", "/model other", "/temp", "/temp 9",
        "/temp 0.5", "hello", "/retry", "/stats", f"/save {file}", f"/save {file}", "/save",
        "/bogus", "/retry x",
    )  # fmt: skip
    code, _, err = run("chat")
    assert code == 0
    for words in ("/system TEXT", "* tiny", "does not serve 'none'", "Going on with other",
                  "as the server has it", "from 0 to 2", "Temperature 0.5", "Turns", "Saved as",
                  "exists already", "Say where", "no command /bogus"):  # fmt: skip
        assert words in err
    assert service.seen[0].sampling.temperature == 0.5
    assert thread(service, 1) == [("user", "hello")]
    saved = json.loads(file.read_text("utf-8"))
    assert saved["model"] == "other"
    assert [t["question"] for t in saved["turns"]] == ["hello"]


def test_saving_as_markdown(tmp_path: Path) -> None:
    talk = Conversation("tiny", system="Be\nbrief.")
    talk.answered("Q?", Answer("tiny", text="A.", devices=["DESK-1"]))
    talk.save(tmp_path / "x.md")
    text = (tmp_path / "x.md").read_text("utf-8")
    assert text.startswith("# Chat with tiny\n\n> Be\n> brief.\n")
    assert "## You\n\nQ?\n" in text
    assert "A.\n\n*DESK-1*" in text


def test_an_answer_without_a_word_is_no_turn() -> None:
    talk = Conversation("tiny")
    talk.answered("Q?", Answer("tiny", text=" "))
    assert talk.turns == []
    assert talk.take_back() == ""


@pytest.mark.parametrize(
    ("typed", "sent"),
    [("hi\r", "hi"), ("a\x1b\rb\r", "a\nb"), ("a\\\rb\r", "a\nb"), ("日本\r", "日本")],
)
def test_enter_sends_and_alt_enter_or_backslash_do_not(typed: str, sent: str) -> None:
    from prompt_toolkit.application import create_app_session  # noqa: PLC0415

    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text(typed)
        assert make_session(InMemoryHistory(), ["/help"]).prompt("> ") == sent


def test_the_history_is_private(tmp_path: Path) -> None:
    file = tmp_path / "new" / "history"
    history, problem = private_history(file, current())
    assert problem == ""
    history.append_string("secret")
    assert b"secret" in file.read_bytes()
    if os.name != "nt":
        assert file.stat().st_mode & 0o777 == 0o600
    (tmp_path / "file").write_text("")
    assert "not kept" in private_history(tmp_path / "file" / "history", current())[1]


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo terminal")
def test_on_a_terminal(running: str, service: FakeService, home: Path) -> None:
    import pty  # noqa: PLC0415 - not on Windows

    service.tokens = lambda _r, _n: ["**Par", "is** ", "\x1b[2J", "is it."] + [" and on"] * 500
    service.default_max, service.pace = 504, 0.02
    parent, child = pty.openpty()
    chat = subprocess.Popen(
        [sys.executable, "-m", "fleetapp.cli", "chat", "--url", running, "--key", TOKEN],
        stdin=child, stdout=child, stderr=child, start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color", "LINES": "30", "COLUMNS": "90",
             "PROMPT_TOOLKIT_NO_CPR": "1"},
    )  # fmt: skip
    os.close(child)
    seen, fresh = b"", b""
    prompt = b"\x1b[?2004h"  # bracketed paste goes on when a line can be typed

    def until(*words: bytes) -> None:
        """Read until the words have come, one after the other, since the last call."""
        nonlocal seen, fresh
        deadline = time.monotonic() + 20
        for word in words:
            while word not in fresh:
                assert time.monotonic() < deadline, seen.decode("utf-8", "replace")
                if select.select([parent], [], [], 0.5)[0]:
                    got = os.read(parent, 65536)
                    seen, fresh = seen + got, fresh + got
            fresh = fresh.partition(word)[2]

    try:
        until(b"/help for help", prompt)
        os.write(parent, b"Where?\r")
        until("␛[2J".encode())
        chat.send_signal(signal.SIGINT)
        until(b"Stopped.", prompt)
        os.write(parent, b"/stats\r")
        until(b"Turns        1", b" read, about ", b" written", prompt)
        os.write(parent, b"\x04")
        assert chat.wait(10) == 0
    finally:
        if chat.poll() is None:
            chat.kill()
            chat.wait(10)
        os.close(parent)
    assert b"Traceback" not in seen
    assert b"Where?" in (home / "chat-history").read_bytes()
    assert len(service.cancelled) == 1
    told = re.findall(rb"Tokens +(\d+) read, about (\d+) written", seen)
    assert all(int(count) > 0 for count in told[-1]), "a stopped answer counts too"

import asyncio
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from fleetapp.cli import waiting
from fleetapp.engine.pipe import Generate
from fleetapp.errors import ChainBroken, ContextTooLong
from fleetapp.hub.service import Event, Queued, ServedModel
from tests.support.cli import TOKEN, Run
from tests.support.fake_service import FakeService, words_for

pytestmark = pytest.mark.usefixtures("running")


def stdin(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))


def test_the_answer_and_nothing_else(run: Run, service: FakeService) -> None:
    code, out, err = run("ask", "What is the capital of France?")
    assert (code, err) == (0, "")
    assert out == "".join(words_for(service.seen[0], 12)) + "\n"


def test_options_become_fields(run: Run, service: FakeService) -> None:
    code, _, err = run(
        "ask", "-s", "Be brief.", "--max-tokens", "5", "--temperature", "0.5", "--top-p", "0.9",
        "--top-k", "7", "--seed", "3", "--stop", "a", "--stop", "b", "-m", "tiny", "Why?",
    )  # fmt: skip
    assert code == 0, err
    asked = service.seen[0]
    assert [(m.role, m.content) for m in asked.messages or ()] == [
        ("system", "Be brief."),
        ("user", "Why?"),
    ]
    s = asked.sampling
    assert (s.max_tokens, s.temperature, s.top_p, s.top_k, s.seed) == (5, 0.5, 0.9, 7, 3)
    assert s.stop == ("a", "b")


@pytest.mark.parametrize("args", [("ask",), ("ask", "-")])
def test_the_question_may_come_from_stdin(
    run: Run, service: FakeService, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    stdin(monkeypatch, "Was ist 日本?\nZeile 2\n".encode())
    assert run(*args)[0] == 0
    assert service.seen[0].messages[0].content == "Was ist 日本?\nZeile 2\n"


@pytest.mark.parametrize(
    ("raw", "reason"), [(b"", "empty"), (b" \n", "empty"), (b"caf\xe9", "not valid UTF-8 (byte 3)")]
)
def test_stdin_that_is_no_question(
    run: Run, monkeypatch: pytest.MonkeyPatch, raw: bytes, reason: str
) -> None:
    stdin(monkeypatch, raw)
    code, out, err = run("ask", "-")
    assert (code, out) == (2, "")
    assert reason in err


def test_an_argument_that_is_not_utf8(run: Run) -> None:
    code, _, err = run("ask", "caf\udce9")
    assert code == 2
    assert "UTF-8" in err


def test_json_has_everything(run: Run) -> None:
    code, out, err = run("ask", "--json", "hello")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert len(found["answer"].split()) == 12
    assert found["devices"] == ["DESK-1", "José 測試", "DESK-3"]
    assert found["usage"]["completion_tokens"] == 12
    assert found["finish_reason"] == "length"
    assert found["ttft_ms"] > 0
    assert found["tokens_per_second"] > 0


def test_an_answer_cannot_steer_the_terminal(run: Run, service: FakeService) -> None:
    service.tokens = lambda _r, _n: ["a\x1b]0;", "title\x07\x9b2J", "\rb"]
    assert run("ask", "x")[1] == "a␛]0;title␇�2Jb\n"
    assert json.loads(run("ask", "--json", "x")[1])["answer"] == "a\x1b]0;title\x07\x9b2J\rb"


@pytest.mark.parametrize(
    ("error", "code"), [(ContextTooLong("99 of 64 tokens."), 2), (ChainBroken("X left."), 8)]
)
def test_errors_before_the_answer(run: Run, service: FakeService, error, code: int) -> None:
    service.refuse = error
    got, out, err = run("ask", "x")
    assert (got, out) == (code, "")
    assert err == f"Error: {error.message}\n  {error.remedy}\n"


def test_an_error_in_the_middle_keeps_what_came(run: Run, service: FakeService) -> None:
    service.fail_after = (3, ChainBroken("DESK-3 has left."))
    code, out, err = run("ask", "x")
    assert code == 8
    assert out.endswith("\n")
    assert len(out.split()) == 3
    assert err.startswith("Error: DESK-3 has left.\n")


def test_models_that_are_not_ready_are_not_chosen(run: Run, service: FakeService) -> None:
    ready = service.models[0]
    service.models = (ServedModel("big", 1, 64, ready=False, reason="2 of 9 PCs are ready."), ready)
    assert json.loads(run("ask", "--json", "x")[1])["model"] == "tiny"
    service.models = service.models[:1]
    code, _, err = run("ask", "x")
    assert code == 8
    assert "big cannot answer yet. 2 of 9 PCs are ready." in err
    service.models = ()
    code, _, err = run("ask", "x")
    assert code == 2
    assert "fleetapp serve" in err


def test_another_server_by_url_and_key(
    run: Run, running: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FLEETAPP_HOME", str(tmp_path / "without an agent"))
    assert run("ask", "x")[0] == 8
    for url in (running, f"{running}/", f"{running}/v1", f"{running}/v1/"):
        assert run("ask", "x", "--url", url, "--key", TOKEN)[0] == 0
    monkeypatch.setenv("FLEETAPP_URL", running)
    code, _, err = run("ask", "x")
    assert code == 2
    assert "API key" in err
    monkeypatch.setenv("FLEETAPP_KEY", TOKEN)
    assert run("ask", "x")[0] == 0


@pytest.mark.parametrize(
    ("url", "code"),
    [("ftp://x", 2), ("nonsense", 2), ("http://", 2), ("http://x:99999", 2), ("http://a b", 2),
     ("http://127.0.0.1:1", 8), ("http://no-such-host.invalid", 8)],
)  # fmt: skip
def test_addresses_that_lead_nowhere(run: Run, url: str, code: int) -> None:
    got, _, err = run("ask", "x", "--url", url)
    assert got == code
    assert err.startswith("Error: ")
    assert "Traceback" not in err


@contextmanager
def raw_server(*replies: bytes) -> Iterator[str]:
    """Answers each connection with fixed bytes and closes it."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(10)

    def serve() -> None:
        for reply in replies:
            with listener.accept()[0] as conn:
                conn.recv(65536)
                conn.sendall(reply)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    thread.join(10)
    listener.close()


SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNK = b'data: {"choices": [{"delta": {"content": "Par"}}]}\n\n'


@pytest.mark.parametrize(
    ("reply", "code", "shown", "said"),
    [
        (SSE + b"Content-Length: 9999\r\n\r\n", 8, "", "coordinator has gone"),
        (SSE + b"Connection: close\r\n\r\n" + CHUNK, 8, "Par\n", "coordinator has gone"),
        (b"", 8, "", "coordinator has gone"),
        (SSE + b"Connection: close\r\n\r\ndata: {nonsense\n\n", 7, "", "makes no sense"),
        (SSE + b'Connection: close\r\n\r\ndata: {"choices": 5}\n\n', 7, "", "makes no sense"),
        (SSE + b'Connection: close\r\n\r\ndata: "text"\n\n', 7, "", "makes no sense"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 7, "", "stream of events"),
        (b"HTTP/1.1 302 F\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", 8, "",
         "HTTP status 302"),
        (b"garbage\r\n\r\n", 8, "", "Error: "),
    ],
)  # fmt: skip
def test_servers_that_misbehave(run: Run, reply: bytes, code: int, shown: str, said: str) -> None:
    with raw_server(reply) as url:
        got, out, err = run("ask", "x", "-m", "tiny", "--url", url)
    assert (got, out) == (code, shown)
    assert said in err
    assert "Traceback" not in err


@pytest.mark.parametrize("end", [b"Content-Length: 9999\r\n\r\n", b"Connection: close\r\n\r\n"])
def test_an_agent_that_ends_in_the_middle_is_not_taken_for_the_coordinator(
    run: Run, home: Path, end: bytes
) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(10)
    port = listener.getsockname()[1]

    def killed() -> None:
        conn = listener.accept()[0]
        conn.recv(65536)
        listener.close()
        with conn:
            conn.sendall(SSE + end + CHUNK)

    thread = threading.Thread(target=killed, daemon=True)
    thread.start()
    (home / "agent.json").write_text(json.dumps({"pid": os.getpid(), "port": port}))
    code, _, err = run("ask", "x", "-m", "tiny")
    thread.join(10)
    assert code == 8
    assert "This PC's own agent ended" in err
    assert "coordinator" not in err
    assert "'fleetapp agent'" in err


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT, which Windows has no equal of")
def test_ctrl_c_ends_clean_and_stops_the_fleet_computing(
    running: str, service: FakeService
) -> None:
    held = asyncio.Event()
    service.token_gate = lambda _r, i: held if i == 3 else None
    asking = subprocess.Popen(
        [sys.executable, "-m", "fleetapp.cli", "ask", "x", "--url", running, "--key", TOKEN],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert asking.stdout is not None
    assert asking.stdout.read(1)
    asking.send_signal(signal.SIGINT)
    _, err = asking.communicate(timeout=20)
    assert asking.returncode == 130
    assert b"Traceback" not in err
    deadline = threading.Event()
    for _ in range(100):
        if service.cancelled:
            break
        deadline.wait(0.05)
    assert len(service.cancelled) == 1


@pytest.mark.parametrize("key", ["two\nlines", "nö-key", "a b"])
def test_a_key_that_cannot_be_one_is_not_blamed_on_the_address(
    run: Run, running: str, key: str
) -> None:
    code, _, err = run("ask", "x", "--url", running, "--key", key)
    assert code == 2
    assert "API key has characters" in err


class Slow(FakeService):
    """Begins an answer only after a while in which it says what it is told to say."""

    events: tuple[Queued, ...] = ()

    async def generate(self, model: str, request: Generate) -> AsyncIterator[Event]:
        for event in self.events:
            yield event
        await asyncio.sleep(0.8)
        async for event in super().generate(model, request):
            yield event


@pytest.fixture
def slow(service: FakeService, monkeypatch: pytest.MonkeyPatch) -> Slow:
    """The agent's service; patience ends before its answers begin."""
    monkeypatch.setattr(waiting, "PATIENCE", 0.2)
    service.__class__ = Slow
    assert isinstance(service, Slow)
    return service


def test_it_says_once_that_it_waits_for_pcs(run: Run, slow: Slow) -> None:
    slow.models = (
        ServedModel("tiny", 1, 64, ready=False, reason="2 of 9 PCs are ready.", devices=("A",)),
    )
    code, out, err = run("ask", "-m", "tiny", "x")
    assert code == 0
    assert out.strip()
    assert err == "Waiting for PCs to serve tiny. 2 of 9 PCs are ready.\n"
    assert run("ask", "-m", "tiny", "--json", "x")[2] == ""


def test_it_says_how_far_it_is_in_the_queue(run: Run, slow: Slow) -> None:
    slow.events = (Queued("r", 12), Queued("r", 3))
    code, _, err = run("ask", "-m", "tiny", "x")
    assert code == 0
    assert err == (
        "Waiting: the PCs that serve tiny are busy; this question is number 3 in the queue.\n"
    )


def test_an_answer_that_is_being_computed_is_not_said_to_wait(run: Run, slow: Slow) -> None:
    assert run("ask", "-m", "tiny", "x")[::2] == (0, "")


@pytest.mark.parametrize(
    ("then", "said"),
    [
        (b"", "This PC's own agent ended"),  # killed a moment ago: its port still takes connections
        (b"HTTP/1.1 401 Unauthorized\r\n\r\n", "the coordinator has gone"),
    ],
)
def test_who_has_gone_when_an_answer_breaks_off(
    run: Run, home: Path, then: bytes, said: str
) -> None:
    cut = SSE + b"Connection: close\r\n\r\n" + CHUNK
    with raw_server(cut, then) as url:
        port = int(url.rpartition(":")[2])
        (home / "agent.json").write_bytes(msgspec.json.encode({"pid": os.getpid(), "port": port}))
        code, out, err = run("ask", "x", "-m", "tiny")
    assert (code, out) == (8, "Par\n")
    assert said in err

"""An agent that speaks the loopback API and does nothing else; for the desktop app's tests.

A real HTTP server with server-sent events, in a thread of the test or as a process of its own::

    python -m tests.support.fake_local_api --home DIR [--state not_joined]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

from fleetapp.errors import BadJoinCode, ExpiredJoinCode, FleetError, Unauthorized
from fleetapp.types import AssignmentView, JoinCodeView, LayerRange, LocalStatus, ModelsView
from tests.support.fake_models import FakeModels
from tests.support.fake_pc import FakePc

CODE = "FLEET-7CCKG-JXJEG-64N9Z-RZWJG-M5NWZ-18DGP-70K1F-CRZV0-84C"
GB = 1_000_000_000


def joined_status(**changes: Any) -> LocalStatus:
    """A member of a fleet that is ready, with ``changes``."""
    fields: dict[str, Any] = {
        "version": "0.1.0",
        "device_id": "abcdefghij2345",
        "name": "DESK-12",
        "state": "ready",
        "reason": "Ready to help when the fleet needs this PC.",
        "contribute": False,
        "fleet_id": "fleetfleetfleet",
        "fleet_name": "Office Lisbon",
        "hub": "DESK-01 (192.0.2.10:8485)",
        "api_url": "http://127.0.0.1:8484/v1",
    }
    return LocalStatus(**(fields | changes))


def lonely_status(**changes: Any) -> LocalStatus:
    """Of a PC in no fleet."""
    fields: dict[str, Any] = {
        "version": "0.1.0",
        "device_id": "abcdefghij2345",
        "name": "DESK-12",
        "state": "not_joined",
        "reason": "Join a fleet with a code, or create one.",
        "contribute": False,
    }
    return LocalStatus(**(fields | changes))


def assignment(**changes: Any) -> AssignmentView:
    """The middle third of a model, being downloaded."""
    fields: dict[str, Any] = {
        "device_id": "abcdefghij2345",
        "node": "DESK-12",
        "model": "smollm2-135m-instruct",
        "stage": 1,
        "stages": 3,
        "layers": LayerRange(10, 20),
        "phase": "downloading",
        "done": 43 * GB // 100,
        "total": GB,
    }
    return AssignmentView(**(fields | changes))


class FakeLocalApi:
    """Owns agent.json and api-token of ``home`` while it runs."""

    def __init__(self, home: Path, status: LocalStatus | None = None) -> None:
        self.home = home
        self.token = secrets.token_hex(16)
        self.requests: list[tuple[str, str, Any]] = []
        """Method, path and decoded body, in the order they came."""
        self.refusals: dict[str, FleetError] = {}
        """Path -> the error it answers with."""
        self.held = threading.Event()
        """Cleared, every POST waits (for at most ten seconds) before it is answered."""
        self.held.set()
        self.streams_opened = 0
        self.quit_asked = threading.Event()
        self.models = FakeModels()
        self.pc = FakePc()
        self._status = status or lonely_status()
        self._changed = threading.Condition()
        self._version = 0
        self._closing = False
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def status(self) -> LocalStatus:
        return self._status

    def start(self) -> FakeLocalApi:
        """Listen on a port the system picks, and write the files that say where."""
        agent = self

        class Handler(_Handler):
            fake = agent

        self._closing = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / "api-token").write_text(self.token, encoding="ascii")
        described = {"pid": os.getpid(), "port": self._server.server_address[1]}
        partial = self.home / "agent.json.new"
        partial.write_text(json.dumps(described), encoding="utf-8")
        partial.replace(self.home / "agent.json")
        return self

    def stop(self) -> None:
        """As an agent that ends properly: streams end, files go."""
        if self._server is None or self._thread is None:
            return
        (self.home / "agent.json").unlink(missing_ok=True)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
        self._server = None

    def set_status(self, status: LocalStatus) -> None:
        """Show another status to everybody who listens."""
        with self._changed:
            self._status = status
            self._version += 1
            self._changed.notify_all()

    def set_models(self, view: ModelsView) -> None:
        """Show another model library to everybody who listens."""
        self.models.view = view
        self.changed()

    def changed(self) -> None:
        """Tell everybody who listens that something is different now."""
        with self._changed:
            self._version += 1
            self._changed.notify_all()

    def bodies(self, path: str) -> list[Any]:
        """What was posted to ``path`` so far."""
        return [
            body for method, asked, body in list(self.requests) if (method, asked) == ("POST", path)
        ]

    def answer(self, method: str, path: str, body: Any) -> object:
        """Carry out a request, as simply as the protocol allows."""
        if path in self.refusals:
            raise self.refusals[path]
        match method, path:
            case "GET", "/local/v1/status":
                return self._status
            case "POST", "/local/v1/contribute":
                on = bool(body["on"])
                state = "contributing" if on else "ready"
                reason = "Helping the fleet." if on else "Not contributing."
                self.set_status(
                    msgspec.structs.replace(self._status, contribute=on, state=state, reason=reason)
                )
                return {}
            case "POST", "/local/v1/fleet/join":
                return self._join(str(body["code"]))
            case "POST", "/local/v1/fleet/create":
                self.set_status(joined_status(fleet_name=body["name"], role="coordinator"))
                return {"fleet_id": "fleetfleetfleet", "code": CODE}
            case "POST", "/local/v1/fleet/codes":
                now = time.time()
                return JoinCodeView(
                    "c1",
                    now,
                    now + 3600 * body["hours"],
                    body["uses"],
                    body["approve"],
                    False,
                    CODE,
                )
            case "GET", "/local/v1/models":
                return self.models.view
            case "POST", path if path.startswith("/local/v1/models/") and "start" not in path:
                done = self.models.answer(path.removeprefix("/local/v1/models/"), body)
                self.changed()
                return done
            case "POST", "/local/v1/quit":
                self.quit_asked.set()
                return {}
        return self.pc.answer(method, path, body)

    def stream(self, path: str, body: Any) -> Iterator[bytes] | None:
        """Server-sent events that answer a POST to ``path``, or None for a plain answer."""
        return None

    def _join(self, code: str) -> object:
        if "EXPIRED" in code.upper():
            raise ExpiredJoinCode("This join code has expired.")
        if not code.upper().startswith("FLEET-"):
            raise BadJoinCode("This is not a join code: it must start with FLEET-.")
        self.set_status(joined_status())
        return {}

    def followed(self, path: str) -> object:
        """What the event stream at ``path`` shows now; None if there is none."""
        match path:
            case "/local/v1/events":
                return self._status
            case "/local/v1/models/events":
                return self.models.view
        return None

    def opened(self, path: str) -> None:
        """Somebody listens to the event stream at ``path``."""
        if path == "/local/v1/events":
            self.streams_opened += 1

    def follow(self, path: str, seen: int, seconds: float) -> tuple[int, object] | None:
        """Wait for a change newer than ``seen``; None after ``seconds`` or at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._version > seen, seconds)
            if self._closing or self._version <= seen:
                return None
            return self._version, self.followed(path)

    @property
    def closing(self) -> bool:
        return self._closing


class _Handler(BaseHTTPRequestHandler):
    fake: FakeLocalApi
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.fake.followed(self.path) is not None and self._authorised():
            self._events()
        else:
            self._respond("GET")

    def do_POST(self) -> None:
        self._respond("POST")

    def do_DELETE(self) -> None:
        self._respond("DELETE")

    def log_message(self, *args: Any) -> None:
        """Quiet: what matters is in ``requests``."""

    def _authorised(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {self.fake.token}"

    def _respond(self, method: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"null")
        self.fake.requests.append((method, self.path, body))
        try:
            if not self._authorised():
                raise Unauthorized("This is not the token of this PC's agent.")
            if method == "POST":
                self.fake.held.wait(10)
                events = self.fake.stream(self.path, body)
                if events is not None:
                    self._stream(events)
                    return
            status, answer = 200, self.fake.answer(method, self.path, body)
        except FleetError as error:
            status = error.http_status
            answer = {
                "error": {"message": error.message, "code": error.code, "remedy": error.remedy}
            }
        data = msgspec.json.encode(answer)
        with contextlib.suppress(ConnectionError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def _stream(self, events: Iterator[bytes]) -> None:
        self.close_connection = True
        # closing the generator is what tells it that nobody listens any more
        with contextlib.suppress(ConnectionError), contextlib.closing(events):  # type: ignore[type-var]
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.end_headers()
            for event in events:
                self.wfile.write(event)

    def _events(self) -> None:
        self.fake.opened(self.path)
        self.close_connection = True
        with contextlib.suppress(ConnectionError):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.end_headers()
            seen, shown = -1, None
            while not self.fake.closing:
                news = self.fake.follow(self.path, seen, 15.0)
                if news is not None:
                    seen, now = news
                    if now is None:
                        break
                    if now == shown:
                        continue
                    shown = now
                    self.wfile.write(b"data: " + msgspec.json.encode(now) + b"\n\n")
                elif not self.fake.closing:
                    self.wfile.write(b": keep-alive\n\n")


def main() -> None:
    """Run as a process until asked to quit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", type=Path, default=os.environ.get("FLEETAPP_HOME"))
    parser.add_argument("--state", choices=["not_joined", "ready", "working"], default="not_joined")
    parser.add_argument("--fail", help="say this and end at once, as an agent that cannot start")
    options = parser.parse_args()
    if options.fail:
        print(options.fail, file=sys.stderr)
        sys.exit(1)
    status = {
        "not_joined": lonely_status(),
        "ready": joined_status(),
        "working": joined_status(
            state="contributing",
            contribute=True,
            reason="Helping the fleet.",
            assignments=(assignment(phase="linked", done=GB),),
        ),
    }[options.state]
    agent = FakeLocalApi(Path(options.home), status).start()
    agent.quit_asked.wait()
    agent.stop()


if __name__ == "__main__":
    main()

"""The fake agent with real settings: the schema, the store and the agent's own Preferences decide.

Only the platform is a fake, so that policies and autostart are fields of the test.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import msgspec

from fleetapp.agent.autostart import Autostart
from fleetapp.agent.preferences import Preferences
from fleetapp.platform.fake import FakePlatform
from fleetapp.platform.paths import Paths
from fleetapp.settings import SettingsStore
from fleetapp.types import BundleView, LocalStatus
from tests.support.fake_local_api import FakeLocalApi, joined_status

T = TypeVar("T")


class FakeSettingsApi(FakeLocalApi):
    """See the module; ``platform.policies`` and ``environ`` may be set before ``start``."""

    def __init__(
        self,
        home: Path,
        status: LocalStatus | None = None,
        platform: FakePlatform | None = None,
        environ: dict[str, str] | None = None,
        coordinator: bool = False,
    ) -> None:
        super().__init__(home, status or joined_status())
        self.platform = platform or FakePlatform()
        self._coordinator = coordinator
        self._environ = environ or {}
        self._one_by_one = threading.Lock()
        self.views_read = threading.Event()
        self.views_sent = threading.Event()
        """Cleared, the answer with all settings is made, and waits (for at most ten seconds)."""
        self.views_sent.set()
        self.begin()

    def begin(self) -> None:
        """As an agent that has just started: everything is read, nothing waits."""
        store = SettingsStore(Paths(self.home), self.platform, self._environ)
        self.preferences = Preferences(store, self._settings_changed)
        self.preferences.read_by_fleet(coordinator=self._coordinator)
        self.autostart = Autostart(self.platform, self.home)

    async def _settings_changed(self) -> None:
        on = self.preferences.now.contribute
        self.set_status(msgspec.structs.replace(self.status, contribute=on))

    def answer(self, method: str, path: str, body: Any) -> object:
        parts = urlsplit(path)
        if parts.path in self.refusals:
            raise self.refusals[parts.path]
        language = parse_qs(parts.query).get("language", ["en"])[0]
        with self._one_by_one:
            answer = self._answer(method, parts.path, path, body, language)
        if (method, parts.path) == ("GET", "/local/v1/settings"):
            self.views_read.set()
            self.views_sent.wait(10)
        return answer

    def _answer(self, method: str, plain: str, path: str, body: Any, language: str) -> object:
        calls = self.preferences
        match method, plain:
            case "GET", "/local/v1/settings":
                return _wait(calls.view(language))
            case "POST", "/local/v1/settings":
                return _wait(calls.change(body["name"], body["value"], language))
            case "POST", "/local/v1/settings/reset":
                return _wait(calls.reset(body["name"], language))
            case "GET", "/local/v1/autostart":
                return _wait(self.autostart.view())
            case "POST", "/local/v1/autostart":
                return _wait(self.autostart.set(body["on"]))
            case "POST", "/local/v1/support-bundle":
                Path(body["path"]).write_bytes(b"zip")
                return BundleView(body["path"], 1_234_567, ("README.txt",))
        return super().answer(method, path, body)


def _wait(work: Coroutine[Any, Any, T]) -> T:
    """Each request has a thread and a loop of its own; a lock puts them in a row as one would."""
    return asyncio.run(work)

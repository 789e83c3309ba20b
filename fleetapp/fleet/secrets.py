"""Where a short secret (a passphrase, never a key) is kept: the OS keyring, else a private file.

Three lessons are built in. The backend is named, because keyring's own choice may be one that
writes plain text. Every call runs in a thread of its own with a time-out, because a locked Linux
keyring waits for somebody to answer its prompt. And it is said plainly which of the two it became.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from fleetapp.errors import NotFound, StorageError
from fleetapp.platform import current
from fleetapp.platform.base import Platform
from fleetapp.platform.files import storage_error, write_atomic

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

SERVICE = "fleetapp"
MAX_BYTES = 1024
"""Windows credentials hold 2,560 bytes of UTF-16; a passphrase stays far below."""
TIMEOUT = 10.0


class KeyringUnavailable(Exception):
    """No keyring that may be used, or it does not answer. Never leaves this module."""


@dataclass(frozen=True)
class Kept:
    """Where a secret is, and a sentence that says so to a person."""

    place: Literal["keyring", "file"]
    statement: str


def _in_time(work: Callable[[], _T], timeout: float) -> _T:
    """Run ``work`` in a daemon thread: one that hangs for good must not hold up the exit."""
    outcome: list[_T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as exc:  # noqa: BLE001  (handed to the waiting thread)
            failure.append(exc)

    thread = threading.Thread(target=run, name="keyring", daemon=True)
    thread.start()
    thread.join(timeout)
    if thread.is_alive():
        raise KeyringUnavailable(f"it did not answer within {timeout:.0f} s")
    if failure:
        raise KeyringUnavailable(f"{type(failure[0]).__name__}") from failure[0]
    return outcome[0]


def _system_backend() -> Any:
    """The operating system's own keyring and no other; plaintext, null and fail are never it."""
    candidates: list[Any]
    if sys.platform == "win32":
        from keyring.backends import Windows  # noqa: PLC0415  (imports are slow and per system)

        candidates = [Windows.WinVaultKeyring]
    elif sys.platform == "darwin":
        from keyring.backends import macOS  # noqa: PLC0415

        candidates = [macOS.Keyring]
    else:
        from keyring.backends import SecretService, kwallet  # noqa: PLC0415

        candidates = [SecretService.Keyring, kwallet.DBusKeyring]
    for candidate in candidates:
        # asking for the priority is how keyring tells whether a backend can work here
        if candidate.viable:
            return candidate()
    raise KeyringUnavailable("this system has none that is known to be safe")


class SecretStore:
    """Keeps secrets for one state folder. Calls block up to ``timeout``: use a thread.

    Args:
        folder: where the fallback files and the notes on who keeps what lie (made private).
        platform: the current one if left out.
        environ: ``FLEETAPP_KEYRING=off`` forces the file.
        backend: makes the keyring; the operating system's own if left out.
        timeout: seconds for one keyring call.
    """

    def __init__(
        self,
        folder: Path,
        platform: Platform | None = None,
        environ: Mapping[str, str] | None = None,
        *,
        backend: Callable[[], Any] = _system_backend,
        timeout: float = TIMEOUT,
    ) -> None:
        env = os.environ if environ is None else environ
        self._folder = folder
        self._platform = current() if platform is None else platform
        self._off = env.get("FLEETAPP_KEYRING", "").strip().lower() in ("0", "off", "no", "false")
        self._backend = backend
        self._timeout = timeout

    def store(self, name: str, secret: str) -> Kept:
        """Keep ``secret`` under ``name``, replacing an older one.

        Raises:
            ReadOnly, DiskFull, StorageError: neither place took it.
        """
        if len(secret.encode()) > MAX_BYTES:
            raise StorageError(f"The secret {name} is too long for a keyring.")
        self._platform.make_private_dir(self._folder)
        why = "it is switched off by FLEETAPP_KEYRING"
        if not self._off:
            try:
                self._to_keyring(name, secret)
            except KeyringUnavailable as exc:
                why = str(exc)
            else:
                kept = Kept("keyring", "The secret is kept in the keyring of your account.")
                self._note(name, kept)
                with contextlib.suppress(FileNotFoundError):
                    self._file(name).unlink()
                return kept
        self._platform.write_private(self._file(name), secret.encode())
        kept = Kept(
            "file",
            f"The secret is kept in the file {self._file(name)}, readable by your account only, "
            f"because the system keyring cannot be used: {why}.",
        )
        self._note(name, kept)
        _log.warning("secret kept in a file", extra={"secret_name": name, "why": why})
        return kept

    def load(self, name: str) -> str:
        """The secret kept under ``name``.

        Raises:
            NotFound: there is none.
            StorageError: it is in a keyring that does not give it out now.
        """
        place = self._place(name)
        if place == "file":
            try:
                return self._file(name).read_text(encoding="utf-8")
            except FileNotFoundError as exc:
                raise NotFound(f"The secret {name} is gone from {self._file(name)}.") from exc
            except OSError as exc:
                raise storage_error(exc, self._file(name)) from exc
        try:
            found = _in_time(lambda: self._backend().get_password(SERVICE, name), self._timeout)
        except KeyringUnavailable as exc:
            raise StorageError(
                f"The system keyring does not give out the secret {name} ({exc}).",
                remedy="Unlock the keyring of your account and try again.",
            ) from exc
        if found is None:
            raise NotFound(f"The system keyring no longer holds the secret {name}.")
        return str(found)

    def delete(self, name: str) -> None:
        """Forget ``name`` wherever it is; harmless if it is nowhere."""
        try:
            in_keyring = self._place(name) == "keyring"
        except NotFound:
            in_keyring = False
        if in_keyring:
            try:
                _in_time(lambda: self._backend().delete_password(SERVICE, name), self._timeout)
            except KeyringUnavailable as exc:
                _log.warning("keyring entry not removed", extra={"secret_name": name, "why": exc})
        for path in (self._file(name), self._note_path(name)):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()

    def _to_keyring(self, name: str, secret: str) -> None:
        def work() -> bool:
            backend = self._backend()
            backend.set_password(SERVICE, name, secret)
            # a keyring that loses what it took would lose the fleet
            return bool(backend.get_password(SERVICE, name) == secret)

        if not _in_time(work, self._timeout):
            raise KeyringUnavailable("it does not return what it was given")

    def _place(self, name: str) -> str:
        try:
            return str(json.loads(self._note_path(name).read_text(encoding="utf-8"))["place"])
        except FileNotFoundError as exc:
            raise NotFound(f"No secret {name} is kept in {self._folder}.") from exc
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise StorageError(f"{self._note_path(name)} is damaged.") from exc

    def _note(self, name: str, kept: Kept) -> None:
        write_atomic(self._note_path(name), json.dumps({"place": kept.place}).encode())

    def _file(self, name: str) -> Path:
        return self._folder / f"{_safe(name)}.secret"

    def _note_path(self, name: str) -> Path:
        return self._folder / f"{_safe(name)}.place.json"


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)

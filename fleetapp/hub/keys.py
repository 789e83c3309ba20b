"""API keys: made here, shown once, kept only as hashes.

A key carries 256 random bits, so a plain SHA-256 is enough: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from fleetapp.errors import BadRequest, NotFound, StorageError, Unauthorized
from fleetapp.platform.base import Platform

KEY_PREFIX = "fleet-"
MAX_NAME = 80
MAX_LIMIT = 100_000
SCHEMA = 1


class ApiKeyView(msgspec.Struct, frozen=True):
    """A key as lists show it. ``key`` is filled exactly once, in the answer that makes it."""

    id: str
    name: str
    created: float
    """Unix seconds."""
    key: str = ""
    parallel: int = 0
    """Requests it may have at a time; 0: any number."""
    per_minute: int = 0
    """Requests it may make in a minute; 0: any number."""
    made_by: str = ""
    """Device id of the PC where it was made; empty if that was not noted yet."""
    made_on: str = ""
    """That PC's name."""


class _Stored(msgspec.Struct, frozen=True):
    id: str
    name: str
    created: float
    sha256: str
    parallel: int = 0
    per_minute: int = 0
    made_by: str = ""
    made_on: str = ""

    def view(self) -> ApiKeyView:
        return ApiKeyView(
            self.id,
            self.name,
            self.created,
            "",
            parallel=self.parallel,
            per_minute=self.per_minute,
            made_by=self.made_by,
            made_on=self.made_on,
        )


class _File(msgspec.Struct, frozen=True):
    schema: int
    keys: tuple[_Stored, ...]


class KeyBook:
    """The API keys of a fleet, in one private JSON file.

    Args:
        path: the file; made with the first key.
        platform: writes it so that only its owner can read it.
        now: Unix seconds.

    Raises:
        StorageError: the file is there but cannot be understood.
    """

    def __init__(
        self, path: Path, platform: Platform, now: Callable[[], float] = time.time
    ) -> None:
        self._path = path
        self._platform = platform
        self._now = now
        self._keys = _read(path)

    def create(
        self,
        name: str,
        parallel: int = 0,
        per_minute: int = 0,
        made_by: str = "",
        made_on: str = "",
    ) -> ApiKeyView:
        """Make a key; the returned view is the only place where it can be read.

        Args:
            name: of who will use it.
            parallel: requests it may have at a time; 0 any number.
            per_minute: requests it may make in a minute; 0 any number.
            made_by: device id of the PC where it is made.
            made_on: that PC's name.

        Raises:
            BadRequest: the name is empty, too long or has control characters, or a limit is none.
        """
        for param, value in (("parallel", parallel), ("per_minute", per_minute)):
            if not 0 <= value <= MAX_LIMIT:
                raise BadRequest(
                    f"{param} is {value}, it must be 0 (no limit) to {MAX_LIMIT}.", param=param
                )
        name = name.strip()
        if not name or len(name) > MAX_NAME or not name.isprintable():
            raise BadRequest(
                f"A key needs a name of 1 to {MAX_NAME} printable characters.",
                remedy="Name it after the program or person that will use it.",
                param="name",
            )
        key = KEY_PREFIX + secrets.token_urlsafe(32)
        stored = _Stored(
            secrets.token_hex(4),
            name,
            self._now(),
            _digest(key),
            parallel,
            per_minute,
            made_by,
            made_on,
        )
        self._save((*self._keys, stored))
        return msgspec.structs.replace(stored.view(), key=key)

    def list(self) -> tuple[ApiKeyView, ...]:
        """All keys, oldest first, without the secrets."""
        return tuple(k.view() for k in self._keys)

    def revoke(self, key_id: str) -> None:
        """Forget a key; it is refused from the next request on.

        Raises:
            NotFound: no such key.
        """
        rest = tuple(k for k in self._keys if k.id != key_id)
        if len(rest) == len(self._keys):
            raise NotFound(
                f"There is no API key with the id '{key_id}'.",
                remedy="'fleetapp keys list' shows the ids.",
            )
        self._save(rest)

    def check(self, presented: str) -> ApiKeyView:
        """Whose key this is. Takes the same time whichever key matches, or none.

        Raises:
            Unauthorized: not a key of this fleet.
        """
        digest = _digest(presented)
        found = None
        for stored in self._keys:
            if hmac.compare_digest(stored.sha256, digest):
                found = stored
        if found is None:
            raise Unauthorized("This API key is not known here.")
        return found.view()

    def _save(self, keys: tuple[_Stored, ...]) -> None:
        self._platform.write_private(self._path, msgspec.json.encode(_File(SCHEMA, keys)))
        self._keys = keys


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _read(path: Path) -> tuple[_Stored, ...]:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise StorageError(f"The API keys in {path} cannot be read: {error.strerror}.") from error
    try:
        return msgspec.json.decode(raw, type=_File).keys
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise StorageError(
            f"The API keys in {path} are damaged.",
            remedy="Move that file away and make new keys.",
        ) from error

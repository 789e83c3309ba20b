"""The hub's list of join codes: hashes of secrets only, never the codes themselves."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fleetapp.errors import (
    BadJoinCode,
    BadRequest,
    ExpiredJoinCode,
    NotFound,
    RevokedJoinCode,
    StorageError,
    TooManyAttempts,
    UsedUpJoinCode,
)
from fleetapp.fleet import joincode
from fleetapp.platform import current
from fleetapp.platform.base import Platform
from fleetapp.platform.files import storage_error
from fleetapp.types import DeviceId, JoinCodeView

WRONG_ALLOWED = 5
WRONG_WINDOW = 60.0
"""Wrong secrets from one address within this many seconds before it has to wait."""
MAX_HOURS = 24.0 * 366
MAX_USES = 100_000
_SOURCES = 4096


class _Entry(msgspec.Struct, frozen=True):
    code_id: str
    hash: str
    created: float
    expires: float
    uses: int
    approve: bool
    revoked: bool = False
    used_by: tuple[str, ...] = ()

    def view(self, code: str = "") -> JoinCodeView:
        return JoinCodeView(
            code_id=self.code_id,
            created=self.created,
            expires=self.expires,
            uses_left=max(0, self.uses - len(self.used_by)),
            approve=self.approve,
            revoked=self.revoked,
            code=code,
        )


class _File(msgspec.Struct, frozen=True):
    version: int
    codes: tuple[_Entry, ...]


@dataclass(frozen=True)
class Redeemed:
    """A code was good. With ``approve`` an admin still has to let the device in."""

    code_id: str
    approve: bool


class CodeBook:
    """All codes of one fleet, on disk. Thread-safe; every change is on disk before it counts.

    Args:
        file: JSON, private; made on the first change.
        authority_spki: hex SPKI hash that goes into every code.
        platform: the current one if left out.
        clock: wall clock in seconds since 1970, for expiry.
        monotonic: for limiting wrong attempts.

    Raises:
        StorageError: the file is damaged; it is kept.
    """

    def __init__(
        self,
        file: Path,
        authority_spki: str,
        platform: Platform | None = None,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = file
        self._spki = authority_spki
        self._platform = current() if platform is None else platform
        self._clock = clock
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._wrong: OrderedDict[str, list[float]] = OrderedDict()
        self._codes = self._read()

    def create(self, *, hours: float = 24.0, uses: int = 1, approve: bool = False) -> JoinCodeView:
        """A new code; the answer is the only time that its text can be seen.

        Raises:
            BadRequest: hours or uses make no sense.
        """
        if not 0 < hours <= MAX_HOURS:
            raise BadRequest(f"A join code is valid for more than 0 and at most {MAX_HOURS:.0f} h.")
        if not 1 <= uses <= MAX_USES:
            raise BadRequest(f"A join code can be used 1 to {MAX_USES} times.")
        code = joincode.new(self._spki)
        now = self._clock()
        entry = _Entry(
            code_id=secrets.token_hex(4),
            hash=_hash(code.secret),
            created=now,
            expires=now + hours * 3600,
            uses=uses,
            approve=approve,
        )
        with self._lock:
            self._write((*self._codes, entry))
        return entry.view(joincode.encode(code))

    def views(self) -> tuple[JoinCodeView, ...]:
        """All codes, oldest first, without their secrets."""
        with self._lock:
            return tuple(e.view() for e in self._codes)

    def revoke(self, code_id: str) -> JoinCodeView:
        """End a code at once.

        Raises:
            NotFound: no such code.
        """
        with self._lock:
            for index, entry in enumerate(self._codes):
                if entry.code_id == code_id:
                    return self._put(index, msgspec.structs.replace(entry, revoked=True)).view()
        raise NotFound(f"There is no join code {code_id}.")

    def redeem(self, secret: bytes, device: DeviceId, source: str = "") -> Redeemed:
        """Use a code once for ``device``; the same device may ask again without a second use.

        A member whose answer got lost asks again, so a repeat must not burn the code.

        Args:
            secret: the 10 bytes out of the code.
            device: who asks.
            source: address it asks from, for limiting attempts.

        Raises:
            TooManyAttempts: that address sent too many wrong secrets lately.
            BadJoinCode: unknown. ExpiredJoinCode, UsedUpJoinCode, RevokedJoinCode: as they say.
        """
        with self._lock:
            self._refuse_if_limited(source)
            index = self._find(_hash(secret))
            if index is None:
                self._note_wrong(source)
                raise BadJoinCode("The hub does not know this join code.")
            entry = self._codes[index]
            if entry.revoked:
                raise RevokedJoinCode("This join code was revoked.")
            if self._clock() >= entry.expires:
                raise ExpiredJoinCode("This join code has expired.")
            if device not in entry.used_by:
                if len(entry.used_by) >= entry.uses:
                    raise UsedUpJoinCode("This join code has been used as often as it may be.")
                self._put(index, msgspec.structs.replace(entry, used_by=(*entry.used_by, device)))
            return Redeemed(entry.code_id, entry.approve)

    def _find(self, wanted: str) -> int | None:
        """Compares with every entry in constant time, so that time tells nothing about any."""
        found = None
        for index, entry in enumerate(self._codes):
            if hmac.compare_digest(entry.hash, wanted):
                found = index
        return found

    def _refuse_if_limited(self, source: str) -> None:
        now = self._monotonic()
        recent = [t for t in self._wrong.get(source, ()) if now - t < WRONG_WINDOW]
        if recent:
            self._wrong[source] = recent
        else:
            self._wrong.pop(source, None)
        if len(recent) >= WRONG_ALLOWED:
            raise TooManyAttempts("Too many wrong join codes came from this address.")

    def _note_wrong(self, source: str) -> None:
        self._wrong.setdefault(source, []).append(self._monotonic())
        self._wrong.move_to_end(source)
        while len(self._wrong) > _SOURCES:
            self._wrong.popitem(last=False)

    def _put(self, index: int, entry: _Entry) -> _Entry:
        self._write((*self._codes[:index], entry, *self._codes[index + 1 :]))
        return entry

    def _write(self, codes: tuple[_Entry, ...]) -> None:
        self._platform.make_private_dir(self._file.parent)
        text = msgspec.json.format(msgspec.json.encode(_File(1, codes)), indent=1)
        self._platform.write_private(self._file, text)
        self._codes = codes

    def _read(self) -> tuple[_Entry, ...]:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=_File).codes
        except FileNotFoundError:
            return ()
        except OSError as exc:
            raise storage_error(exc, self._file) from exc
        except msgspec.MsgspecError as exc:
            raise StorageError(
                f"The list of join codes {self._file} is damaged.",
                remedy="Move it away; codes handed out before will no longer work.",
            ) from exc


def _hash(secret: bytes) -> str:
    # 80 random bits need no salt and no slow hash
    return hashlib.sha256(b"fleetapp join secret\0" + secret).hexdigest()

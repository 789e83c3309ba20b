r"""Joining with a code that whoever deployed this PC has left for it.

The per-user installer (``/JOINCODE=``) leaves the file ``join-code`` in the state folder; anybody
may. The per-machine package (``JOINCODE=``) leaves ``HKLM\Software\fleetapp\JoinCode``, for every
user of the PC; a standard user cannot delete that, so it is remembered which code has been used.
A code that was used or refused is not tried again: somebody who left a fleet stays out of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Protocol

from fleetapp.errors import AlreadyMember, BadRequest, FleetError, StorageError, TrustError
from fleetapp.platform.files import write_atomic
from fleetapp.platform.paths import Paths
from fleetapp.types import LocalStatus

log = logging.getLogger("fleetapp.agent.deployed")

FILE: Final = "join-code"
USED: Final = "join-code.used"
REGISTRY_KEY: Final = r"Software\fleetapp"
REGISTRY_VALUE: Final = "JoinCode"
FIRST_PAUSE: Final = 5.0
LONGEST_PAUSE: Final = 600.0
"""Seconds between attempts while no coordinator is found: a laptop may be at home for a week."""
_MAX_BYTES = 4096


class Joining(Protocol):
    """What is asked of the agent."""

    async def status(self) -> LocalStatus: ...

    async def join(self, code: str, hub_address: str = "") -> LocalStatus: ...


def machine_code() -> str:
    """The code for every user of this PC; empty if there is none."""
    if sys.platform == "win32":
        import winreg  # noqa: PLC0415 - this system only

        access = winreg.KEY_READ | winreg.KEY_WOW64_64KEY
        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, REGISTRY_KEY, 0, access) as key:
                return str(winreg.QueryValueEx(key, REGISTRY_VALUE)[0]).strip()
        except OSError:
            return ""
    else:
        return ""


class DeployedJoin:
    """Tries the code until the fleet has answered, whatever it answers.

    Args:
        paths: of the state folder.
        agent: joins.
        machine: reads the code of the PC.
        sleep: waits between attempts.
    """

    def __init__(
        self,
        paths: Paths,
        agent: Joining,
        machine: Callable[[], str] = machine_code,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._file = paths.home / FILE
        self._used = paths.home / USED
        self._agent = agent
        self._machine = machine
        self._sleep = sleep
        self.code = ""
        """What is tried; empty before ``look``, and when there is nothing more to try."""

    async def look(self) -> None:
        """See whether there is a code."""
        self.code = await asyncio.to_thread(self._find)

    async def run(self) -> None:
        """Until there is nothing more to try; ends by itself. After ``look``."""
        try:
            await self._try(self.code)
        finally:
            self.code = ""

    async def _try(self, code: str) -> None:
        pause = FIRST_PAUSE
        while code:
            if (await self._agent.status()).fleet_id:
                log.info("this PC is in a fleet; the code it was deployed with is not needed")
                break
            try:
                await self._agent.join(code)
            except (TrustError, BadRequest, AlreadyMember) as error:
                log.warning("the code this PC was deployed with was refused: %s", error)
                break
            except FleetError as error:
                log.info("not joined with the deployed code yet, again in %.0f s: %s", pause, error)
                await self._sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
                continue
            log.info("joined with the code this PC was deployed with")
            break
        if code:
            await asyncio.to_thread(self._forget, code)

    def _find(self) -> str:
        """A code that has not been used yet, the user's own before the PC's. Blocks shortly."""
        used = _read(self._used)
        for code in (_read(self._file), self._machine()):
            if code and _mark(code) != used:
                return code
        return ""

    def _forget(self, code: str) -> None:
        with contextlib.suppress(OSError):
            self._file.unlink(missing_ok=True)
        try:
            write_atomic(self._used, _mark(code).encode())
        except StorageError as error:
            log.warning("it cannot be remembered that the code was used: %s", error)


def _read(file: Path) -> str:
    """One line; empty if there is none."""
    try:
        return file.read_bytes()[:_MAX_BYTES].decode("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _mark(code: str) -> str:
    """Tells a code from another without keeping it."""
    return hashlib.sha256(code.encode()).hexdigest()

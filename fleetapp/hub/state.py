"""What the coordinator must remember across a restart, in one small file."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fleetapp.errors import StorageError
from fleetapp.platform.base import Platform
from fleetapp.types import Precision

RESTORE = (
    "Restore it from a backup, or use the recovery file on another PC of the fleet "
    "('fleetapp fleet recovery use FILE'), which then coordinates. Without either, leave and "
    "create the fleet anew."
)
"""What to do when the coordinator's state is lost."""


class Wanted(msgspec.Struct, frozen=True):
    """A model that should be served. ``stages == 0`` leaves the number to the planner; ``draft``
    as ``hub.drafts`` reads it.
    """

    model_id: str
    precision: Precision
    stages: int = 0
    draft: str = "auto"


class Pending(msgspec.Struct, frozen=True):
    """A join request that waits for the admin's yes."""

    device_id: str
    name: str
    csr: str
    code_id: str
    asked: float


class Declined(msgspec.Struct, frozen=True):
    """The admin's no to one device and one code; with another code it may ask again."""

    device_id: str
    code_id: str


class HubState(msgspec.Struct, frozen=True):
    fleet_id: str
    name: str
    created: float
    epoch: int = 0
    """Highest chain epoch ever given out; it only rises."""
    caught_up: int | None = None
    """Epoch of the newest membership list of an earlier term that has been taken account of, since
    a recovery file made this PC the coordinator; None if it has founded the fleet.
    """
    wanted: tuple[Wanted, ...] = ()
    pending: tuple[Pending, ...] = ()
    declined: tuple[Declined, ...] = ()
    drained: tuple[str, ...] = ()
    """Devices that an admin has taken out of work."""
    names: dict[str, str] = {}
    """What an admin calls a device, whatever it says of itself."""


class StateFile:
    """Reads and atomically replaces the state."""

    def __init__(self, path: Path, platform: Platform) -> None:
        self._path = path
        self._platform = platform
        self.value: HubState | None = None

    def load(self) -> HubState | None:
        """None if this PC coordinates no fleet.

        Raises:
            StorageError: the file is damaged; it is left as it is.
        """
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise StorageError(
                f"The coordinator's state {self._path} cannot be read: {exc.strerror}."
            ) from exc
        try:
            self.value = msgspec.json.decode(raw, type=HubState)
        except msgspec.MsgspecError as exc:
            raise StorageError(
                f"The coordinator's state {self._path} is damaged: {exc}.",
                remedy=RESTORE,
            ) from exc
        return self.value

    def save(self, value: HubState) -> None:
        """Replace the state on disk before anybody acts on it."""
        self._platform.write_private(self._path, msgspec.json.encode(value))
        self.value = value

    def change(self, **fields: object) -> HubState:
        """Save a copy with some fields replaced."""
        assert self.value is not None
        value: HubState = msgspec.structs.replace(self.value, **fields)
        self.save(value)
        return value

"""A pause that outlives the agent: one small file, with its end by the clock on the wall."""

from __future__ import annotations

import datetime as dt
import logging
from pathlib import Path
from typing import Final, Literal, get_args

import msgspec

from fleetapp.contribution.snapshot import Pause
from fleetapp.errors import BadRequest
from fleetapp.platform.base import Platform

log = logging.getLogger(__name__)

PauseFor = Literal["30m", "1h", "4h", "tomorrow", "forever"]
_HOURS: Final[dict[str, float]] = {"30m": 0.5, "1h": 1.0, "4h": 4.0}
_MORNING: Final = 6
"""Hour of the next day at which "until tomorrow" ends."""


def pause_for(choice: str, now: dt.datetime, *, finish_first: bool = False) -> Pause:
    """The pause that somebody asks for at ``now`` (local time, with its zone).

    Raises:
        BadRequest: there is no such choice.
    """
    if choice in _HOURS:
        end: dt.datetime | None = now + dt.timedelta(hours=_HOURS[choice])
    elif choice == "tomorrow":
        next_day = now + dt.timedelta(days=1)
        end = next_day.replace(hour=_MORNING, minute=0, second=0, microsecond=0)
    elif choice == "forever":
        end = None
    else:
        raise BadRequest(
            f"'{choice}' is no length of a pause.",
            remedy=f"Say one of {', '.join(get_args(PauseFor))}.",
        )
    return Pause(None if end is None else end.timestamp(), finish_first)


class PauseFile:
    """Keeps the pause of this PC.

    Args:
        file: where.
        platform: writes it.
    """

    def __init__(self, file: Path, platform: Platform) -> None:
        self._file = file
        self._platform = platform

    def load(self, wall: float) -> Pause | None:
        """The pause that holds at this wall-clock time.

        A file that cannot be read counts as a pause until somebody resumes: there was one, and
        working against somebody's word would be worse than not working.
        """
        try:
            pause = msgspec.json.decode(self._file.read_bytes(), type=Pause)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as exc:
            log.warning(
                "the pause in %s cannot be read and lasts until resumed: %s", self._file, exc
            )
            return Pause()
        return pause if pause.holds(wall) else None

    def save(self, pause: Pause | None) -> None:
        """Remember it, or that there is none.

        Raises:
            ReadOnly, DiskFull, StorageError: it could not be written.
        """
        if pause is None:
            self._file.unlink(missing_ok=True)
            return
        self._platform.make_private_dir(self._file.parent)
        self._platform.write_private(self._file, msgspec.json.encode(pause))

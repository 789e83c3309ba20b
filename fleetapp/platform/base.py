"""What the rest of the program asks of an operating system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from fleetapp.platform.network import Address
from fleetapp.platform.sensing import Sensors
from fleetapp.platform.startup import Startup

PolicyScope = Literal["machine", "user"]


@dataclass(frozen=True)
class Policy:
    """Settings laid down by an administrator, as found (unchecked), and where they were found."""

    source: str
    values: Mapping[str, object] = field(default_factory=dict)


class Platform(Protocol):
    """One operating system. Every method is quick and blocking; none needs admin rights."""

    @property
    def name(self) -> str:
        """``linux``, ``windows`` or ``fake``."""
        ...

    def memory_total(self) -> int:
        """Bytes of memory this process could use at most, container limits honoured."""
        ...

    def memory_free(self) -> int:
        """Bytes that could be taken now without swapping."""
        ...

    def disk_free(self, path: Path) -> int:
        """Bytes free for this user where ``path`` lies or would lie."""
        ...

    def cpu_name(self) -> str:
        """As the maker calls it; empty if unknown."""
        ...

    def cores(self) -> int:
        """Logical processors this process may use: affinity and container quota honoured."""
        ...

    def machine_facts(self) -> tuple[str, ...]:
        """What differs between two PCs with the same disk image, and stays on each: numbers of the
        installation, of the mainboard, of built-in network cards. Personal: only to be hashed.
        """
        ...

    def addresses(self, *, loopback: bool = False) -> tuple[Address, ...]:
        """Usable unicast addresses, best first; see :func:`fleetapp.platform.network.rank`."""
        ...

    def make_private_dir(self, path: Path) -> None:
        """Create ``path`` (and parents) so that only this user can look inside.

        Raises:
            ReadOnly, DiskFull, StorageError: it cannot be made or written.
        """
        ...

    def write_private(self, path: Path, data: bytes) -> None:
        """Replace ``path`` at once by a file that only this user can read.

        Raises:
            ReadOnly, DiskFull, StorageError: the old content is kept.
        """
        ...

    def lower_priority(self) -> None:
        """Let everything else on this PC go first, from now on, for this process."""
        ...

    def runner_environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Environment for a process that computes, made from another one.

        Where the system can, it gives such a process large pages: reading all weights for every
        token is what decoding is.
        """
        ...

    def sensors(self) -> Sensors:
        """New ones for one reader, who closes them."""
        ...

    def startup(self) -> Startup:
        """Whether the app starts with the user's session.

        Raises:
            StorageError: the system does not tell.
        """
        ...

    def set_startup(self, on: bool, command: Sequence[str]) -> None:
        """Start ``command`` with the user's session, or do not.

        Raises:
            ManagedByPolicy: it starts for all users.
            StorageError: it cannot be written.
        """
        ...

    def policy(self, scope: PolicyScope) -> Policy:
        """What an administrator has laid down.

        Raises:
            BadSetting: there is a policy and it cannot be read; going on without it would be wrong.
        """
        ...

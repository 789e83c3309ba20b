"""What a setting is, without its value: the parts of which :mod:`.schema` declares each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from fleetapp.errors import BadSetting
from fleetapp.settings.kinds import Kind
from fleetapp.types import SettingApplies, SettingSource

Source = SettingSource
"""In rising order of precedence."""

Section = Literal[
    "contributing", "power", "schedule", "limits", "devices", "fleet", "network", "coordinator",
    "computing",
]  # fmt: skip

SECTIONS: Final[Mapping[Section, str]] = MappingProxyType(
    {
        "contributing": "Contributing",
        "power": "Battery and network",
        "schedule": "Schedule",
        "limits": "Limits",
        "devices": "Devices",
        "fleet": "This PC in the fleet",
        "network": "Ports and sharing",
        "coordinator": "Coordinator",
        "computing": "Computing",
    }
)
"""Places of settings in the order in which they are shown."""

METADATA: Final = "fleetapp"
"""Key of what :func:`setting` says of a field."""


@dataclass(frozen=True)
class Origin:
    """Where a value came from: the layer, and the file, key or variable in words."""

    source: Source
    where: str = ""

    @property
    def locked(self) -> bool:
        """Whether an administrator has laid it down."""
        return self.source in ("user policy", "machine policy")


@dataclass(frozen=True)
class Explained:
    """One row of ``fleetapp settings``. ``locked`` by policy means: shown, not changeable."""

    name: str
    value: Any
    default: Any
    help: str
    source: Source
    where: str
    locked: bool


@dataclass(frozen=True)
class Words:
    """What people read of a setting, in English; :mod:`.german` has the German."""

    label: str
    help: str
    nothing: str = ""
    """What 0 or an empty text stands for; empty if that is nothing special."""


@dataclass(frozen=True)
class Setting:
    """The declaration of one setting, without its value."""

    name: str
    kind: Kind
    section: Section
    default: Any
    words: Words
    applies: SettingApplies
    policy_only: bool
    """Makes sense only if an administrator lays it down."""

    @property
    def help(self) -> str:
        """All that is to be said, for where there is no control that says it."""
        said = [self.words.help]
        if self.words.nothing:
            given = "0" if self.kind.name == "number" else "Empty"
            said.append(f"{given}: {self.words.nothing}.")
        if self.kind.options:
            said.append("; ".join(f"{v}: {t}" for v, t in self.kind.options.items()) + ".")
        if self.kind.example:
            said.append(f"Example: {self.kind.example}.")
        return " ".join(said)

    def check(self, raw: object, where: str) -> Any:
        """The typed value.

        Raises:
            BadSetting: names the setting, the value and where it was found.
        """
        try:
            return self.kind.parse(raw)
        except ValueError as exc:
            raise BadSetting(
                f"The setting {self.name} in {where} must be {exc}, but is {raw!r}.",
                remedy="Correct or remove it there.",
            ) from exc

    def accept(self, raw: object) -> Any:
        """The typed value of what somebody wants to set.

        Raises:
            BadSetting: says what would be a value.
        """
        try:
            return self.kind.parse(raw)
        except ValueError as exc:
            raise BadSetting(
                f"The setting {self.name} must be {exc}.", remedy="It was not changed."
            ) from exc


def setting(
    section: Section,
    default: Any,
    kind: Kind,
    label: str,
    help: str,  # noqa: A002 - what everybody calls it
    nothing: str = "",
    *,
    applies: SettingApplies = "now",
    policy_only: bool = False,
) -> Any:
    """A field of a dataclass that is a setting."""
    words = Words(label, help, nothing)
    return field(default=default, metadata={METADATA: (section, kind, words, applies, policy_only)})

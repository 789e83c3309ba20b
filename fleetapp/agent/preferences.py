"""The settings of a running agent: what holds, what waits for its next start, and changing them.

A change by the user acts at once where it can. A change that came another way, as a group policy or
a file that somebody edited, is noticed within ``LOOK_SECONDS``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from fleetapp.errors import BadSetting, FleetError
from fleetapp.settings import SCHEMA, Settings, SettingsStore
from fleetapp.settings.store import known
from fleetapp.settings.view import setting_view, settings_view
from fleetapp.types import SettingsView, SettingView

log = logging.getLogger("fleetapp.agent.preferences")

LOOK_SECONDS = 30.0
_AT_START: Final = frozenset({"local_port", "mdns_interfaces", "devices"})
_BY_MEMBERS: Final = frozenset({"share_shards", "share_port"})
_BY_COORDINATORS: Final = frozenset({"api_host", "api_port", "control_port", "models_dir"})
READ_ONCE: Final = _AT_START | _BY_MEMBERS | _BY_COORDINATORS
"""What is not asked for at each use: the declarations say ``restart`` of exactly these."""


class SettingsCalls(Protocol):
    """What the loopback API may ask. All raise BadSetting if a layer of the settings is broken."""

    async def view(self, language: str) -> SettingsView:
        """Every setting as it is now."""
        ...

    async def change(self, name: str, value: bool | int | str, language: str = "en") -> SettingView:
        """Keep one value of the user's; ManagedByPolicy where an administrator has the word."""
        ...

    async def reset(self, name: str, language: str = "en") -> SettingView:
        """Forget the user's value of one setting."""
        ...


class Preferences:
    """``SettingsCalls`` of one agent.

    Args:
        store: where they are kept.
        changed: awaited after every change.
    """

    def __init__(self, store: SettingsStore, changed: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._changed = changed
        self.now = store.load()
        """What holds, for whoever asks at each use."""
        self._one_by_one = asyncio.Lock()
        """What was read before a change must not be taken for what holds after it."""
        self._in_force: dict[str, Any] = {}
        self._note(_AT_START)

    def read_by_fleet(self, *, coordinator: bool) -> None:
        """The agent has entered a fleet, and read then what it will not ask for again."""
        self._note(_BY_MEMBERS | (_BY_COORDINATORS if coordinator else frozenset()))
        if coordinator:
            for name in _BY_MEMBERS:  # a coordinator serves shards on its control port
                self._in_force.pop(name, None)

    def _note(self, names: frozenset[str]) -> None:
        self._in_force.update({name: getattr(self.now, name) for name in names})

    @property
    def pending(self) -> frozenset[str]:
        """Names of settings that the agent takes over at its next start."""
        return frozenset(
            name
            for name, value in self._in_force.items()
            if getattr(self.now, name) != value
            # who shares no more is asked about it at each request
            and not (name == "share_shards" and value)
        )

    # ------------------------------------------------------------------ SettingsCalls

    async def view(self, language: str) -> SettingsView:
        """Every setting as it is now, also if it was changed elsewhere.

        Raises:
            BadSetting: a layer is broken.
        """
        await self.look()
        return settings_view(self.now, self.pending, language)

    async def change(self, name: str, value: bool | int | str, language: str = "en") -> SettingView:
        """Keep one value of the user's, and act on it.

        Raises:
            BadSetting: no such setting, no such value, or the environment goes before it.
            ManagedByPolicy: an administrator has laid it down.
            StorageError: it cannot be kept.
        """
        typed, origin = known(name).accept(value), self.now.origin(name)
        if origin.source == "environment" and typed != getattr(self.now, name):
            raise BadSetting(
                f"The setting {name} comes from {origin.where}, which goes before the user's own.",
                remedy=f"Take FLEETAPP_{name.upper()} out of it and start the agent again.",
            )
        async with self._one_by_one:
            await self._adopt(await asyncio.to_thread(self._store.set_user, name, value))
        return setting_view(self.now, name, self.pending, language)

    async def reset(self, name: str, language: str = "en") -> SettingView:
        """Forget the user's value. Raises as ``change`` does."""
        async with self._one_by_one:
            await self._adopt(await asyncio.to_thread(self._store.reset_user, name))
        return setting_view(self.now, name, self.pending, language)

    # ------------------------------------------------------------------ changed elsewhere

    async def look(self) -> None:
        """Read all layers again, and act on what differs.

        Raises:
            BadSetting: a layer is broken; what held before goes on to hold.
        """
        async with self._one_by_one:
            await self._adopt(await asyncio.to_thread(self._store.load))

    async def watch(self) -> None:
        """Look now and then, for ever."""
        said = ""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look()
                said = ""
            except FleetError as exc:
                if exc.message != said:  # once, not twice a minute
                    log.warning("the settings stay as they were: %s", exc)
                said = exc.message

    async def _adopt(self, settings: Settings) -> None:
        before, self.now = self.now, settings
        changed = [name for name in SCHEMA if getattr(before, name) != getattr(settings, name)]
        if changed or any(before.origin(name) != settings.origin(name) for name in SCHEMA):
            log.info("settings changed: %s", ", ".join(changed) or "only where they come from")
            await self._changed()

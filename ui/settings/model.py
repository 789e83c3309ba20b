"""What the settings window knows: every setting, what is being saved, what was refused and why."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from PySide6.QtCore import QLocale, QObject, QUrl, Signal

from fleetapp.errors import FleetError
from fleetapp.types import LocalStatus, SectionView, SettingsView, SettingView
from ui.client import AgentClient
from ui.settings.own import NAMES, OwnSettings

Value = bool | int | str
_NOTHING = object()


@dataclass(frozen=True)
class Row:
    """One setting, and how its last change stands."""

    view: SettingView
    saving: bool = False
    error: str = ""
    """Why the last change was refused; the value that was asked for is still in its control."""

    @property
    def locked_by(self) -> str:
        """Who or what goes before the user, or empty."""
        return self.view.where if self.view.locked else ""

    @property
    def from_environment(self) -> bool:
        return self.view.source == "environment"

    @property
    def changeable(self) -> bool:
        """Whether the user has the word."""
        return not self.view.locked and not self.from_environment

    @property
    def resettable(self) -> bool:
        """Whether there is something of the user's to be forgotten."""
        differs = self.view.value != self.view.default or self.view.source == "user"
        return self.changeable and (differs or bool(self.error))


class SettingsModel(QObject):
    """Talks to the agent and to ``OwnSettings``; changes of one setting go out one after the other.

    Args:
        client: of the agent.
        own: the desktop app's own settings.
    """

    loaded = Signal()
    """Rows may have come, gone or changed."""
    changed = Signal(str)
    """This row has."""
    load_failed = Signal(object)
    """A FleetError; what was known before is still shown."""

    def __init__(
        self, client: AgentClient, own: OwnSettings, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._client = client
        self._own = own
        self._rows: dict[str, Row] = {}
        self._agents: SettingsView | None = None
        self._waiting: dict[str, object] = {}
        self._loading = self._again = False
        self._newer: set[str] = set()
        """Names of what was saved since the load under way began: its answer may be older."""
        self._take(own.views())

    # ------------------------------------------------------------------ what there is

    @property
    def sections(self) -> tuple[SectionView, ...]:
        """In the order in which they are shown: this app's own first."""
        return (self._own.section, *(self._agents.sections if self._agents else ()))

    def rows(self, section: str) -> list[Row]:
        """Of one section; what only policies set is shown when one does."""
        return [
            row
            for row in self._rows.values()
            if row.view.section == section and (row.view.locked or not row.view.policy_only)
        ]

    def row(self, name: str) -> Row:
        """The one of this name, which must be known."""
        return self._rows[name]

    @property
    def pending(self) -> tuple[str, ...]:
        """Labels of settings that the agent takes over at its next start."""
        return tuple(row.view.label for row in self._rows.values() if row.view.pending)

    def matches(self, words: str) -> set[str]:
        """Names of settings that have all of these words somewhere; all for no words."""
        wanted = words.casefold().split()
        found = set()
        for section in self.sections:
            for row in self.rows(section.name):
                view = row.view
                options = " ".join(option.label for option in view.options)
                text = f"{view.name} {view.label} {view.help} {section.title} {options}"
                if all(word in text.casefold() for word in wanted):
                    found.add(view.name)
        return found

    # ------------------------------------------------------------------ asking the agent

    def load(self) -> None:
        """Ask for everything; while an answer is awaited, only once more."""
        if self._loading:
            self._again = True
            return
        self._loading, self._again = True, False
        self._newer.clear()
        self._client.get(_with_language("/local/v1/settings"), SettingsView).then(
            self._loaded, self._failed
        )

    def follow(self, status: LocalStatus) -> None:
        """Ask again if the agent says something else than is shown: the tray changes it too."""
        said: dict[str, Value] = {"contribute": status.contribute}
        for device, lent in status.contribution.devices.items():
            said[f"contribute_{device.lower()}"] = lent
        for name, value in said.items():
            row = self._rows.get(name)
            if row is not None and not row.saving and row.view.value != value:
                self.load()
                return

    def set(self, name: str, value: Value) -> None:
        """Save at once, or as soon as what is being saved has been."""
        row = self._rows[name]
        if not row.saving and not row.error and value == row.view.value:
            return
        self._send(name, value)

    def reset(self, name: str) -> None:
        """Forget the user's value; the default holds, or what an administrator has set."""
        self._send(name, None)

    def _send(self, name: str, value: Value | None) -> None:
        row = self._rows[name]
        if row.saving:
            self._waiting[name] = value
            return
        self._put(replace(row, saving=True, error=""))
        if name in NAMES:
            if value is None:
                self._own.reset(name, self._saved, lambda e: self._refused(name, e))
            else:
                self._own.set(name, value, self._saved, lambda e: self._refused(name, e))
            return
        if value is None:
            path, body = "/local/v1/settings/reset", {"name": name}
        else:
            path, body = "/local/v1/settings", {"name": name, "value": value}  # type: ignore[dict-item]
        self._client.post(_with_language(path), body, SettingView).then(
            self._saved, lambda e: self._refused(name, e)
        )

    def _saved(self, view: SettingView) -> None:
        self._newer.add(view.name)
        self._put(Row(view))
        self._send_waiting(view.name)

    def _refused(self, name: str, error: FleetError) -> None:
        self._put(replace(self._rows[name], saving=False, error=str(error)))
        self._send_waiting(name)

    def _send_waiting(self, name: str) -> None:
        value = self._waiting.pop(name, _NOTHING)
        if value is not _NOTHING:
            self._send(name, value)  # type: ignore[arg-type]

    def _loaded(self, view: SettingsView) -> None:
        self._agents = view
        # a system that does not tell about autostart hides no other setting
        self._own.load(self._all_loaded, lambda _: self._all_loaded())

    def _all_loaded(self) -> None:
        assert self._agents is not None
        self._take((*self._own.views(), *self._agents.settings))
        self._ended()
        self.loaded.emit()

    def _failed(self, error: FleetError) -> None:
        self._ended()
        self.load_failed.emit(error)

    def _ended(self) -> None:
        self._loading = False
        if self._again:
            self.load()

    def _take(self, views: Collection[SettingView]) -> None:
        """What is newer, is being saved, or was refused and may be mended, is left alone."""
        before = self._rows
        self._rows = {}
        for view in views:
            row = before.get(view.name)
            if row is not None and (row.saving or row.error or view.name in self._newer):
                self._rows[view.name] = row
            else:
                self._rows[view.name] = Row(view)

    def _put(self, row: Row) -> None:
        self._rows[row.view.name] = row
        self.changed.emit(row.view.name)


def _with_language(path: str) -> str:
    language = bytes(QUrl.toPercentEncoding(QLocale().name()).data()).decode()
    return f"{path}?language={language}"

"""The desktop app's own settings, in the shape of the agent's, so that one window shows both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, QSettings

from fleetapp.errors import BadSetting, FleetError
from fleetapp.types import AutostartView, OptionView, SectionView, SettingView
from ui import preferences
from ui.client import AgentClient

SECTION = "app"
AUTOSTART = "app_autostart"
NOTIFICATIONS = "app_notifications"
LANGUAGE = "app_language"
THEME = "app_theme"
NAMES = (AUTOSTART, NOTIFICATIONS, LANGUAGE, THEME)

Done = Callable[[SettingView], object]
Failed = Callable[[FleetError], object]


@dataclass(frozen=True)
class _Words:
    label: str
    help: str


class OwnSettings(QObject):
    """Autostart is the operating system's, asked through the agent; the rest lies in ``ui.ini``.

    Args:
        client: of the agent.
        settings: ``ui.ini``.
        apply_theme: shows another theme at once.
    """

    def __init__(
        self,
        client: AgentClient,
        settings: QSettings,
        apply_theme: Callable[[str], object],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._client = client
        self._settings = settings
        self._apply_theme = apply_theme
        self._autostart: AutostartView | None = None

    @property
    def section(self) -> SectionView:
        """Where they are shown."""
        return SectionView(SECTION, self.tr("Desktop app"))

    def views(self) -> tuple[SettingView, ...]:
        """All of them as they are; autostart only after the agent has told."""
        return tuple(self._view(n) for n in NAMES if n != AUTOSTART or self._autostart is not None)

    def load(self, done: Callable[[], object], failed: Failed) -> None:
        """Ask for autostart."""

        def told(view: AutostartView) -> None:
            self._autostart = view
            done()

        self._client.get("/local/v1/autostart", AutostartView).then(told, failed)

    def set(self, name: str, value: bool | int | str, done: Done, failed: Failed) -> None:
        """Change one of them; exactly one of the two is called, maybe before this returns."""
        if name == AUTOSTART:

            def told(view: AutostartView) -> None:
                self._autostart = view
                done(self._view(AUTOSTART))

            self._client.post("/local/v1/autostart", {"on": bool(value)}, AutostartView).then(
                told, failed
            )
            return
        key = {
            NOTIFICATIONS: preferences.NOTIFICATIONS,
            LANGUAGE: preferences.LANGUAGE,
            THEME: preferences.THEME,
        }[name]
        self._settings.setValue(key, value)
        self._settings.sync()
        if self._settings.status() != QSettings.Status.NoError:
            failed(
                BadSetting(
                    self.tr("The file {file} cannot be written.").format(
                        file=self._settings.fileName()
                    )
                )
            )
            return
        if name == THEME:
            self._apply_theme(preferences.theme_choice(self._settings))
        done(self._view(name))

    def reset(self, name: str, done: Done, failed: Failed) -> None:
        """Back to the default."""
        self.set(name, self._view(name).default, done, failed)

    def _view(self, name: str) -> SettingView:
        words, value = self._words(name), self._value(name)
        default: bool | str = {AUTOSTART: False, NOTIFICATIONS: True}.get(name, "system")
        locked = name == AUTOSTART and self._autostart is not None and self._autostart.locked
        make = partial(
            SettingView,
            name=name,
            section=SECTION,
            label=words.label,
            help=words.help,
            value=value,
            default=default,
            source="machine policy" if locked else "default" if value == default else "user",
            where=self.tr("an administrator, for all users of this PC") if locked else "",
            locked=locked,
        )
        if isinstance(value, bool):
            return make(kind="switch")
        restart = name == LANGUAGE
        return make(
            kind="choice",
            options=self._options(name),
            applies="restart" if restart else "now",
        )

    def _value(self, name: str) -> bool | str:
        if name == AUTOSTART:
            return self._autostart is not None and self._autostart.on
        if name == NOTIFICATIONS:
            return preferences.notifications_wanted(self._settings)
        if name == LANGUAGE:
            return preferences.language_choice(self._settings)
        return preferences.theme_choice(self._settings)

    def _options(self, name: str) -> tuple[OptionView, ...]:
        system = OptionView("system", self.tr("As the system"))
        if name == LANGUAGE:
            # each in its own language, for those who cannot read the present one
            return (system, OptionView("en", "English"), OptionView("de", "Deutsch"))
        return (
            system,
            OptionView("light", self.tr("Light")),
            OptionView("dark", self.tr("Dark")),
        )

    def _words(self, name: str) -> _Words:
        return {
            AUTOSTART: _Words(
                self.tr("Start when I log in"),
                self.tr(
                    "Start fleetapp with your session, so that this PC can contribute. It is the "
                    "operating system's own switch."
                ),
            ),
            NOTIFICATIONS: _Words(
                self.tr("Notifications"), self.tr("Let the tray icon tell what happens by itself.")
            ),
            LANGUAGE: _Words(
                self.tr("Language"), self.tr("Spoken after the next start of this app.")
            ),
            THEME: _Words(
                self.tr("Theme"),
                self.tr("High contrast of the system goes before it."),
            ),
        }[name]

"""What the settings window knows, without a window: saving, refusing, locks, search."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from fleetapp.errors import NotFound, StorageError
from fleetapp.platform.fake import FakePlatform
from fleetapp.platform.startup import Startup
from tests.support.fake_local_api import joined_status
from tests.support.fake_settings_api import FakeSettingsApi
from ui import preferences
from ui.client import AgentClient
from ui.settings.model import SettingsModel
from ui.settings.own import AUTOSTART, LANGUAGE, NOTIFICATIONS, THEME, OwnSettings


@pytest.fixture
def api(home: Path) -> Iterator[FakeSettingsApi]:
    policies = {"machine": {"on_metered": 1}, "user": {"allow_pause": 0}}
    platform = FakePlatform(policies=policies)  # type: ignore[arg-type]
    fake = FakeSettingsApi(home, platform=platform, environ={"FLEETAPP_THREADS": "2"})
    fake.start()
    yield fake
    fake.held.set()
    fake.stop()


@pytest.fixture
def themes() -> list[str]:
    return []


@pytest.fixture
def model(
    qtbot: QtBot, qapp: QApplication, home: Path, api: FakeSettingsApi, themes: list[str]
) -> SettingsModel:
    model = make(qapp, home, themes)
    with qtbot.waitSignal(model.loaded):
        model.load()
    return model


def make(app: QApplication, home: Path, themes: list[str]) -> SettingsModel:
    client = AgentClient(home, app)
    own = OwnSettings(client, preferences.preferences_of(home), themes.append, app)
    return SettingsModel(client, own, app)


def settled(qtbot: QtBot, model: SettingsModel, name: str) -> None:
    qtbot.waitUntil(lambda: not model.row(name).saving)


def test_every_setting_of_the_agent_and_of_the_app_is_there(model: SettingsModel) -> None:
    sections = [section.name for section in model.sections]
    assert sections[:2] == ["app", "contributing"]
    names = [row.view.name for row in model.rows("app")]
    assert names == [AUTOSTART, NOTIFICATIONS, LANGUAGE, THEME]
    assert len(model.matches("")) > 45


def test_a_change_is_saved_and_can_be_taken_back(
    qtbot: QtBot, model: SettingsModel, api: FakeSettingsApi
) -> None:
    model.set("idle_minutes", 12)
    assert model.row("idle_minutes").saving
    settled(qtbot, model, "idle_minutes")
    row = model.row("idle_minutes")
    assert (row.view.value, row.view.source, row.resettable) == (12, "user", True)
    assert api.preferences.now.idle_minutes == 12
    model.reset("idle_minutes")
    settled(qtbot, model, "idle_minutes")
    assert model.row("idle_minutes").view.value == 5
    assert not model.row("idle_minutes").resettable


def test_what_is_refused_says_why_and_the_old_value_holds(
    qtbot: QtBot, model: SettingsModel
) -> None:
    model.set("hub_address", "nonsense")
    settled(qtbot, model, "hub_address")
    row = model.row("hub_address")
    assert "host:port" in row.error
    assert row.view.value == ""
    with qtbot.waitSignal(model.loaded):
        model.load()
    assert model.row("hub_address").error, "a look at the others does not wipe it away"
    model.set("hub_address", "hub.example.org:8485")
    settled(qtbot, model, "hub_address")
    assert not model.row("hub_address").error


def test_an_answer_from_before_a_change_does_not_undo_it(
    qtbot: QtBot, model: SettingsModel, api: FakeSettingsApi
) -> None:
    api.views_sent.clear()
    api.views_read.clear()
    with qtbot.waitSignal(model.loaded):
        model.load()
        qtbot.waitUntil(api.views_read.is_set)
        model.set("idle_minutes", 9)
        settled(qtbot, model, "idle_minutes")
        api.views_sent.set()
    assert model.row("idle_minutes").view.value == 9


def test_the_last_of_several_quick_changes_is_what_holds(
    qtbot: QtBot, model: SettingsModel, api: FakeSettingsApi
) -> None:
    api.held.clear()
    for minutes in (1, 2, 3, 4):
        model.set("idle_minutes", minutes)
    api.held.set()
    qtbot.waitUntil(lambda: api.preferences.now.idle_minutes == 4)
    settled(qtbot, model, "idle_minutes")
    assert model.row("idle_minutes").view.value == 4
    posted = [body["value"] for _, path, body in api.requests if body and "name" in body]
    assert posted == [1, 4], "one after the other, and what was overtaken is not sent"


def test_policy_and_environment_lock(model: SettingsModel) -> None:
    policy, environment = model.row("on_metered"), model.row("threads")
    assert (policy.changeable, policy.locked_by) == (False, "fake machine policy")
    assert (environment.changeable, environment.from_environment) == (False, True)
    assert not policy.resettable
    assert "allow_pause" in {row.view.name for row in model.rows("contributing")}


def test_what_only_policies_set_is_not_offered_without_one(
    qtbot: QtBot, model: SettingsModel, api: FakeSettingsApi
) -> None:
    api.platform.policies.clear()
    with qtbot.waitSignal(model.loaded):
        model.load()
    assert "allow_pause" not in {row.view.name for row in model.rows("contributing")}


def test_what_waits_for_the_next_start_is_named(qtbot: QtBot, model: SettingsModel) -> None:
    model.set("local_port", 8499)
    settled(qtbot, model, "local_port")
    assert model.pending == ("Loopback port",)
    model.reset("local_port")
    settled(qtbot, model, "local_port")
    assert model.pending == ()


def test_what_the_tray_changes_is_shown_here(
    qtbot: QtBot, model: SettingsModel, api: FakeSettingsApi
) -> None:
    model.follow(joined_status(contribute=False))
    assert not model.row("contribute").view.value
    api.answer("POST", "/local/v1/settings", {"name": "contribute", "value": True})
    with qtbot.waitSignal(model.loaded):
        model.follow(api.status)
    assert model.row("contribute").view.value is True


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("BATTERY", {"on_battery", "battery_floor", "on_metered"}),
        ("battery charge", {"battery_floor"}),
        ("idle_minutes", {"idle_minutes"}),
        ("deutsch", {LANGUAGE}),
        ("no such thing", set()),
    ],
)
def test_search_looks_at_words_of_setting_section_and_options(
    model: SettingsModel, words: str, found: set[str]
) -> None:
    assert model.matches(words) == found


def test_the_words_are_in_the_language_of_the_app(qtbot: QtBot, model: SettingsModel) -> None:
    before = QLocale()
    QLocale.setDefault(QLocale("de_AT"))
    try:
        with qtbot.waitSignal(model.loaded):
            model.load()
    finally:
        QLocale.setDefault(before)
    assert model.row("schedule_days").view.label == "Tage"


def test_the_apps_own_settings_are_kept_beside_its_windows(
    qtbot: QtBot, model: SettingsModel, home: Path, themes: list[str]
) -> None:
    model.set(THEME, "dark")
    model.set(LANGUAGE, "de")
    model.set(NOTIFICATIONS, False)
    kept = preferences.preferences_of(home)
    assert preferences.theme_choice(kept) == "dark"
    assert preferences.language_choice(kept) == "de"
    assert not preferences.notifications_wanted(kept)
    assert themes == ["dark"]
    model.reset(THEME)
    assert themes == ["dark", "system"]
    assert model.row(THEME).view.value == "system"


def test_nonsense_in_ui_ini_counts_as_no_choice(home: Path) -> None:
    (home / "ui.ini").write_text("[ui]\ntheme=pink\nlanguage=xx\n")
    kept = preferences.preferences_of(home)
    assert preferences.theme_choice(kept) == "system"
    assert preferences.language_choice(kept) == "system"


def test_autostart_is_asked_and_switched_through_the_agent(
    qtbot: QtBot, model: SettingsModel, api: FakeSettingsApi
) -> None:
    model.set(AUTOSTART, True)
    settled(qtbot, model, AUTOSTART)
    assert api.platform.starts.on
    assert model.row(AUTOSTART).view.value is True
    api.platform.starts = Startup(False, "switched off in the system's own list")
    with qtbot.waitSignal(model.loaded):
        model.load()
    assert model.row(AUTOSTART).view.value is False


def test_a_system_that_does_not_tell_about_autostart_hides_nothing_else(
    qtbot: QtBot, qapp: QApplication, home: Path, api: FakeSettingsApi, themes: list[str]
) -> None:
    api.refusals["/local/v1/autostart"] = StorageError("The registry cannot be read.")
    model = make(qapp, home, themes)
    with qtbot.waitSignal(model.loaded):
        model.load()
    assert [row.view.name for row in model.rows("app")] == [NOTIFICATIONS, LANGUAGE, THEME]
    assert model.rows("limits")


def test_a_failed_load_says_so_and_the_next_works(
    qtbot: QtBot, model: SettingsModel, api: FakeSettingsApi
) -> None:
    api.refusals["/local/v1/settings"] = NotFound("There is nothing here.")
    with qtbot.waitSignal(model.load_failed):
        model.load()
    assert model.rows("limits"), "what was known is still shown"
    api.refusals.clear()
    with qtbot.waitSignal(model.loaded):
        model.load()

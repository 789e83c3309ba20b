"""The settings window on the screen: controls, locks, errors, search, restart, diagnostics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from fleetapp.errors import DiskFull
from fleetapp.platform.fake import FakePlatform
from tests.support.fake_local_api import joined_status
from tests.support.fake_settings_api import FakeSettingsApi
from ui.diagnostics import DiagnosticsDialog, export_diagnostics, suggested_file
from ui.session import AgentSession
from ui.settings.controls import (
    ChoiceControl,
    DevicesControl,
    FolderControl,
    NumberControl,
    SwitchControl,
    TextControl,
)
from ui.settings.own import THEME
from ui.settings.schedule_controls import DaysControl, HoursControl
from ui.settings.window import SettingsWindow
from ui.theme import DARK, LIGHT, Theme


@pytest.fixture
def api(home: Path) -> Iterator[FakeSettingsApi]:
    platform = FakePlatform(policies={"machine": {"on_metered": 1, "schedule_days": "mon-fri"}})
    fake = FakeSettingsApi(home, platform=platform, environ={"FLEETAPP_THREADS": "2"})
    fake.start()
    yield fake
    fake.held.set()
    fake.stop()


@pytest.fixture
def session(qtbot: QtBot, home: Path, api: FakeSettingsApi) -> Iterator[AgentSession]:
    session = AgentSession(home, ["no-such-program"], delays=(0.0, 0.1))
    session.start()
    qtbot.waitUntil(lambda: session.view.link == "connected")
    yield session
    session.stop()


@pytest.fixture
def window(qtbot: QtBot, qapp: QApplication, session: AgentSession, home: Path) -> SettingsWindow:
    window = SettingsWindow(session, home)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitUntil(lambda: "threads" in window.rows)
    return window


def saved(qtbot: QtBot, window: SettingsWindow, name: str, value: object) -> None:
    qtbot.waitUntil(lambda: window.model.row(name).view.value == value)


def test_switch_number_and_choice_are_saved_as_they_are_made(
    qtbot: QtBot, window: SettingsWindow, api: FakeSettingsApi
) -> None:
    window.show_section("contributing")
    switch = window.rows["contribute"].control
    assert isinstance(switch, SwitchControl)
    qtbot.keyClick(switch.box, Qt.Key.Key_Space)
    saved(qtbot, window, "contribute", True)
    number = window.rows["idle_minutes"].control
    assert isinstance(number, NumberControl)
    assert number.spin.suffix() == " min"
    number.spin.selectAll()
    qtbot.keyClicks(number.spin, "12")
    qtbot.keyClick(number.spin, Qt.Key.Key_Return)
    saved(qtbot, window, "idle_minutes", 12)
    choice = window.rows["contribute_when"].control
    assert isinstance(choice, ChoiceControl)
    choice.combo.setFocus()
    qtbot.keyClick(choice.combo, Qt.Key.Key_Down)
    choice.combo.activated.emit(choice.combo.currentIndex())
    saved(qtbot, window, "contribute_when", "always")
    now = api.preferences.now
    assert (now.contribute, now.idle_minutes, now.contribute_when) == (True, 12, "always")


def test_holding_an_arrow_saves_once(
    qtbot: QtBot, window: SettingsWindow, api: FakeSettingsApi
) -> None:
    number = window.rows["cpu_limit"].control
    assert isinstance(number, NumberControl)
    for _ in range(5):
        number.spin.stepUp()
    saved(qtbot, window, "cpu_limit", 50)
    values = [body["value"] for _, _, body in api.requests if body and "value" in body]
    assert values == [50]


def test_text_is_saved_when_the_cursor_leaves_and_a_refusal_loses_nothing(
    qtbot: QtBot, window: SettingsWindow
) -> None:
    window.show_section("fleet")
    row = window.rows["hub_address"]
    text = row.control
    assert isinstance(text, TextControl)
    text.edit.setFocus()
    qtbot.keyClicks(text.edit, "hub.example.org")
    qtbot.keyClick(text.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(row.notice.isVisible)
    assert "host:port" in row.notice.label.text()
    assert text.edit.text() == "hub.example.org"
    assert row.reset.isVisible()
    qtbot.keyClicks(text.edit, ":8485")
    window.rows["node_name"].control.setFocus()
    saved(qtbot, window, "hub_address", "hub.example.org:8485")
    assert not row.notice.isVisible()
    row.reset.click()
    saved(qtbot, window, "hub_address", "")
    assert text.edit.text() == ""
    assert not row.reset.isVisible()


def test_days_hours_and_devices_have_controls_of_their_own(
    qtbot: QtBot, window: SettingsWindow, api: FakeSettingsApi
) -> None:
    api.platform.policies.clear()
    window.show_section("schedule")
    with qtbot.waitSignal(window.model.loaded):
        window.model.load()
    days = window.rows["schedule_days"].control
    assert isinstance(days, DaysControl)
    for weekend in (5, 6):
        days.buttons[weekend].click()
    saved(qtbot, window, "schedule_days", "mon-fri")
    hours = window.rows["schedule_hours"].control
    assert isinstance(hours, HoursControl)
    assert hours.nothing.isVisible()
    hours.more.click()
    saved(qtbot, window, "schedule_hours", "18:00-08:00")
    hours.rows[0].stop.setTime(hours.rows[0].start.time())
    hours.rows[0].stop.editingFinished.emit()
    qtbot.waitUntil(window.rows["schedule_hours"].notice.isVisible)
    hours.rows[0].stop.setTime(hours.rows[0].start.time().addSecs(3600))
    hours.rows[0].stop.editingFinished.emit()
    saved(qtbot, window, "schedule_hours", "18:00-19:00")
    hours.rows[0].remove.click()
    saved(qtbot, window, "schedule_hours", "")
    devices = window.rows["devices"].control
    assert isinstance(devices, DevicesControl)
    devices.boxes["NPU"].click()
    saved(qtbot, window, "devices", "CPU,GPU")
    devices.boxes["NPU"].click()
    saved(qtbot, window, "devices", "")


def test_a_folder_can_be_chosen(qtbot: QtBot, window: SettingsWindow, tmp_path: Path) -> None:
    window.show_section("coordinator")
    folder = window.rows["models_dir"].control
    assert isinstance(folder, FolderControl)
    folder.browse.click()
    assert folder.dialog is not None
    folder.dialog.fileSelected.emit(str(tmp_path))
    folder.dialog.reject()
    saved(qtbot, window, "models_dir", str(tmp_path))
    assert folder.edit.text() == str(tmp_path)


def test_a_folder_that_cannot_be_used_is_refused_in_words(
    qtbot: QtBot, window: SettingsWindow, tmp_path: Path
) -> None:
    window.show_section("coordinator")
    row = window.rows["models_dir"]
    assert isinstance(row.control, FolderControl)
    file = tmp_path / "file"
    file.touch()
    row.control.edit.setText(str(file))
    row.control.flush()
    qtbot.waitUntil(lambda: "Choose a folder that you can write to." in row.notice.label.text())
    assert row.control.edit.text() == str(file), "what was typed can be mended"


def test_policy_and_environment_are_shown_and_cannot_be_changed(window: SettingsWindow) -> None:
    window.show_section("power")
    locked = window.rows["on_metered"]
    assert locked.manager.text() == "Managed by fake machine policy."
    assert locked.managed.isVisible()
    assert not locked.lock.pixmap().isNull()
    assert not locked.control.isEnabled()
    assert not locked.reset.isVisible()
    window.show_section("computing")
    assert "FLEETAPP_THREADS" in window.rows["threads"].manager.text()
    assert not window.rows["threads"].control.isEnabled()


def test_a_policy_that_comes_while_the_window_is_open_is_seen_at_the_next_try(
    qtbot: QtBot, window: SettingsWindow, api: FakeSettingsApi
) -> None:
    window.show_section("power")
    api.platform.policies["machine"] = {"on_battery": 0}
    row = window.rows["on_battery"]
    assert isinstance(row.control, SwitchControl)
    row.control.box.click()
    qtbot.waitUntil(row.notice.isVisible)
    assert "managed by fake machine policy" in row.notice.label.text()


def test_what_only_a_policy_sets_comes_and_goes_with_it(
    qtbot: QtBot, window: SettingsWindow, api: FakeSettingsApi
) -> None:
    window.show_section("contributing")
    assert "allow_pause" not in window.rows
    api.platform.policies["machine"] = {"allow_pause": 0}
    window.model.load()
    qtbot.waitUntil(lambda: "allow_pause" in window.rows)
    assert window.rows["allow_pause"].isVisible()
    api.platform.policies.clear()
    window.model.load()
    qtbot.waitUntil(window.rows["allow_pause"].isHidden)


def test_search_shows_what_it_finds_in_its_sections(qtbot: QtBot, window: SettingsWindow) -> None:
    window.start_search()
    qtbot.keyClicks(window.search, "port")
    qtbot.waitUntil(window.rows["api_port"].isVisible)
    assert window.rows["data_port"].isVisible()
    assert not window.rows["idle_minutes"].isVisible()
    assert not window.sections.selectedItems()
    window.search.setText("xyzzy")
    qtbot.waitUntil(window.nothing.isVisible)
    qtbot.keyClick(window.search, Qt.Key.Key_Escape)
    assert window.search.text() == ""
    qtbot.waitUntil(window.rows["app_theme"].isVisible)
    window.search.setText("upload")
    qtbot.keyClick(window.search, Qt.Key.Key_Return)
    control = window.rows["upload_limit_mbit"].control
    assert isinstance(control, NumberControl)
    assert control.spin.hasFocus()


def test_a_change_that_waits_offers_a_restart_and_says_what_it_interrupts(
    qtbot: QtBot, window: SettingsWindow, api: FakeSettingsApi, session: AgentSession
) -> None:
    assert not window.restart_bar.isVisible()
    window.model.set("local_port", 8499)
    qtbot.waitUntil(window.restart_bar.isVisible)
    assert "Loopback port" in window.restart_words.text()
    window.restart.click()
    question = window.question
    assert question is not None
    assert "Nothing is under way" in question.informativeText()
    later = [b for b in question.buttons() if "Later" in b.text()]
    later[0].click()
    assert api.bodies("/local/v1/quit") == []
    api.set_status(joined_status(role="coordinator"))
    qtbot.waitUntil(
        lambda: session.view.status is not None and session.view.status.role == "coordinator"
    )
    window.restart.click()
    question = window.question
    assert question is not None
    assert "coordinates the fleet" in question.informativeText()
    now = next(b for b in question.buttons() if "Restart now" in b.text())
    now.click()
    qtbot.waitUntil(api.quit_asked.is_set)
    api.stop()
    qtbot.waitUntil(lambda: session.view.link != "connected" or not window.restart_bar.isVisible())
    api.begin()
    api.start()
    qtbot.waitUntil(lambda: session.view.link == "connected", timeout=20_000)
    qtbot.waitUntil(lambda: not window.model.pending, timeout=10_000)
    assert not window.restart_bar.isVisible()


def test_without_an_agent_only_the_apps_own_settings_can_be_changed(
    qtbot: QtBot, window: SettingsWindow, api: FakeSettingsApi, session: AgentSession
) -> None:
    api.stop()
    qtbot.waitUntil(lambda: not window.rows["threads"].isEnabled(), timeout=20_000)
    qtbot.waitUntil(window.notice.isVisible)
    assert window.rows[THEME].isEnabled()
    assert not window.export.isEnabled()


def test_the_theme_changes_at_once(
    qtbot: QtBot, qapp: QApplication, window: SettingsWindow
) -> None:
    theme = Theme(qapp)
    before = qapp.palette()
    try:
        for choice, colours in (("dark", DARK), ("light", LIGHT)):
            combo = window.rows[THEME].control
            assert isinstance(combo, ChoiceControl)
            index = combo.combo.findData(choice)
            combo.combo.setCurrentIndex(index)
            combo.combo.activated.emit(index)
            saved(qtbot, window, THEME, choice)
            assert qapp.palette().window().color().name() == colours.window
    finally:
        theme.choose("system")
        theme.deleteLater()
        qapp.setStyleSheet("")
        qapp.setPalette(before)


def test_what_is_typed_is_saved_when_the_window_closes(
    qtbot: QtBot, window: SettingsWindow, api: FakeSettingsApi
) -> None:
    window.show_section("contributing")
    number = window.rows["idle_minutes"].control
    assert isinstance(number, NumberControl)
    number.spin.setValue(33)
    with qtbot.waitSignal(window.closed):
        window.close()
    qtbot.waitUntil(lambda: api.preferences.now.idle_minutes == 33)


def test_every_control_has_a_name_and_can_be_reached_by_keyboard(window: SettingsWindow) -> None:
    for section in [s.name for s in window.model.sections]:
        window.show_section(section)
        for row in (window.rows[r.view.name] for r in window.model.rows(section)):
            fields = [w for w in row.control.findChildren(QWidget) if w.focusPolicy()]
            assert fields or not row.control.isEnabled()
            for field in fields:
                inner = field.parentWidget() is not row.control and not isinstance(
                    field, QPushButton
                )
                interface = QAccessible.queryAccessibleInterface(field)
                named = interface.text(QAccessible.Text.Name)
                assert named or inner, f"{row.name}: {field}"


def test_diagnostics_are_written_where_the_person_says(
    qtbot: QtBot,
    window: SettingsWindow,
    session: AgentSession,
    tmp_path: Path,
    api: FakeSettingsApi,
) -> None:
    dialog = export_diagnostics(session, window)
    assert dialog.isVisible()
    dialog.save.click()
    assert dialog.chooser is not None
    target = tmp_path / "José.zip"
    api.held.clear()
    dialog.chooser.fileSelected.emit(str(target))
    dialog.chooser.reject()
    assert dialog.bar.isVisible()
    assert not dialog.save.isEnabled()
    api.held.set()
    qtbot.waitUntil(dialog.written.isVisible)
    assert dialog.written.field.text() == str(target)
    assert api.bodies("/local/v1/support-bundle") == [{"path": str(target)}]
    assert "1.2 MiB" in dialog.progress.text()
    dialog.reject()


def test_the_dialog_needs_no_window_and_shows_all_its_words(
    qtbot: QtBot, session: AgentSession, tmp_path: Path
) -> None:
    export_diagnostics(session, None)
    dialog = next(w for w in QApplication.topLevelWidgets() if isinstance(w, DiagnosticsDialog))

    def whole() -> bool:
        labels = [label for label in dialog.findChildren(QLabel) if label.isVisible()]
        return bool(labels) and all(
            label.height() >= label.heightForWidth(label.width()) for label in labels
        )

    qtbot.waitUntil(whole)
    dialog.write(str(tmp_path / "x.zip"))
    qtbot.waitUntil(dialog.written.isVisible)
    qtbot.waitUntil(whole)
    dialog.reject()


def test_a_full_disk_is_said_and_another_place_can_be_tried(
    qtbot: QtBot,
    window: SettingsWindow,
    session: AgentSession,
    tmp_path: Path,
    api: FakeSettingsApi,
) -> None:
    api.refusals["/local/v1/support-bundle"] = DiskFull("There is no room left.")
    dialog = export_diagnostics(session, window)
    dialog.write(str(tmp_path / "a.zip"))
    qtbot.waitUntil(dialog.notice.isVisible)
    assert "no room left" in dialog.notice.label.text()
    assert dialog.save.isEnabled()
    api.refusals.clear()
    dialog.write(str(tmp_path / "b.zip"))
    qtbot.waitUntil(dialog.written.isVisible)
    assert not dialog.notice.isVisible()
    dialog.reject()


def test_a_file_name_is_suggested_in_a_folder_that_exists() -> None:
    file = Path(suggested_file())
    assert file.parent.is_dir()
    assert file.suffix == ".zip"

"""What tray and window show and do."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import get_args

import pytest
from PySide6.QtCore import QLocale, QPoint, Qt
from PySide6.QtGui import QAccessible, QAction
from PySide6.QtWidgets import (
    QApplication,
    QLabel,
    QLineEdit,
    QPushButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from fleetapp.errors import FleetError
from fleetapp.types import ContributionView, LocalStatus
from tests.support.fake_local_api import (
    CODE,
    GB,
    FakeLocalApi,
    assignment,
    joined_status,
    lonely_status,
)
from tests.support.fake_pc import DEVICES, hardware
from ui.app import _use_state_option
from ui.boxes import bring_up
from ui.desktop import Desktop
from ui.endpoint import default_home
from ui.fleet_dialogs import CreateDialog, InviteDialog, JoinDialog
from ui.icons import state_icon
from ui.language import Language
from ui.theme import DARK, DARK_CODE, LIGHT, LIGHT_CODE, CodeColours, Colours, Theme
from ui.view import AgentView, IconName


def show(qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi, status: LocalStatus) -> None:
    """Let the agent say ``status`` and wait until it is on the screen."""
    agent.set_status(status)
    qtbot.waitUntil(lambda: desktop.session.view.status == status)
    reason = desktop.window.findChildren(QLabel)
    qtbot.waitUntil(lambda: any(label.text() == status.reason for label in reason))


def offered(desktop: Desktop) -> set[QAction]:
    return {a for a in desktop.actions.menu.actions() if a.isVisible() and not a.isSeparator()}


def is_icon(desktop: Desktop, name: str, percent: int | None = None) -> bool:
    wanted = state_icon(name, percent)  # type: ignore[arg-type]
    return desktop.tray.icon.icon().cacheKey() == wanted.cacheKey()


@pytest.mark.parametrize(
    ("status", "icon", "tooltip"),
    [
        (
            lonely_status(),
            "not_joined",
            "Not in a fleet · Join a fleet with a code, or create one.",
        ),
        (
            joined_status(state="connecting", reason="Looking."),
            "connecting",
            "Connecting · Looking.",
        ),
        (joined_status(reason="Idle."), "ready", "Ready · Idle."),
        (
            joined_status(
                contribute=True,
                reason="Paused on battery.",
                contribution=ContributionView(reason="on_battery", sentence="Paused on battery."),
            ),
            "paused",
            "Paused on battery.",
        ),
        (
            joined_status(
                reason="Contributing is switched off by Contoso IT.",
                contribution=ContributionView(reason="managed", contribute_by="Contoso IT"),
            ),
            "off",
            "Off by policy · Contributing is switched off by Contoso IT.",
        ),
        (
            joined_status(
                state="contributing",
                reason="Finishing running answers, then pausing.",
                contribution=ContributionView(reason="draining", draining=True),
            ),
            "contributing",
            "Finishing · Finishing running answers, then pausing.",
        ),
        (
            joined_status(state="contributing", reason="Helping."),
            "contributing",
            "Contributing · Helping.",
        ),
        (
            joined_status(state="attention", reason="The clock is wrong."),
            "attention",
            "Needs attention · The clock is wrong.",
        ),
    ],
)
def test_each_state_has_its_icon_and_says_why(
    qtbot: QtBot,
    desktop: Desktop,
    agent: FakeLocalApi,
    status: LocalStatus,
    icon: str,
    tooltip: str,
) -> None:
    show(qtbot, desktop, agent, status)
    assert is_icon(desktop, icon)
    assert desktop.tray.icon.toolTip() == tooltip
    assert desktop.actions.status.text() == tooltip


def test_states_can_be_told_without_their_colours(qapp: QApplication) -> None:
    names = get_args(IconName)
    drawings = set()
    for name in names:
        image = state_icon(name).pixmap(32, 32).toImage()
        pixels = [image.pixelColor(x, y) for y in range(32) for x in range(32)]
        # black, white or nothing: what is left of an icon for somebody who sees no colours
        drawings.add(tuple(p.alpha() > 128 and 1 + p.lightness() // 200 for p in pixels))
    assert len(drawings) == len(names)


def test_preparing_fills_the_ring_and_shows_bytes(
    qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi
) -> None:
    shards = (assignment(done=GB // 2),)
    show(qtbot, desktop, agent, joined_status(state="preparing", assignments=shards))
    assert is_icon(desktop, "preparing", 50)
    assert not is_icon(desktop, "preparing", 0)
    texts = [label.text() for label in desktop.window.findChildren(QLabel)]
    assert "smollm2-135m-instruct · Stage 2 of 3 · layers 10-19" in texts
    assert "Downloading · 476.8 MiB of 953.7 MiB" in texts


def test_shards_that_are_gone_leave_the_window(
    qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi
) -> None:
    both = (assignment(stage=0), assignment(stage=1))
    show(qtbot, desktop, agent, joined_status(state="preparing", assignments=both))
    show(qtbot, desktop, agent, joined_status(reason="Idle."))

    def shards() -> list[str]:
        labels = desktop.window.findChildren(QLabel)
        return [label.text() for label in labels if "Stage" in label.text()]

    qtbot.waitUntil(lambda: not shards())


def test_only_what_can_be_done_is_offered(
    qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi
) -> None:
    actions = desktop.actions
    always = {
        actions.status, actions.chat, actions.this_pc, actions.settings, actions.export,
        actions.about, actions.quit,
    }  # fmt: skip
    assert offered(desktop) == always | {actions.set_up, actions.join, actions.create}
    show(qtbot, desktop, agent, joined_status())
    assert offered(desktop) == always | {actions.contribute, actions.leave}
    gives = {actions.contribute, actions.pause, actions.finish, actions.leave}
    show(qtbot, desktop, agent, joined_status(contribute=True, reason="Helps."))
    assert offered(desktop) == always | gives
    paused = ContributionView(reason="paused", sentence="Paused.", paused=True)
    show(qtbot, desktop, agent, joined_status(contribute=True, contribution=paused))
    assert offered(desktop) == always | {actions.contribute, actions.resume, actions.leave}
    show(qtbot, desktop, agent, joined_status(role="coordinator", reason="In charge."))
    runs = {actions.contribute, actions.invite, actions.fleet}
    assert offered(desktop) == always | runs


def test_a_fleet_is_left_after_a_yes(qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi) -> None:
    show(qtbot, desktop, agent, joined_status())
    desktop.actions.leave.trigger()
    box = desktop.boxes.current
    assert box is not None
    assert box.isVisible()
    left = next(b for b in box.buttons() if "Leave" in b.text())
    qtbot.mouseClick(left, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: any("fleet/leave" in str(asked) for asked in agent.requests))


def test_a_policy_is_shown_where_it_forbids(
    qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi
) -> None:
    laid_down = ContributionView(
        on=True, reason="contributing", may_pause=False,
        contribute_by="Contoso & Sons", pause_by="Contoso & Sons",
    )  # fmt: skip
    status = joined_status(contribute=True, reason="Helps.", contribution=laid_down)
    show(qtbot, desktop, agent, status)
    actions, window = desktop.actions, desktop.window
    desktop.show_window()
    for action, text in (
        (actions.contribute, "&Contribute idle AI time (managed by Contoso && Sons)"),
        (actions.pause, "&Pause (managed by Contoso && Sons)"),
    ):
        assert action.isVisible()
        assert not action.isEnabled()
        assert action.text() == text
    assert not window.contribute.isEnabled()
    assert not window.pause.isEnabled()
    assert not actions.finish.isVisible()


@pytest.mark.parametrize("length", ["30m", "1h", "4h", "tomorrow", "forever"])
def test_a_pause_is_asked_for_as_long_as_was_chosen(
    qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi, length: str
) -> None:
    show(qtbot, desktop, agent, joined_status(contribute=True, reason="Helps."))
    desktop.actions.pauses[length].trigger()
    qtbot.waitUntil(lambda: bool(agent.bodies("/local/v1/pause")))
    assert agent.bodies("/local/v1/pause") == [{"length": length, "finish_first": False}]


def test_pausing_from_the_window_and_resuming(
    qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi
) -> None:
    show(qtbot, desktop, agent, joined_status(contribute=True, reason="Helps."))
    desktop.show_window()
    qtbot.mouseClick(desktop.window.finish, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(agent.bodies("/local/v1/pause")))
    assert agent.bodies("/local/v1/pause") == [{"length": "forever", "finish_first": True}]
    paused = ContributionView(reason="paused", sentence="Paused until 14:30.", paused=True)
    said = joined_status(contribute=True, reason="Paused until 14:30.", contribution=paused)
    show(qtbot, desktop, agent, said)
    assert is_icon(desktop, "paused")
    assert desktop.tray.icon.toolTip() == "Paused until 14:30."
    assert desktop.window.pause.isHidden()
    qtbot.mouseClick(desktop.window.resume, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(agent.bodies("/local/v1/resume")))


def test_devices_that_are_there_can_be_lent_or_not(
    qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi
) -> None:
    agent.pc.hardware = hardware(devices=DEVICES[:2])
    lent = ContributionView(on=True, reason="contributing", devices={"CPU": True, "GPU": False})
    status = joined_status(contribute=True, reason="Helps.", contribution=lent)
    show(qtbot, desktop, agent, status)
    desktop.show_window()
    ticks = desktop.window.devices.ticks
    qtbot.waitUntil(ticks["GPU"].isVisible)
    assert ticks["CPU"].isChecked()
    assert not ticks["GPU"].isChecked()
    assert not ticks["NPU"].isVisible()
    qtbot.keyClick(ticks["GPU"], Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: bool(agent.bodies("/local/v1/lend")))
    assert agent.bodies("/local/v1/lend") == [{"device": "GPU", "on": True}]
    assert not ticks["GPU"].isChecked(), "not before the agent says so"
    memory = "The fleet's programs take 381.5 MiB of this PC's memory; 11.2 GiB more are for it."
    assert memory in [label.text() for label in desktop.window.findChildren(QLabel)]


def test_contribute_asks_the_agent_and_shows_its_answer(
    qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi
) -> None:
    show(qtbot, desktop, agent, joined_status())
    agent.held.clear()
    desktop.actions.contribute.trigger()
    assert not desktop.actions.contribute.isChecked(), "not before the agent says so"
    agent.held.set()
    qtbot.waitUntil(desktop.actions.contribute.isChecked)
    assert agent.bodies("/local/v1/contribute") == [{"on": True}]
    assert is_icon(desktop, "contributing")
    desktop.show_window()
    qtbot.keyClick(desktop.window.contribute, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: not desktop.window.contribute.isChecked())
    assert agent.bodies("/local/v1/contribute") == [{"on": True}, {"on": False}]


def test_a_refused_wish_is_said_and_nothing_pretends(
    qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi
) -> None:
    show(qtbot, desktop, agent, joined_status())
    agent.refusals["/local/v1/contribute"] = FleetError("Policy forbids it.", remedy="Ask IT.")
    desktop.actions.contribute.trigger()
    qtbot.waitUntil(lambda: desktop.window.notice.label.text() == "Policy forbids it. Ask IT.")
    assert not desktop.actions.contribute.isChecked()


def test_the_window_says_where_programs_find_the_api(
    qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi
) -> None:
    show(qtbot, desktop, agent, joined_status())
    desktop.show_window()
    field = desktop.window.api_field
    assert field.field.text() == "http://127.0.0.1:8484/v1"
    qtbot.mouseClick(field.button, Qt.MouseButton.LeftButton)
    assert QApplication.clipboard().text() == "http://127.0.0.1:8484/v1"
    assert field.button.text() == "Copied"


def test_joining_shows_progress_and_ends_with_the_fleets_name(
    qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi
) -> None:
    desktop.actions.join.trigger()
    dialog = desktop.dialog
    assert isinstance(dialog, JoinDialog)
    assert not dialog.join.isEnabled()
    qtbot.keyClicks(dialog.code, " FLEET-GOOD ")
    agent.held.clear()
    qtbot.keyClick(dialog.code, Qt.Key.Key_Return)
    assert dialog.bar.isVisible()
    assert not dialog.join.isEnabled()
    agent.held.set()
    qtbot.waitUntil(
        lambda: any("“Office Lisbon”" in label.text() for label in dialog.findChildren(QLabel))
    )
    assert agent.bodies("/local/v1/fleet/join") == [{"code": "FLEET-GOOD"}]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("FLEET-EXPIRED", "This join code has expired. Ask the admin for a new one."),
        ("hello", "This is not a join code: it must start with FLEET-. Check it character by"),
    ],
)
def test_a_refused_code_is_said_in_the_dialog_and_can_be_mended(
    qtbot: QtBot, desktop: Desktop, code: str, said: str
) -> None:
    desktop.actions.join.trigger()
    dialog = desktop.dialog
    assert isinstance(dialog, JoinDialog)
    dialog.code.setText(code)
    dialog.submit()
    qtbot.waitUntil(lambda: dialog.notice.label.text().startswith(said))
    assert dialog.join.isEnabled()
    dialog.code.setText("FLEET-GOOD")
    dialog.submit()
    assert not dialog.notice.isVisible()
    qtbot.waitUntil(dialog.code.isReadOnly)


def test_cancelling_a_join_under_way_closes_at_once(
    qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi
) -> None:
    agent.held.clear()
    desktop.actions.join.trigger()
    dialog = desktop.dialog
    assert isinstance(dialog, JoinDialog)
    dialog.code.setText("FLEET-GOOD")
    dialog.submit()
    dialog.reject()
    assert desktop.dialog is None


def test_creating_a_fleet_ends_with_a_code_to_copy(
    qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi
) -> None:
    desktop.actions.create.trigger()
    dialog = desktop.dialog
    assert isinstance(dialog, CreateDialog)
    dialog.name.setText("Office")
    dialog.submit()
    qtbot.waitUntil(lambda: hasattr(dialog, "code"))
    qtbot.mouseClick(dialog.code.button, Qt.MouseButton.LeftButton)
    assert QApplication.clipboard().text() == CODE
    assert agent.bodies("/local/v1/fleet/create") == [{"name": "Office"}]


def test_a_coordinator_can_make_another_code(
    qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi
) -> None:
    show(qtbot, desktop, agent, joined_status(role="coordinator", reason="In charge."))
    desktop.actions.invite.trigger()
    dialog = desktop.dialog
    assert isinstance(dialog, InviteDialog)
    qtbot.waitUntil(lambda: hasattr(dialog, "code"))
    texts = [label.text() for label in dialog.findChildren(QLabel)]
    assert "Valid for 24 hours and 20 PCs. It is shown this once." in texts


def test_quit_asks_when_others_would_notice(
    qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi
) -> None:
    live = (assignment(phase="linked", done=GB),)
    show(qtbot, desktop, agent, joined_status(state="contributing", assignments=live))
    desktop.actions.quit.trigger()
    question = desktop.question
    assert question is not None
    assert "smollm2-135m-instruct" in question.text()
    assert not agent.quit_asked.is_set()
    stay = question.defaultButton()
    assert stay.text() == "&Keep running"
    qtbot.mouseClick(stay, Qt.MouseButton.LeftButton)
    assert not agent.quit_asked.is_set()
    desktop.actions.quit.trigger()
    assert desktop.question is not None
    leave = next(b for b in desktop.question.buttons() if b is not desktop.question.defaultButton())
    qtbot.mouseClick(leave, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(agent.quit_asked.is_set)


def test_closing_the_window_without_a_tray_asks_to_quit(
    qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi
) -> None:
    live = (assignment(phase="linked", done=GB),)
    show(qtbot, desktop, agent, joined_status(state="contributing", assignments=live))
    desktop.show_window()
    desktop.window.close()
    assert desktop.question is not None
    assert desktop.window.isVisible(), "it stands in for the tray and stays until the answer"


def test_every_control_has_a_name_and_can_be_reached_by_keyboard(
    qtbot: QtBot, desktop: Desktop, agent: FakeLocalApi
) -> None:
    show(qtbot, desktop, agent, joined_status())
    desktop.actions.join.trigger()
    assert desktop.dialog is not None
    windows: list[QWidget] = [desktop.window, desktop.dialog]
    for window in windows:
        window.show()
        for kind in (QPushButton, QLineEdit):
            for control in window.findChildren(kind):
                if control.isVisible():
                    interface = QAccessible.queryAccessibleInterface(control)
                    assert interface.text(QAccessible.Text.Name), control
                    assert control.focusPolicy() & Qt.FocusPolicy.TabFocus, control


@pytest.mark.parametrize(("colours", "code"), [(LIGHT, LIGHT_CODE), (DARK, DARK_CODE)])
def test_text_stands_out_from_its_ground(colours: Colours, code: CodeColours) -> None:
    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(front: str, back: str) -> float:
        a, b = sorted((luminance(front), luminance(back)), reverse=True)
        return (a + 0.05) / (b + 0.05)

    for ground in (colours.window, colours.card, colours.field):
        for text in (colours.text, colours.muted, colours.error):
            assert contrast(text, ground) >= 4.5, (text, ground)
        assert contrast(colours.scroll, ground) >= 3, ground
    for ground in (colours.window, colours.card):
        for word in astuple(code):
            assert contrast(word, ground) >= 4.5, (word, ground)
    assert contrast(colours.on_accent, colours.accent) >= 4.5


def test_the_theme_changes_everything_at_once(qtbot: QtBot, qapp: QApplication) -> None:
    theme = Theme(qapp)
    for colours in (DARK, LIGHT):
        theme.apply(colours)
        assert qapp.palette().window().color().name() == colours.window
        assert qapp.palette().windowText().color().name() == colours.text


def test_autostart_can_name_the_state_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEETAPP_HOME", "/elsewhere")
    _use_state_option(["fleetapp-tray", "--verbose"])
    assert default_home() == Path("/elsewhere")
    _use_state_option(["fleetapp-tray", "--state", str(home)])
    assert default_home() == home


def test_no_window_is_larger_than_the_screen(qtbot: QtBot) -> None:
    large = QWidget()
    qtbot.addWidget(large)
    large.setMinimumSize(9000, 300)
    large.resize(9000, 9000)
    bring_up(large)
    room = large.screen().availableSize()
    assert large.width() < room.width()
    assert large.height() < room.height()


def test_what_the_agent_says_of_this_pc_is_said_in_german(
    qtbot: QtBot, qapp: QApplication, desktop: Desktop, agent: FakeLocalApi
) -> None:
    language = Language(qapp)
    language.use("de")
    try:
        works = "This PC works for the fleet when it is asked to."
        view = ContributionView(on=True, reason="contributing", sentence=works)
        agent.set_status(joined_status(contribute=True, reason="Other.", contribution=view))
        german = "Dieser PC arbeitet für die Flotte, wenn er gebraucht wird."
        qtbot.waitUntil(lambda: desktop.window._said.text() == german)
    finally:
        language.drop()
        QLocale.setDefault(QLocale.c())


def test_an_open_menu_follows_the_state_and_stays_on_the_screen(
    qtbot: QtBot, desktop: Desktop
) -> None:
    actions, menu = desktop.actions, desktop.actions.menu
    room = menu.screen().availableGeometry()
    actions.show_view(AgentView("connected", lonely_status()))
    menu.popup(room.bottomRight() - QPoint(20, 5))  # as above a panel at the bottom
    try:
        qtbot.waitUntil(menu.isVisible)
        small = menu.geometry()
        member = joined_status(contribute=True, role="admin", reason="It waits for work. " * 4)
        actions.show_view(AgentView("connected", member))
        grown = menu.geometry()
        assert grown.size() == menu.sizeHint()
        assert grown.height() > small.height()
        assert room.contains(grown), "nothing of it lies off the screen"
        assert grown.bottomRight() == small.bottomRight(), "it grows away from the edge"
        last = menu.actionGeometry(actions.quit)
        assert menu.rect().contains(last)
        actions.show_view(AgentView("connected", lonely_status()))
        assert menu.geometry() == small
        menu.hide()
        menu.popup(room.topLeft())
        at = menu.geometry().topLeft()
        actions.show_view(AgentView("connected", member))
        assert menu.height() == grown.height()
        assert menu.geometry().topLeft() == at, "with room below nothing moves"
    finally:
        menu.hide()

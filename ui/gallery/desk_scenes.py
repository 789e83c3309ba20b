"""Tray, menu, This PC, and the dialogs."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from fleetapp.errors import ExpiredJoinCode, ManagedByPolicy
from ui import theme, words
from ui.desktop import Desktop
from ui.fleet_dialogs import CreateDialog, JoinDialog
from ui.gallery.stage import Scene, Stage
from ui.gallery.states import (
    CODE,
    connected,
    join_code,
    lonely,
    member,
    pc_states,
    shard,
)
from ui.icons import state_icon
from ui.session import CreatedFleet
from ui.view import AgentView
from ui.widgets.assignment_row import AssignmentRow

SIZES = (16, 24, 32, 48)


def scenes() -> list[Scene]:
    """In the order of the contact sheet."""
    return [
        Scene("tray-icons", _icons),
        *(Scene(f"menu-{name}", _menu(name)) for name in MENUS),
        *(Scene(f"pc-{name}", _this_pc(name)) for name in pc_states()),
        Scene("pc-refusal", _refusal),
        Scene("dialog-join", _join),
        Scene("dialog-join-busy", _join_busy),
        Scene("dialog-join-refused", _join_refused),
        Scene("dialog-join-done", _join_done),
        Scene("dialog-create", _create),
        Scene("dialog-create-done", _create_done),
        Scene("dialog-invite", _invite),
        Scene("dialog-quit-working", _quit_working),
        Scene("dialog-agent-runs-on", _runs_on),
        Scene("dialog-about", _about),
    ]


ICONS = (
    "not-joined",
    "connecting",
    "ready",
    "contributing",
    "preparing",
    "paused",
    "off",
    "attention",
    "stopped",
)
MENUS = ("not-joined", "contributing", "paused", "coordinator", "stopped")


def tell(desktop: Desktop, view: AgentView) -> None:
    """As if the agent had said so."""
    desktop.session.view = view
    desktop.session.changed.emit(view)


def _icons(stage: Stage) -> QWidget:
    sheet = QWidget()
    sheet.setWindowTitle("tray")
    grid = QGridLayout(sheet)
    grid.setContentsMargins(*(2 * theme.GRID,) * 4)
    grid.setSpacing(2 * theme.GRID)
    views = pc_states()
    for row, view in enumerate(views[name] for name in ICONS):
        icon = state_icon(view.icon, view.percent)
        for column, side in enumerate(SIZES):
            picture = QLabel()
            picture.setPixmap(icon.pixmap(side, side))
            grid.addWidget(picture, row, column, Qt.AlignmentFlag.AlignCenter)
        grid.addWidget(QLabel(words.status_line(view, words.TOOLTIP_LENGTH)), row, len(SIZES))
    sheet.show()
    stage.at_the_end(sheet.hide)
    stage.keep(sheet)
    return sheet


def _menu(name: str) -> Callable[[Stage], QWidget]:
    def show(stage: Stage) -> QWidget:
        tell(stage.desktop, pc_states()[name])
        stage.desktop.actions.menu.popup(QPoint(0, 0))
        stage.at_the_end(stage.desktop.actions.menu.hide)
        return stage.desktop.actions.menu

    return show


def _this_pc(name: str) -> Callable[[Stage], QWidget]:
    def show(stage: Stage) -> QWidget:
        view = pc_states()[name]
        stage.desktop.show_window()
        tell(stage.desktop, view)
        rows = stage.desktop.window.findChildren(AssignmentRow)
        for row, work in zip(rows, view.assignments, strict=True):
            row.pace = words.Pace(work.phase, work.done, time.monotonic(), rate=24e6, samples=3)
        tell(stage.desktop, view)
        return stage.desktop.window

    return show


def _refusal(stage: Stage) -> QWidget:
    window = _this_pc("ready")(stage)
    stage.desktop.actions.contribute.trigger()
    stage.client.refuse(
        ManagedByPolicy(
            "The setting contribute is managed by the machine policy and cannot be changed."
        )
    )
    return window


def _dialog(stage: Stage) -> QWidget:
    dialog = stage.desktop.dialog
    assert dialog is not None
    return dialog


def _join(stage: Stage) -> QWidget:
    tell(stage.desktop, connected(lonely()))
    stage.desktop.actions.join.trigger()
    return _dialog(stage)


def _filled_join(stage: Stage) -> JoinDialog:
    dialog = _join(stage)
    assert isinstance(dialog, JoinDialog)
    dialog.code.setText(CODE)
    return dialog


def _join_busy(stage: Stage) -> QWidget:
    dialog = _filled_join(stage)
    dialog.submit()
    return dialog


def _join_refused(stage: Stage) -> QWidget:
    dialog = _join_busy(stage)
    stage.client.refuse(ExpiredJoinCode("This join code has expired."))
    return dialog


def _join_done(stage: Stage) -> QWidget:
    dialog = _join_busy(stage)
    tell(stage.desktop, pc_states()["ready"])
    stage.client.grant(None)
    return dialog


def _create(stage: Stage) -> QWidget:
    tell(stage.desktop, connected(lonely()))
    stage.desktop.actions.create.trigger()
    return _dialog(stage)


def _create_done(stage: Stage) -> QWidget:
    dialog = _create(stage)
    assert isinstance(dialog, CreateDialog)
    dialog.name.setText("Office Lisbon")
    dialog.submit()
    stage.client.grant(CreatedFleet("q7d2mxr8tb1hvnck3v5e", CODE))
    return dialog


def _invite(stage: Stage) -> QWidget:
    tell(stage.desktop, pc_states()["coordinator"])
    stage.desktop.actions.invite.trigger()
    stage.client.grant(join_code(time.time() + 86_400))
    return _dialog(stage)


def _question(stage: Stage) -> QWidget:
    question = stage.desktop.question
    assert question is not None
    return question


def _quit_working(stage: Stage) -> QWidget:
    tell(stage.desktop, connected(member(state="contributing", assignments=(shard(),))))
    stage.desktop.quit()
    return _question(stage)


def _runs_on(stage: Stage) -> QWidget:
    stage.session.agent_ended.emit(False)
    return _question(stage)


def _about(stage: Stage) -> QWidget:
    tell(stage.desktop, pc_states()["ready"])
    stage.desktop.actions.about.trigger()
    return _question(stage)

"""What the admin's window shows and does, by keyboard where a person would use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QHeaderView,
    QInputDialog,
    QLabel,
    QLineEdit,
    QMessageBox,
    QScrollArea,
    QWidget,
)
from pytestqt.qtbot import QtBot

from fleetapp.errors import NoHub, PortTaken, StorageError
from fleetapp.types import FleetView, LayerRange
from tests.support.fake_fleet_api import (
    MODEL,
    FakeFleetApi,
    chain,
    coordinator_status,
    device,
    fleet_view,
    node,
    part,
)
from tests.support.fake_local_api import CODE, lonely_status
from tests.support.fake_models import model_job, recorded
from ui.fleet.rows import COLUMNS
from ui.fleet.secrets_page import CodesPage, KeysPage
from ui.fleet.window import FleetWindow
from ui.fleet_dialogs import CreateDialog
from ui.session import AgentSession

INDEX = {column.key: i for i, column in enumerate(COLUMNS)}


@pytest.fixture
def fleet(home: Path) -> Iterator[FakeFleetApi]:
    fake = FakeFleetApi(home)
    fake.start()
    yield fake
    fake.held.set()
    fake.stop()


@pytest.fixture
def session(qtbot: QtBot, qapp: QApplication, home: Path, fleet: object) -> Iterator[AgentSession]:
    session = AgentSession(home, ["no-such-program"])
    session.keeper.abandon()
    session.start()
    qtbot.waitUntil(lambda: session.view.link == "connected")
    yield session
    session.stop()


@pytest.fixture
def window(qtbot: QtBot, session: AgentSession) -> Iterator[FleetWindow]:
    window = FleetWindow(session)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitUntil(lambda: window.model.view is not None)
    yield window
    window.hide()


def cell(window: FleetWindow, device_id: str, key: str) -> str:
    rows = window.nodes.rows
    return str(rows.index(rows.row_of(device_id), INDEX[key]).data())


def choose(window: FleetWindow, *devices: str) -> None:
    window.nodes.table.clearSelection()
    selection = window.nodes.table.selectionModel()
    for device_id in devices:
        row = window.nodes.rows.index(window.nodes.rows.row_of(device_id), 0)
        selection.select(row, selection.SelectionFlag.Select | selection.SelectionFlag.Rows)


def answer(question: QWidget | None, text: str) -> None:
    """Press the button of a question with this text."""
    assert isinstance(question, QMessageBox)
    button = next(b for b in question.buttons() if b.text().replace("&", "") == text)
    button.click()


def posted(fleet: FakeFleetApi, path: str) -> Callable[[], bool]:
    return lambda: bool(fleet.bodies(f"/local/v1/{path}"))


# ---------------------------------------------------------------------- showing


def test_figures_troubles_and_pcs_are_shown_and_follow_the_fleet(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    assert window.title.text() == "Fleet “Office Lisbon”"
    assert window.pulse.nodes.number.text() == "7/9"
    assert window.pulse.tokens.number.text() == "61.4"
    assert len(window.attention.lines) == 8
    assert cell(window, device(4), "state") == "Not working · in use"
    assert cell(window, device(4), "progress") == "Downloading 44%"
    assert cell(window, device(2), "temperature") == "71 °C"
    assert cell(window, device(8), "version") == "0.2.9 ≠ 0.3.0"
    assert cell(window, device(9), "certificate") == "35 h"
    fleet.set_view(fleet_view(nodes=(node(1, role="coordinator"), node(2, contribute=False,
                   reason="on_battery")), warnings=(), chains=()))  # fmt: skip
    qtbot.waitUntil(lambda: cell(window, device(2), "state") == "Not working · on battery")
    assert window.attention.isHidden()
    assert window.pulse.nodes.number.text() == "2/2"


def test_nothing_is_asked_while_nobody_looks(
    qtbot: QtBot, session: AgentSession, fleet: FakeFleetApi
) -> None:
    window = FleetWindow(session)
    qtbot.addWidget(window)
    qtbot.wait(100)
    assert fleet.fleet_streams == 0
    window.show()
    qtbot.waitUntil(lambda: window.model.view is not None)
    assert fleet.fleet_streams == 1
    with qtbot.waitSignal(window.closed):
        window.close()
    fleet.set_view(fleet_view(name="Elsewhere"))
    qtbot.wait(150)
    assert window.model.view is not None
    assert window.model.view.name == "Office Lisbon"
    assert not window.model.history.throughput.points or not window.model._tick.isActive()
    window.show()
    qtbot.waitUntil(lambda: window.title.text() == "Fleet “Elsewhere”")
    assert fleet.fleet_streams == 2


def test_the_last_known_state_stays_grey_and_says_since_when(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    choose(window, device(2))
    assert window.nodes.actions_of["drain"].isEnabled()
    fleet.set_status(coordinator_status(state="connecting", role="admin", reason="DESK-01 is off."))
    qtbot.waitUntil(lambda: window.model.freshness == "stale")
    said = window.trouble.label.text()
    assert window.trouble.isVisible()
    assert "The coordinator cannot be reached. DESK-01 is off." in said
    assert "This PC tries again by itself" in said
    assert "What you see is the state of" in said
    for figure in (window.pulse.nodes, window.pulse.tokens, window.pulse.queue):
        assert figure.number.text() == "—", "an old figure is not shown as if it held"
    assert window.pulse.latency.caption.text() == "Next token · —"
    assert not window.nodes.actions_of["drain"].isEnabled()
    assert not window.attention.lines[0].approve.isEnabled()
    index = window.nodes.rows.index(0, 0)
    assert index.data(Qt.ItemDataRole.ForegroundRole) is not None, "greyed"
    fleet.set_status(coordinator_status())
    qtbot.waitUntil(window.trouble.isHidden)
    assert window.model.freshness == "live"
    assert window.pulse.tokens.number.text() == "61.4"
    assert window.pulse.throughput.caption.text() == "Tokens/s · 61.4"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (
            {"state": "connecting", "reason": "This PC is changing its role in the fleet."},
            "The coordinator, this PC, is starting. This PC is changing its role in the fleet.",
        ),
        (
            {
                "state": "connecting",
                "role": "member",
                "removed": True,
                "reason": "The coordinator does not count this PC as a member any more.",
            },
            "The coordinator does not count this PC as a member any more.",
        ),
    ],
)
def test_what_is_wrong_with_the_coordinator_and_what_follows_is_said(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi, status: dict[str, Any], said: str
) -> None:
    fleet.set_status(coordinator_status(**status))
    qtbot.waitUntil(lambda: window.model.freshness == "stale")
    assert window.trouble.label.text().startswith(said)
    assert "What you see is the state of" in window.trouble.label.text()


def test_a_coordinator_whose_port_is_taken_says_that_it_tries_again(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    taken = PortTaken("Port 8485 on 0.0.0.0 is used by another program.", remedy="Stop it.")
    fleet.refusals["/local/v1/fleet/events"] = taken
    fleet.set_status(coordinator_status(state="attention", reason=str(taken)))
    fleet.set_view(None)
    qtbot.waitUntil(lambda: "Port 8485" in window.trouble.label.text())
    said = window.trouble.label.text()
    assert "The coordinator, this PC, cannot work." in said
    assert "It tries again every few seconds; until then nobody in the fleet gets answers." in said
    assert window.pulse.tokens.number.text() == "—"


def test_a_stream_that_ends_with_an_error_says_why_and_is_tried_again(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    fleet.refusals["/local/v1/fleet/events"] = NoHub("The coordinator has gone silent.")
    fleet.set_view(None)
    qtbot.waitUntil(lambda: "gone silent" in window.trouble.label.text())
    assert window.model.view is not None
    fleet.refusals.clear()
    fleet.set_view(fleet_view())
    qtbot.waitUntil(lambda: window.model.freshness == "live", timeout=10_000)


def test_a_pc_without_a_fleet_gets_the_next_step(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    fleet.set_status(lonely_status())
    qtbot.waitUntil(window.create_fleet.isVisible)
    assert "in no fleet" in window.nothing.text()
    assert window.model.view is None, "nothing of the fleet before is left"
    window.create_fleet.click()
    qtbot.waitUntil(lambda: isinstance(window.dialog, CreateDialog))
    assert window.dialog is not None
    window.dialog.reject()


def test_a_plain_member_may_look_and_reads_who_may_do_more(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    fleet.set_status(coordinator_status(role="member"))
    qtbot.waitUntil(window.rights.isVisible)
    assert "The coordinator and PCs with the role “admin” may" in window.rights.text()
    choose(window, device(2))
    assert not any(a.isEnabled() for a in window.nodes.actions_of.values())
    for page in (window.codes, window.keys):
        assert not page.form.isEnabled()
        assert "Only admins" in page.empty.text()
    asked = len(fleet.requests)
    for page in (window.codes, window.keys, window.audit):
        window.tabs.setCurrentWidget(page)
    qtbot.wait(100)
    assert len(fleet.requests) == asked, "what would be refused is not asked for"


# ---------------------------------------------------------------------- deciding


def test_a_pc_that_waits_is_let_in_after_a_look_at_its_id(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    line = window.attention.lines[0]
    assert device(11) in line.detail.text()
    line.approve.click()
    question = window.nodes.question
    assert isinstance(question, QMessageBox)
    assert device(11) in question.informativeText()
    assert question.defaultButton().text() == "&Cancel"
    assert not posted(fleet, "fleet/approve")()
    answer(question, "Approve")
    qtbot.waitUntil(posted(fleet, "fleet/approve"))
    assert fleet.bodies("/local/v1/fleet/approve") == [{"device_id": device(11)}]
    qtbot.waitUntil(lambda: cell(window, device(11), "state") == "Offline")
    qtbot.waitUntil(lambda: "asks to join" not in window.attention.lines[0].text.text())


def test_a_pc_that_waits_is_declined(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    window.attention.lines[0].decline.click()
    qtbot.waitUntil(lambda: window.nodes.rows.row_of(device(11)) < 0)


@pytest.mark.parametrize(
    ("command", "yes", "state"),
    [("revoke", "Revoke", "Shut out"), ("evict", "Evict", None)],
)
def test_what_does_harm_asks_first(
    qtbot: QtBot,
    window: FleetWindow,
    fleet: FakeFleetApi,
    command: str,
    yes: str,
    state: str | None,
) -> None:
    choose(window, device(4))
    window.nodes.actions_of[command].trigger()  # type: ignore[index]
    question = window.nodes.question
    assert isinstance(question, QMessageBox)
    assert "DESK-04" in question.text()
    assert "cut at once" in question.informativeText()
    QTest.keyClick(question, Qt.Key.Key_Escape)
    qtbot.wait(50)
    assert not posted(fleet, f"fleet/{command}")()
    window.nodes.actions_of[command].trigger()  # type: ignore[index]
    answer(window.nodes.question, yes)
    qtbot.waitUntil(posted(fleet, f"fleet/{command}"))
    if state is None:
        qtbot.waitUntil(lambda: window.nodes.rows.row_of(device(4)) < 0)
    else:
        qtbot.waitUntil(lambda: cell(window, device(4), "state") == state)


def test_several_are_drained_and_resumed_with_a_button(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    choose(window, device(2), device(4))
    window.nodes._buttons["drain"].click()
    qtbot.waitUntil(lambda: cell(window, device(4), "state") == "Drained by an admin")
    qtbot.waitUntil(lambda: cell(window, device(2), "state") == "Drained by an admin")
    assert {n.device_id for n in window.nodes.chosen()} == {device(2), device(4)}
    qtbot.waitUntil(window.nodes._buttons["undrain"].isVisible)
    window.nodes._buttons["undrain"].click()
    qtbot.waitUntil(lambda: cell(window, device(2), "state") == "Working")


def test_the_fleet_itself_is_renamed(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    window.rename.click()
    dialog = window.question
    assert isinstance(dialog, QInputDialog)
    assert dialog.textValue() == "Office Lisbon"
    dialog.setTextValue(" Büro Süd ")
    dialog.accept()
    qtbot.waitUntil(lambda: window.title.text() == "Fleet “Büro Süd”")
    assert fleet.bodies("/local/v1/fleet/name") == [{"name": "Büro Süd"}]
    fleet.set_status(coordinator_status(role="member"))
    qtbot.waitUntil(window.rename.isHidden)


def test_focus_stays_with_the_pc_that_was_drained(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    choose(window, device(2))
    drain, resume = window.nodes._buttons["drain"], window.nodes._buttons["undrain"]
    drain.setFocus()
    qtbot.keyClick(drain, Qt.Key.Key_Space)
    qtbot.waitUntil(resume.isVisible)
    assert resume.hasFocus(), "the way back is where the finger is"
    qtbot.keyClick(resume, Qt.Key.Key_Space)
    qtbot.waitUntil(drain.isVisible)
    assert drain.hasFocus()
    window.nodes.table.clearSelection()
    assert window.nodes.table.hasFocus()


def test_no_cell_is_cut_when_the_window_opens(window: FleetWindow) -> None:
    table = window.nodes.table
    metrics = table.fontMetrics()
    for index, column in enumerate(COLUMNS):
        for text in window.nodes.rows.texts(index, 100):
            room = table.columnWidth(index)
            assert metrics.horizontalAdvance(text) < room, f"{column.key}: {text}"


def test_a_pc_is_renamed_with_f2(qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi) -> None:
    choose(window, device(2))
    window.nodes.table.setFocus()
    qtbot.waitUntil(window.nodes.table.hasFocus)
    qtbot.keyClick(window.nodes.table, Qt.Key.Key_F2)
    qtbot.waitUntil(lambda: isinstance(window.nodes.question, QInputDialog))
    dialog = window.nodes.question
    assert isinstance(dialog, QInputDialog)
    assert dialog.textValue() == "DESK-02"
    dialog.setTextValue("  Front desk ")
    dialog.accept()
    qtbot.waitUntil(lambda: cell(window, device(2), "name") == "Front desk")
    assert fleet.bodies("/local/v1/fleet/rename")[0]["name"] == "Front desk"


def test_a_refusal_is_said_in_the_window(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    fleet.refusals["/local/v1/fleet/drain"] = StorageError("The disk is full.")
    choose(window, device(2))
    window.nodes.actions_of["drain"].trigger()
    qtbot.waitUntil(window.notice.isVisible)
    assert "The disk is full." in window.notice.label.text()
    fleet.refusals.clear()
    window.nodes.actions_of["drain"].trigger()
    qtbot.waitUntil(window.notice.isHidden)


def test_the_filter_is_found_by_keyboard_and_esc_clears_it(
    qtbot: QtBot, window: FleetWindow
) -> None:
    window.tabs.setCurrentWidget(window.keys)
    qtbot.keyClick(window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(window.nodes.filter.hasFocus)
    qtbot.keyClicks(window.nodes.filter, "desk-02")
    assert window.nodes.rows.rowCount() == 1
    assert window.nodes.count.text() == "1 of 11"
    qtbot.keyClick(window.nodes.filter, Qt.Key.Key_Escape)
    assert window.nodes.rows.rowCount() == 11


def test_a_trouble_leads_to_its_pc(qtbot: QtBot, window: FleetWindow) -> None:
    window.tabs.setCurrentWidget(window.audit)
    window.nodes.filter.setText("nothing like this")
    line = next(x for x in window.attention.lines if "certificate" in x.text.text())
    line.show_node.click()
    assert window.tabs.currentWidget() is window.nodes
    assert [n.device_id for n in window.nodes.chosen()] == [device(9)]


def test_the_table_is_saved_for_a_spreadsheet(window: FleetWindow, tmp_path: Path) -> None:
    from ui.fleet.asking import write  # noqa: PLC0415

    path = tmp_path / "Büro 日本.csv"
    problems: list[str] = []
    write(path, window.nodes.rows.csv(), problems.append)
    text = path.read_bytes()
    assert text.startswith(b"\xef\xbb\xbf"), "read as UTF-8 by spreadsheets"
    assert "Büro 日本 3" in text.decode("utf-8-sig")
    write(tmp_path / "no" / "such" / "folder.csv", "", problems.append)
    assert len(problems) == 1


# ---------------------------------------------------------------------- models


def models_page(qtbot: QtBot, window: FleetWindow) -> Any:
    window.tabs.setCurrentWidget(window.models)
    qtbot.waitUntil(lambda: window.models.models.view is not None)
    return window.models


def test_a_model_shows_its_plan_and_is_started_and_stopped(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    page = models_page(qtbot, window)
    fleet.set_view(fleet_view(chains=(chain(),)))
    qtbot.waitUntil(lambda: page._serving("qwen3-4b").text == "not served")
    assert page.library.choose("qwen3-4b")
    qtbot.waitUntil(lambda: "qwen3-4b is split over three PCs" in page.card.plan.text())
    assert {"what_if": ["model=qwen3-4b"]} in fleet.bodies("/local/v1/fleet/plan")
    page.card.precision.setCurrentIndex(2)
    page.card.stages.setValue(2)
    page.card.start.click()
    qtbot.waitUntil(posted(fleet, "models/start"))
    assert fleet.bodies("/local/v1/models/start") == [
        {"model": "qwen3-4b", "precision": "exact", "stages": 2}
    ]
    assert page.library.choose(MODEL)
    assert not page.card.start.isVisible()
    assert not page.card.remove.isEnabled(), "not while it is served"
    page.card.stop.click()
    assert not posted(fleet, "models/stop")()
    answer(page.question, "Stop")
    qtbot.waitUntil(posted(fleet, "models/stop"))


def test_models_are_fetched_imported_cancelled_and_removed(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    fleet.set_view(fleet_view(chains=()))
    fleet.set_models(recorded()["here"])
    page = models_page(qtbot, window)
    qtbot.waitUntil(lambda: page.catalogue.choose("gemma-3-1b-it"))
    page.get.click()
    assert "https://ai.google.dev/gemma/terms" in page.question.informativeText()
    assert not posted(fleet, "models/get")()
    answer(page.question, "Agree and get")
    qtbot.waitUntil(lambda: len(page._jobs) == 1)
    assert fleet.bodies("/local/v1/models/get")[0]["accept_licence"] is True
    job = fleet.models.view.jobs[-1]
    moved = replace(job, phase="downloading", done=403_000_000, total=806_000_000, seconds_left=20)
    fleet.models.put(moved)
    fleet.changed()
    row = next(iter(page._jobs.values()))
    qtbot.waitUntil(lambda: "384.3 MiB of 768.7 MiB" in row.text.text())
    assert row.bar.value() == 500
    row.cancel.click()
    qtbot.waitUntil(lambda: not page._jobs)
    page.import_path("/data/Qwen 日本.gguf")
    qtbot.waitUntil(posted(fleet, "models/import"))
    assert fleet.bodies("/local/v1/models/import")[0]["path"] == "/data/Qwen 日本.gguf"
    assert page.library.choose(MODEL)
    page.card.remove.click()
    answer(page.question, "Remove")
    qtbot.waitUntil(lambda: page.library.entries.rowCount() == 0)
    assert page.empty.isVisible()
    assert not page.card.isVisible()


def test_a_job_that_failed_says_why(qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi) -> None:
    fleet.set_models(recorded()["failed"])
    page = models_page(qtbot, window)
    qtbot.waitUntil(lambda: len(page._jobs) == 1)
    row = next(iter(page._jobs.values()))
    assert "needs 9.4 GB" in row.text.text()
    assert not row.cancel.isVisible()


@pytest.mark.parametrize("state", recorded())
def test_every_recorded_state_of_the_library_is_shown(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi, state: str
) -> None:
    fleet.set_models(recorded()[state])
    page = models_page(qtbot, window)
    wanted = recorded()[state]
    qtbot.waitUntil(lambda: page.library.entries.rowCount() == len(wanted.library))
    assert len(page._jobs) == len([j for j in wanted.jobs if j.state in ("running", "failed")])
    assert model_job().job == "j1"


def test_off_the_coordinator_models_can_only_be_looked_for_elsewhere(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    fleet.set_status(coordinator_status(role="admin"))
    qtbot.waitUntil(lambda: not window.model.rights.coordinates)
    window.tabs.setCurrentWidget(window.models)
    assert window.models.elsewhere.isVisible()
    assert not window.models.import_file.isEnabled()
    window.tabs.setCurrentWidget(window.plan)
    assert not window.plan.what_if.isEnabled()
    assert "coordinator's PC only" in window.plan.what_if.placeholderText()


# ---------------------------------------------------------------------- plan


def test_chains_are_drawn_and_told_to_those_who_do_not_see(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    window.tabs.setCurrentWidget(window.plan)
    qtbot.waitUntil(lambda: len(window.plan._chains) == 2)
    card = window.plan._chains["c1"]
    described = card.picture.accessibleDescription()
    assert "Stage 1: DESK-01, layers 0-11 · CPU, In use · 21 ms." in described
    assert "Link: 2.1 ms, 45.8 MiB/s." in described
    assert "61.4 tokens/s" in card.state.text()
    assert "DESK-05 (layers 12-21)" in card.standbys.text()
    qtbot.waitUntil(lambda: bool(window.plan._plans))
    plan = window.plan._plans[0]
    assert plan.table.entries.rowCount() == 3
    assert plan.table.entries.entries[1].cells == ("one PC alone", "18.5", "22.0", "DESK-01")
    broken = chain(state="broken", reason="DESK-02 left.", assignments=(), hops=(), load=None)
    fleet.set_view(fleet_view(chains=(broken,)))
    qtbot.waitUntil(lambda: "DESK-02 left." in card.state.text())
    assert "c2" not in window.plan._chains
    fleet.set_view(fleet_view(chains=()))
    qtbot.waitUntil(window.plan.empty.isVisible)


def test_what_if_is_asked_with_names_that_have_spaces(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    window.tabs.setCurrentWidget(window.plan)
    window.plan.what_if.setText("+16, -Büro 日本 3,users=20")
    qtbot.keyClick(window.plan.what_if, Qt.Key.Key_Return)
    asked = {"what_if": ["+16", "-Büro 日本 3", "users=20"]}
    qtbot.waitUntil(lambda: asked in fleet.bodies("/local/v1/fleet/plan"))
    fleet.refusals["/local/v1/fleet/plan"] = StorageError("No such PC.")
    window.plan.ask()
    qtbot.waitUntil(window.plan.notice.isVisible)


@pytest.mark.parametrize("stages", [1, 2, 3, 7, 24])
@pytest.mark.parametrize("width", [180, 420, 1000])
def test_stages_never_overlap_and_none_is_cut(
    qtbot: QtBot, window: FleetWindow, stages: int, width: int
) -> None:
    from ui.fleet.chain_picture import ChainPicture, boxes_of  # noqa: PLC0415

    view = chain(assignments=tuple(
        part(i, i, stages, LayerRange(i, i + 1),
             node="A very long name of a PC " * 3) for i in range(stages)))  # fmt: skip
    picture = ChainPicture()
    qtbot.addWidget(picture)
    picture.show_boxes(boxes_of(view), "x")
    places = picture.places(width)
    for i, one in enumerate(places):
        assert not any(one.intersects(other) for other in places[i + 1 :])
        assert one.bottom() < picture.heightForWidth(width)
    assert max(p.right() for p in places) <= max(width, places[0].width() + 4)
    picture.resize(width, picture.heightForWidth(width))
    assert not picture.grab().isNull()


# ---------------------------------------------------------------------- codes, keys, audit


def test_a_join_code_is_made_shown_once_and_revoked(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    page: CodesPage = window.codes
    window.tabs.setCurrentWidget(page)
    qtbot.waitUntil(lambda: page.table.entries.rowCount() == 2)
    page.hours.setValue(2)
    page.uses.setValue(3)
    page.approve.setChecked(True)
    page.button.click()
    qtbot.waitUntil(page.made.isVisible)
    assert page.secret.field.text() == CODE
    assert fleet.bodies("/local/v1/fleet/codes") == [{"hours": 2.0, "uses": 3, "approve": True}]
    page.secret.button.click()
    assert QApplication.clipboard().text() == CODE
    qtbot.waitUntil(lambda: page.table.choose("n2"))
    page.revoke.click()
    answer(page.question, "Revoke")
    qtbot.waitUntil(lambda: page.table.entries.entries[2].cells[1] == "revoked")
    assert ("DELETE", "/local/v1/fleet/codes/n2", None) in fleet.requests
    window.tabs.setCurrentWidget(window.nodes)
    assert page.secret.field.text() == "", "gone when somebody looks at something else"


def test_an_api_key_needs_a_name_and_is_shown_once(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    page: KeysPage = window.keys
    window.tabs.setCurrentWidget(page)
    qtbot.waitUntil(lambda: "make it above" in page.empty.text())
    assert not page.button.isEnabled()
    page.name.setText("José's editor")
    page.parallel.setValue(2)
    qtbot.keyClick(page.name, Qt.Key.Key_Return)
    qtbot.waitUntil(page.made.isVisible)
    assert page.secret.field.text() == "fleet-3Qx9vN1"
    assert fleet.bodies("/local/v1/keys")[0] == {
        "name": "José's editor", "parallel": 2, "per_minute": 0,
    }  # fmt: skip
    qtbot.waitUntil(lambda: page.table.choose("key0"))
    assert page.table.entries.entries[0].cells[-1] == "DESK-05", "where it was made"
    page.revoke.click()
    answer(page.question, "Revoke")
    qtbot.waitUntil(lambda: page.table.entries.rowCount() == 0)


def test_the_audit_log_is_read_filtered_and_checked(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    page = window.audit
    window.tabs.setCurrentWidget(page)
    qtbot.waitUntil(lambda: page.table.entries.rowCount() == 200)
    assert page.table.entries.entries[0].cells[3] == "revoked", "newest first"
    assert page.table.entries.entries[1].cells[2] == "DESK-05", "by name"
    page.older.click()
    qtbot.waitUntil(lambda: page.table.entries.rowCount() == 240)
    assert not page.older.isEnabled(), "that is all"
    page.filter.setText("desk-10")
    assert page.table.entries.rowCount() == 1
    page.check.click()
    qtbot.waitUntil(page.verdict.isVisible)
    assert page.head.field.text() == "ab" * 32
    fleet.problems = ("Line 3 does not follow.",)
    page.noted.setText("AB12")
    page.check.click()
    qtbot.waitUntil(lambda: "Line 3" in page.verdict.text())
    assert page.verdict.property("error")
    assert ("GET", "/local/v1/fleet/audit/check?noted=ab12", None) in fleet.requests
    page.noted.setText("not a hash")
    page.check.click()
    assert "only digits" in page.notice.label.text()


# ---------------------------------------------------------------------- for everybody


def test_every_control_has_a_name_and_can_be_reached(qtbot: QtBot, window: FleetWindow) -> None:
    kinds = (QAbstractButton, QLineEdit, QComboBox, QAbstractSpinBox, QAbstractItemView)
    for number in range(window.tabs.count()):
        qtbot.keyClick(window, Qt.Key(Qt.Key.Key_1 + number), Qt.KeyboardModifier.ControlModifier)
        assert window.tabs.currentIndex() == number
        qtbot.wait(30)
        for widget in window.findChildren(QWidget):
            inside = isinstance(widget.parent(), QAbstractSpinBox | QComboBox | QLineEdit)
            if not widget.isVisible() or inside or not isinstance(widget, kinds):
                continue
            if "Corner" in widget.metaObject().className() or isinstance(widget, QHeaderView):
                continue
            face = QAccessible.queryAccessibleInterface(widget)
            assert face.text(QAccessible.Text.Name), (number, widget, widget.objectName())
            assert widget.focusPolicy() & Qt.FocusPolicy.TabFocus, (number, widget)


def test_what_pcs_call_themselves_is_never_markup(
    qtbot: QtBot, window: FleetWindow, fleet: FakeFleetApi
) -> None:
    nasty = "<img src=http://192.0.2.1/x><b>A</b>"
    nodes = (node(1, role="coordinator", name=nasty), node(2, name=nasty, state="pending"))
    fleet.set_view(FleetView("fleetfleetfleet", nasty, nodes, (), (nasty,)))
    qtbot.waitUntil(lambda: nasty in window.title.text())
    for label in window.findChildren(QLabel):
        if nasty in label.text():
            assert label.textFormat() == Qt.TextFormat.PlainText, label.text()


def test_nothing_flickers_up_as_a_window_of_its_own(qtbot: QtBot, window: FleetWindow) -> None:
    seen: set[str] = set()
    QApplication.instance().focusWindowChanged.connect(  # type: ignore[union-attr]
        lambda w: seen.add(w.title() if w is not None else "none")
    )
    for number in range(window.tabs.count()):
        window.tabs.setCurrentIndex(number)
        qtbot.wait(60)
    assert seen <= {window.windowTitle()}


def test_no_two_controls_of_a_page_want_the_same_letter(window: FleetWindow) -> None:
    for number in range(window.tabs.count()):
        window.tabs.setCurrentIndex(number)
        texts = [
            w.text()
            for w in window.findChildren(QWidget)
            if isinstance(w, QAbstractButton | QLabel) and w.isVisible()
        ]
        letters = [t[t.index("&") + 1].lower() for t in texts if "&" in t.replace("&&", "")]
        assert len(letters) == len(set(letters)), (number, sorted(letters))


def test_no_two_entries_of_the_menu_want_the_same_letter(window: FleetWindow) -> None:
    texts = [a.text() for a in window.nodes.menu.actions() if a.text() and a.isVisible()]
    letters = [t[t.index("&") + 1].lower() for t in texts]
    assert len(letters) == len(set(letters)), texts


@pytest.mark.parametrize("width", [512, 768, 910, 1160])
def test_what_a_small_screen_has_no_room_for_is_scrolled_and_nothing_is_cut(
    qtbot: QtBot, window: FleetWindow, width: int
) -> None:
    window.resize(width, 400)
    QApplication.processEvents()
    assert window.width() == width
    scroll = window.pages.currentWidget()
    assert isinstance(scroll, QScrollArea)
    content = scroll.widget()
    for index in range(window.tabs.count()):
        window.tabs.setCurrentIndex(index)
        QApplication.processEvents()
        needed = content.minimumSizeHint().width()
        assert content.width() >= needed
        reach = scroll.horizontalScrollBar().maximum() + scroll.viewport().width()
        assert reach >= content.width(), "all of it can be scrolled to"
    window.tabs.setCurrentWidget(window.nodes)
    QApplication.processEvents()
    assert scroll.horizontalScrollBar().maximum() == 0, "the table of PCs needs no scrolling"
    for label in window.pulse.findChildren(QLabel):
        if label.isVisible():
            assert label.width() >= label.minimumSizeHint().width(), label.text()
    shown = [chart.isVisible() for chart in window.pulse._charts]
    assert shown == sorted(shown, reverse=True)
    assert all(shown) == (width == 1160)

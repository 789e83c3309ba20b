"""The first run: what is asked, what is done, and what happens to who leaves in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QSettings, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QLabel, QLineEdit, QSpinBox
from pytestqt.qtbot import QtBot

from fleetapp.errors import (
    AgentNotRunning,
    DiskFull,
    ExpiredJoinCode,
    FleetError,
    NoHub,
    NotAMember,
)
from tests.support.fake_local_api import CODE, FakeLocalApi, joined_status, lonely_status
from tests.support.fake_models import MB, job_error
from tests.support.fake_pc import BAD, chain, hardware
from ui.desktop import Desktop
from ui.firstrun import words
from ui.firstrun.choices import PAGES, STATE, Choices, keep, load
from ui.firstrun.model import FirstRun
from ui.firstrun.window import FirstRunWindow
from ui.firstrun.work import PATIENCE, Work
from ui.session import AgentSession

MakeApp = Callable[[], Desktop]


@pytest.fixture
def settings(home: Path) -> QSettings:
    kept = QSettings(str(home / "ui.ini"), QSettings.Format.IniFormat)
    kept.clear()
    return kept


@pytest.fixture
def session(
    qtbot: QtBot, qapp: QApplication, home: Path, agent: FakeLocalApi
) -> Iterator[AgentSession]:
    made = AgentSession(home, ["no-such-program"])
    made.keeper.abandon()
    made.start()
    qtbot.waitUntil(lambda: made.view.link == "connected")
    yield made
    made.stop()


@pytest.fixture
def model(session: AgentSession, settings: QSettings) -> Iterator[FirstRun]:
    made = FirstRun(session, settings)
    yield made
    made.leave()


@pytest.fixture
def apps(qtbot: QtBot, home: Path, agent: FakeLocalApi, settings: QSettings) -> Iterator[MakeApp]:
    """Starts the desktop app, again and again; the last one is ended before the next."""
    running: list[Desktop] = []

    def stop() -> None:
        for app in running:
            app.stop()
        running.clear()

    def start() -> Desktop:
        stop()
        app = Desktop(AgentSession(home, ["no-such-program"]), home)
        app.session.keeper.abandon()
        app.session.start()
        running.append(app)
        qtbot.waitUntil(lambda: app.session.view.link == "connected")
        qtbot.waitUntil(lambda: app._first_looked)
        qtbot.wait(100)  # whatever it asks the agent has been answered: this one is quick
        return app

    yield start
    stop()


def to_work(qtbot: QtBot, model: FirstRun) -> Work:
    """Agree to everything."""
    qtbot.waitUntil(lambda: bool(model.limits))
    while model.page != "work":
        assert model.may_go_on
        model.go_on()
    assert model.work is not None
    return model.work


# ------------------------------------------------------------------ when it is shown


def test_it_is_shown_at_the_first_start_only(apps: MakeApp) -> None:
    first = apps()
    assert first.first_run is not None
    first.first_run.close()
    assert first.first_run is None
    again = apps()
    assert again.first_run is None
    again.actions.set_up.trigger()
    assert again.first_run is not None


def test_a_second_start_raises_it_while_it_is_there(apps: MakeApp) -> None:
    app = apps()
    assert app.first_run is not None
    app.first_run.hide()
    app.come_forward()
    assert app.first_run.isVisible()
    assert not app.window.isVisible()
    app.first_run.close()
    app.come_forward()
    assert app.window.isVisible()


def test_a_restart_in_the_middle_goes_on_there(apps: MakeApp) -> None:
    first = apps()
    assert first.first_run is not None
    model = first.first_run.model
    model.go_on()
    model.choose("create")
    model.say(name="Büro Süd")
    model.go_on()
    model._kept.sync()
    first.first_run.model.session.stop()  # as if the PC were switched off: nothing is closed
    first.first_run = None
    second = apps()
    assert second.first_run is not None
    assert second.first_run.model.page == "pc"
    assert second.first_run.model.choices.name == "Büro Süd"


def test_a_pc_in_a_fleet_is_not_asked(
    apps: MakeApp, agent: FakeLocalApi, settings: QSettings
) -> None:
    agent.set_status(joined_status())
    assert apps().first_run is None
    agent.set_status(lonely_status())
    assert apps().first_run is None, "it was set up before, and left its fleet"


def test_a_pc_that_joins_by_itself_is_not_asked_meanwhile(
    qtbot: QtBot, apps: MakeApp, agent: FakeLocalApi, settings: QSettings
) -> None:
    agent.set_status(lonely_status(joining="looking"))
    app = apps()
    assert app.first_run is None
    agent.set_status(joined_status())
    qtbot.waitUntil(lambda: app.session.view.joined)
    settings.sync()
    assert settings.value(STATE) == "done"
    assert app.first_run is None


def test_a_pc_whose_own_code_was_refused_is_asked(
    qtbot: QtBot, apps: MakeApp, agent: FakeLocalApi
) -> None:
    agent.set_status(lonely_status(joining="looking"))
    app = apps()
    assert app.first_run is None
    agent.set_status(lonely_status())
    qtbot.waitUntil(lambda: app.first_run is not None)


def test_a_policy_can_skip_all_of_it(apps: MakeApp, agent: FakeLocalApi) -> None:
    agent.pc.policy = {"first_run": False}
    assert apps().first_run is None


def test_there_are_five_pages_at_most() -> None:
    assert len(PAGES) <= 5


# ------------------------------------------------------------------ what is asked


def test_nothing_is_done_before_the_last_page(
    qtbot: QtBot, model: FirstRun, agent: FakeLocalApi
) -> None:
    qtbot.waitUntil(lambda: bool(model.limits))
    model.go_on()
    model.go_on()
    model.set_limit("memory_limit_mb", 4096)
    model.leave()
    assert [path for method, path, _ in agent.requests if method == "POST"] == []


def test_a_way_that_needs_words_waits_for_them(model: FirstRun) -> None:
    model.go_on()
    for way, key in (("join", "code"), ("create", "name")):
        model.choose(way)  # type: ignore[arg-type]
        assert not model.may_go_on
        model.say(**{key: "  "})
        assert not model.may_go_on
        model.say(**{key: "x"})
        assert model.may_go_on


def test_a_code_is_not_kept_on_the_disk(settings: QSettings) -> None:
    keep(settings, Choices(way="join", code=CODE, address="hub:1"))
    assert load(settings) == Choices(way="join", address="hub:1")
    settings.setValue("firstrun/choices", "{nonsense")
    assert load(settings) == Choices()


def test_alone_this_pc_has_to_answer_while_it_is_used(qtbot: QtBot, model: FirstRun) -> None:
    qtbot.waitUntil(lambda: bool(model.limits))
    assert model.wishes == {
        "contribute": True, "contribute_when": "always", "on_battery": True, "cpu_limit": 100,
    }  # fmt: skip
    model.set_limit("on_battery", False)
    assert "on_battery" not in model.wishes
    model.choose("join")
    assert model.wishes == {}, "with others nothing is switched on that nobody has ticked"


def test_what_a_policy_lays_down_is_shown_and_stays(
    qtbot: QtBot, model: FirstRun, agent: FakeLocalApi
) -> None:
    agent.pc.policy = {"contribute_when": "idle", "hub_address": "hub.example.org:8485"}
    model.look()
    qtbot.waitUntil(lambda: any(s.locked for s in model.limits))
    assert "contribute_when" not in model.wishes
    assert model.choices.address == "hub.example.org:8485"
    assert model.hindrance is None
    agent.pc.policy = {"contribute": False}
    model.look()
    qtbot.waitUntil(lambda: model.hindrance is not None)


def test_devices_are_told_with_what_they_could_run() -> None:
    pc = hardware()
    said = [words.could_run(d, pc) for d in pc.devices]
    assert "up to about 16 billion" in said[0]
    assert "up to about 11 billion" in said[1], "8 GB of its own are less than the PC's 12"
    assert "do not run on this kind" in said[2]
    full = hardware(memory_for_models=0, billion_parameters=0.0)
    assert "once there is memory" in words.could_run(full.devices[0], full)
    assert "driver too old" in words.could_run(replace(pc.devices[1], error="driver too old"), pc)


# ------------------------------------------------------------------ what is done


def test_alone_from_limits_to_a_model_that_runs(
    qtbot: QtBot, model: FirstRun, agent: FakeLocalApi
) -> None:
    work = to_work(qtbot, model)
    qtbot.waitUntil(lambda: bool(agent.models.view.jobs))
    job = replace(agent.models.view.jobs[0], phase="downloading", done=42 * MB, total=98 * MB)
    agent.models.put(job)
    qtbot.waitUntil(lambda: work.steps["model"].done == 42 * MB)
    assert work.steps["model"].detail.startswith("Downloading · 40.1 MiB of 93.5 MiB")
    agent.models.put(replace(job, state="done"))
    qtbot.waitUntil(lambda: work.steps["start"].detail == "Compiling")
    assert not work.over
    with qtbot.waitSignal(model.finished):
        agent.pc.go_live()
    assert work.over
    assert agent.pc.values == {
        "contribute": True, "contribute_when": "always", "on_battery": True, "cpu_limit": 100,
    }  # fmt: skip
    assert agent.bodies("/local/v1/models/start") == [{"model": job.model}]


def test_without_a_network_a_file_of_this_pc_will_do(
    qtbot: QtBot, model: FirstRun, agent: FakeLocalApi
) -> None:
    work = to_work(qtbot, model)
    qtbot.waitUntil(lambda: bool(agent.models.view.jobs))
    error = job_error(FleetError("The package index cannot be reached.", remedy="Check the net."))
    agent.models.put(replace(agent.models.view.jobs[0], state="failed", error=error))
    qtbot.waitUntil(lambda: work.failed is not None)
    assert work.failed is not None
    assert "cannot be reached" in str(work.failed.error)
    work.use_file("/data/big.gguf")
    qtbot.waitUntil(lambda: bool(agent.bodies("/local/v1/models/import")))
    assert agent.bodies("/local/v1/models/import") == [{"path": "/data/big.gguf"}]
    assert len(agent.bodies("/local/v1/fleet/create")) == 1, "what is done is not done twice"


def test_stopping_a_download_stops_it_at_the_agent(
    qtbot: QtBot, model: FirstRun, agent: FakeLocalApi
) -> None:
    work = to_work(qtbot, model)
    qtbot.waitUntil(lambda: work.steps["model"].state == "running" and bool(agent.models.view.jobs))
    qtbot.waitUntil(lambda: bool(work.steps["model"].detail))
    job = agent.models.view.jobs[0].job
    work.cancel()
    assert work.failed is not None
    qtbot.waitUntil(lambda: agent.bodies("/local/v1/models/cancel") == [{"job": job}])
    work.begin()
    qtbot.waitUntil(lambda: len(agent.bodies("/local/v1/models/get")) == 2)


def test_an_agent_that_restarts_is_waited_for_and_one_that_is_gone_is_not(
    qtbot: QtBot, session: AgentSession, agent: FakeLocalApi
) -> None:
    now = [100.0]
    work = Work(session, Choices(), clock=lambda: now[0])
    work.begin()
    qtbot.waitUntil(lambda: bool(work.steps["model"].detail))
    agent.refusals["/local/v1/models"] = AgentNotRunning("Gone.")
    seen = len(agent.requests)
    qtbot.waitUntil(lambda: len(agent.requests) > seen + 2)
    assert work.failed is None
    now[0] += PATIENCE
    qtbot.waitUntil(lambda: work.failed is not None)
    agent.refusals.clear()
    work.begin()
    qtbot.waitUntil(lambda: work.failed is None)
    work.cancel()


def test_a_pc_that_joined_in_another_way_is_not_asked_any_more(
    apps: MakeApp, agent: FakeLocalApi
) -> None:
    first = apps()
    assert first.first_run is not None
    first.first_run.model.go_on()
    first.first_run.model._kept.sync()
    first.first_run = None  # as if the PC were switched off
    agent.set_status(joined_status())
    assert apps().first_run is None


def test_a_shard_that_fails_is_said(qtbot: QtBot, model: FirstRun, agent: FakeLocalApi) -> None:
    work = to_work(qtbot, model)
    qtbot.waitUntil(lambda: bool(agent.models.view.jobs))
    agent.models.put(replace(agent.models.view.jobs[0], state="done"))
    qtbot.waitUntil(lambda: bool(agent.bodies("/local/v1/models/start")))
    agent.pc.chains = (chain("m", "preparing", phase="failed", message="Out of memory."),)
    agent.pc.chains = (replace(agent.pc.chains[0], model=work.model),)
    qtbot.waitUntil(lambda: work.failed is not None)
    assert work.failed is not None
    assert "Out of memory." in str(work.failed.error)


def test_creating_ends_with_the_code(qtbot: QtBot, model: FirstRun, agent: FakeLocalApi) -> None:
    model.choose("create")
    model.say(name=" Büro Süd ")
    work = to_work(qtbot, model)
    qtbot.waitUntil(lambda: work.over)
    assert work.code == CODE
    assert agent.bodies("/local/v1/fleet/create") == [{"name": "Büro Süd"}]


def test_a_code_that_the_fleet_refuses_can_be_mended(
    qtbot: QtBot, model: FirstRun, agent: FakeLocalApi
) -> None:
    model.choose("join")
    model.say(code=CODE)
    agent.refusals["/local/v1/fleet/join"] = ExpiredJoinCode("This join code has expired.")
    work = to_work(qtbot, model)
    qtbot.waitUntil(lambda: work.failed is not None)
    assert "has expired" in str(work.failed and work.failed.error)
    while model.page != "way":
        model.go_back()
    agent.refusals.clear()
    model.say(code=CODE)
    work = to_work(qtbot, model)
    qtbot.waitUntil(lambda: work.over)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (CODE[:-1], "The join code has 42 characters after FLEET-, but 43 are needed."),
        (f"{CODE}7", "The join code has 44 characters after FLEET-, but 43 are needed."),
        ("hello", "A join code begins with FLEET-, and this does not."),
        (f"{CODE[:-1]}1", "The join code is mistyped: its check character does not match."),
    ],
)
def test_a_mistyped_code_is_found_on_the_page_where_it_is_typed(
    qtbot: QtBot, window: FirstRunWindow, agent: FakeLocalApi, typed: str, said: str
) -> None:
    window.model.go_on()
    window.model.choose("join")
    window.way.code.setFocus()
    qtbot.keyClicks(window.way.code, typed)
    window.go.click()
    assert window.model.page == "way"
    assert window.notice.label.text() == said
    assert window.notice.isVisible()
    window.way.code.clear()
    qtbot.keyClicks(window.way.code, f" {CODE.lower().replace('-', ' ')}")
    assert not window.notice.isVisible(), "somebody mends it"
    window.go.click()
    assert window.model.page == "pc"


def test_waiting_for_a_yes_outlasts_the_agents_patience(
    qtbot: QtBot, model: FirstRun, agent: FakeLocalApi, settings: QSettings
) -> None:
    model.choose("join")
    model.say(code=CODE)
    agent.refusals["/local/v1/fleet/join"] = NoHub("Joining took too long.")
    agent.held.clear()
    work = to_work(qtbot, model)
    agent.held.set()  # the limits
    agent.held.clear()
    waits = "Waiting for the admin to approve this PC; its id is abcdefghij2345."
    agent.set_status(lonely_status(joining="approval", reason=waits))
    qtbot.waitUntil(lambda: work.awaits_approval)
    qtbot.waitUntil(lambda: work.steps["join"].detail == waits)
    assert load(settings).code == CODE, "to go on waiting after a restart"
    agent.held.set()
    qtbot.waitUntil(lambda: len(agent.bodies("/local/v1/fleet/join")) > 1)
    assert work.failed is None
    agent.refusals.clear()
    qtbot.waitUntil(lambda: work.over)
    assert load(settings).code == ""


def test_a_no_is_final_and_said(qtbot: QtBot, model: FirstRun, agent: FakeLocalApi) -> None:
    model.choose("join")
    model.say(code=CODE)
    no = "The admin declined to let this PC into the fleet."
    agent.refusals["/local/v1/fleet/join"] = NotAMember(no)
    with qtbot.waitSignal(model.declined) as said:
        to_work(qtbot, model)
    assert no in said.args[0]


def test_leaving_while_an_administrator_is_awaited_calls_it_off(
    qtbot: QtBot, model: FirstRun, agent: FakeLocalApi
) -> None:
    model.choose("join")
    model.say(code=CODE)
    agent.held.clear()
    work = to_work(qtbot, model)
    qtbot.waitUntil(lambda: work.running is not None and work.running.name == "join")
    model.leave()
    agent.held.set()
    qtbot.waitUntil(lambda: bool(agent.bodies("/local/v1/fleet/join/stop")))


# ------------------------------------------------------------------ the window


@pytest.fixture
def window(qtbot: QtBot, session: AgentSession, settings: QSettings) -> Iterator[FirstRunWindow]:
    made = FirstRunWindow(session, settings)
    qtbot.addWidget(made)
    made.show()
    yield made
    made.end()


def texts(window: FirstRunWindow) -> str:
    shown = [label.text() for label in window.findChildren(QLabel) if label.isVisible()]
    return "\n".join(shown)


def test_the_keyboard_alone_leads_through(
    qtbot: QtBot, window: FirstRunWindow, agent: FakeLocalApi
) -> None:
    assert "as token ids" in texts(window)
    assert "writes none of it down" in texts(window)
    window.activateWindow()
    qtbot.waitUntil(window.go.hasFocus)
    qtbot.keyClick(window.go, Qt.Key.Key_Space)
    qtbot.waitUntil(window.way.buttons["alone"].hasFocus)
    qtbot.keyClick(window.way.buttons["alone"], Qt.Key.Key_Down)
    qtbot.keyClick(window.way.buttons["join"], Qt.Key.Key_Space)
    assert window.model.choices.way == "join"
    assert not window.go.isEnabled()
    qtbot.keyClicks(window.way.code, CODE)
    qtbot.keyClick(window.go, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: "Clock" in texts(window))
    assert "Neural processor · Intel(R) AI Boost" in texts(window)
    qtbot.keyClick(window.go, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: "contribute" in window.limits.controls)
    qtbot.keyClick(window.limits.controls["contribute"], Qt.Key.Key_Space)
    qtbot.keyClick(window.go, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: "now part of “Office Lisbon”" in texts(window))
    assert agent.pc.values == {"contribute": True}


def test_every_failure_of_the_connection_comes_with_a_remedy(
    qtbot: QtBot, window: FirstRunWindow, agent: FakeLocalApi
) -> None:
    agent.pc.findings = BAD
    window.model.choose("create")
    window.model.say(name="Büro")
    window.model.go_on()
    window.model.go_on()
    qtbot.waitUntil(lambda: BAD[0].remedy in texts(window))
    for finding in BAD:
        assert finding.detail in texts(window)
        assert (finding.remedy in texts(window)) or finding.state == "ok"
    agent.pc.findings = ()
    qtbot.mouseClick(window.pc.again, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: BAD[0].remedy not in texts(window))


def test_a_policy_against_contributing_ends_the_way_alone(
    qtbot: QtBot, window: FirstRunWindow, agent: FakeLocalApi
) -> None:
    agent.pc.policy = {"contribute": False}
    window.model.go_on()
    window.model.look()
    qtbot.waitUntil(lambda: "switched off by Contoso IT" in texts(window))
    assert not window.go.isEnabled()


def test_closing_while_it_works_hides_it_and_the_menu_brings_it_back(
    qtbot: QtBot, apps: MakeApp, agent: FakeLocalApi
) -> None:
    app = apps()
    window = app.first_run
    assert window is not None
    work = to_work(qtbot, window.model)
    qtbot.waitUntil(lambda: bool(agent.models.view.jobs))
    window.close()
    assert not window.isVisible()
    assert work.running is not None
    assert app.actions.set_up.isVisible(), "although this PC is in a fleet by now"
    app.actions.set_up.trigger()
    assert app.first_run is window
    assert window.isVisible()
    window.close()
    agent.models.put(replace(agent.models.view.jobs[0], state="done"))
    said: list[str] = []
    app.notifier.said.connect(lambda title, _text: said.append(title))
    qtbot.waitUntil(lambda: bool(agent.pc.chains))
    agent.pc.go_live()
    qtbot.waitUntil(lambda: app.first_run is None)
    assert said == ["fleetapp is set up"]
    assert app.chats is None, "no window springs up from nowhere"


def test_half_done_it_goes_on_at_the_next_start(
    qtbot: QtBot, apps: MakeApp, agent: FakeLocalApi
) -> None:
    app = apps()
    assert app.first_run is not None
    to_work(qtbot, app.first_run.model)
    qtbot.waitUntil(lambda: bool(agent.models.view.jobs))
    again = apps()
    assert again.first_run is not None
    work = again.first_run.model.work
    assert work is not None
    qtbot.waitUntil(lambda: work.steps["create"].state == "done")
    assert len(agent.bodies("/local/v1/fleet/create")) == 1


def test_every_control_has_a_name_and_takes_the_keyboard(
    qtbot: QtBot, window: FirstRunWindow
) -> None:
    window.model.choose("join")
    window.model.say(code=CODE)
    qtbot.waitUntil(lambda: bool(window.model.limits))
    seen = 0
    while True:
        for kind in (QAbstractButton, QLineEdit, QComboBox, QSpinBox):
            for control in window.findChildren(kind):
                if control.isVisible() and control.objectName() != "qt_spinbox_lineedit":
                    interface = QAccessible.queryAccessibleInterface(control)
                    assert interface.text(QAccessible.Text.Name), control
                    assert control.focusPolicy() & Qt.FocusPolicy.TabFocus, control
                    seen += 1
        if window.model.page == "limits":
            break
        window.model.go_on()
    assert seen > 15


def test_a_full_disk_is_said_with_what_to_do(
    qtbot: QtBot, window: FirstRunWindow, agent: FakeLocalApi
) -> None:
    to_work(qtbot, window.model)
    qtbot.waitUntil(lambda: bool(agent.models.view.jobs))
    full = DiskFull("Getting it needs 9.4 GB, and 2.1 GB are free.")
    job = replace(agent.models.view.jobs[0], state="failed", error=job_error(full))
    agent.models.put(job)
    qtbot.waitUntil(window.work.file.isVisible)
    assert full.message in texts(window)
    assert full.remedy in texts(window)
    qtbot.mouseClick(window.work.again, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(agent.bodies("/local/v1/models/get")) == 2)

"""Messages beside the tray icon: few, and none for who does not want them."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QSettings

from fleetapp.errors import AgentNotRunning
from tests.support.fake_local_api import joined_status, lonely_status
from ui.notifier import QUIET, Notifier
from ui.view import AgentView

FINE = AgentView("connected", joined_status())
WRONG = AgentView("connected", joined_status(state="attention", reason="The clock is wrong."))
GONE = AgentView("stopped", problem=AgentNotRunning("It ended thrice."))
WAITING = AgentView("connected", lonely_status(joining="approval", reason="Waiting."))


class Heard:
    """A notifier, what it said, and a clock."""

    def __init__(self, folder: Path) -> None:
        self.now = 1000.0
        self.said: list[str] = []
        self.settings = QSettings(str(folder / "ui.ini"), QSettings.Format.IniFormat)
        self.notifier = Notifier(self.settings, clock=lambda: self.now)
        self.notifier.said.connect(lambda title, text: self.said.append(f"{title}: {text}"))

    def show(self, *views: AgentView) -> list[str]:
        for view in views:
            self.notifier.show_view(view)
        return self.said


@pytest.fixture
def heard(tmp_path: Path) -> Heard:
    return Heard(tmp_path)


def test_what_goes_well_is_not_worth_a_word(heard: Heard) -> None:
    busy = AgentView("connected", joined_status(state="contributing", contribute=True))
    assert heard.show(AgentView(), FINE, busy, FINE, AgentView("starting"), FINE) == []


def test_what_needs_somebody_is_said_once(heard: Heard) -> None:
    said = ["This PC needs attention: The clock is wrong."]
    assert heard.show(FINE, WRONG, WRONG, FINE, WRONG) == said
    heard.now += QUIET
    assert heard.show(FINE, WRONG) == said * 2


def test_an_agent_that_is_gone_for_good_is_said(heard: Heard) -> None:
    assert heard.show(FINE, AgentView("starting"), GONE, GONE) == [
        "The agent has ended: It ended thrice. " + AgentNotRunning.default_remedy
    ]


def test_the_outcome_of_waiting_for_a_yes(heard: Heard) -> None:
    assert heard.show(WAITING, FINE, FINE) == [
        "This PC was let in: It is now part of “Office Lisbon”."
    ]
    heard.said.clear()
    heard.notifier.declined("No.")
    assert heard.said == [], "it did not wait"
    heard.show(WAITING)
    heard.notifier.declined("No.")
    assert heard.said == ["This PC was not let in: No."]


def test_joining_that_somebody_watches_is_not_told_again(heard: Heard) -> None:
    assert heard.show(AgentView("connected", lonely_status()), FINE) == []


def test_where_the_window_went_is_said_once_for_good(heard: Heard, tmp_path: Path) -> None:
    heard.notifier.closed_to_tray()
    heard.now += 2 * QUIET
    heard.notifier.closed_to_tray()
    assert len(heard.said) == 1
    heard.settings.sync()
    later = Heard(tmp_path)
    later.notifier.closed_to_tray()
    assert later.said == []


def test_switched_off_nothing_is_said(heard: Heard) -> None:
    heard.settings.setValue("notifications", False)
    heard.notifier.closed_to_tray()
    assert heard.show(FINE, WRONG, FINE, GONE, WAITING, FINE) == []
    heard.settings.setValue("notifications", True)
    assert heard.show(WRONG) == ["This PC needs attention: The clock is wrong."]

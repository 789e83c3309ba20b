"""The installed Windows app as a member of a fleet of Linux PCs: it serves, yields and comes back.

The tests of this file follow one another on one PC, as a day does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.packaging.conftest import FOLDER, PREVIOUS, Built
from tests.support.installed import InstalledApp
from tests.support.office import LinuxOffice
from tests.support.served import PROMPTS
from tests.support.wine import Windows
from tests.support.wine_screen import Screen

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]
LONG = 160
LONG_PROMPT = PROMPTS["creative"]
Reference = dict[str, list[int]]


@pytest.fixture(scope="module")
def reference(office: LinuxOffice) -> Reference:
    """What the Linux PCs alone answer under `exact`."""
    office.serve(2)
    found = {kind: office.ask(prompt) for kind, prompt in PROMPTS.items()}
    found["long"] = office.ask(LONG_PROMPT, LONG)
    office.unserve()
    return found


@pytest.fixture(scope="module")
def app(windows: Windows, previous: Built, office: LinuxOffice, screen: Screen) -> InstalledApp:
    """The previous version, installed with a code, started by a double click, contributing."""
    installed = InstalledApp(windows, FOLDER)
    assert installed.install(previous.setup, f"/JOINCODE={office.code()}") == 0
    installed.start()
    installed.agent.connect()
    screen.until(screen.tray_icon, "the tray icon", 120)
    screen.picture("first-start")
    office.until(lambda: "windows" in office.nodes(), "the Windows PC to join with its code", 120)
    office.until(lambda: not (installed.home / "join-code").exists(), "the code to be used up")
    assert office.nodes()["windows"]["contribute"] is False, "nobody has consented yet"
    assert not screen.windows("Set up fleetapp"), "a code says what this PC is for"
    installed.cli("contribute", "on")
    return installed


@pytest.fixture(scope="module")
def serving(app: InstalledApp, office: LinuxOffice, reference: Reference) -> list[str]:
    """A chain over all three PCs."""
    return office.serve(3)


@pytest.fixture(scope="module")
def asking(office: LinuxOffice) -> Iterator[Callable[[], Future[list[int]]]]:
    """Begins a long answer."""
    with ThreadPoolExecutor(2) as pool:
        yield lambda: pool.submit(office.ask, LONG_PROMPT, LONG)


def whole_again(app: InstalledApp, office: LinuxOffice, deadline: float = 240) -> None:
    """Until the chain runs over all three, the Windows PC among them."""
    office.until(
        lambda: any(
            c["state"] == "live" and {a["node"] for a in c["assignments"]} >= {"windows"}
            for c in office.chains()
        ),
        "a chain with the Windows PC in it",
        deadline,
    )
    assert app.runner()


def test_its_tokens_are_those_of_linux_alone(
    serving: list[str], office: LinuxOffice, reference: Reference, app: InstalledApp
) -> None:
    assert "windows" in serving
    assert app.runner(), "a Windows process holds the stage"
    for kind, prompt in PROMPTS.items():
        assert office.ask(prompt) == reference[kind], kind
    assert office.ask(LONG_PROMPT, LONG) == reference["long"]


def test_agent_and_runner_let_others_go_first(serving: list[str], app: InstalledApp) -> None:
    found = app.python(
        "import json, psutil\n"
        "ours = [p for p in psutil.process_iter() if p.name().lower().startswith('fleetapp')]\n"
        "print(json.dumps([[p.name(), p.nice(), ' '.join(p.cmdline())] for p in ours]))"
    )
    runners = [nice for _, nice, line in found if "fleetapp.engine.runner" in line]
    assert runners == [0x4000], f"BELOW_NORMAL_PRIORITY_CLASS; {found}"
    assert not any("conhost" in name.lower() for name, _, _ in found)


def test_a_chat_by_keyboard_and_mouse(
    serving: list[str], app: InstalledApp, screen: Screen, office: LinuxOffice
) -> None:
    screen.until(screen.tray_icon, "the tray icon")
    x, y = screen.tray_icon() or (0, 0)
    screen.do("mousemove", str(x), str(y), "click", "3")
    time.sleep(1)  # for the picture; the menu is no window with a title to wait for
    screen.picture("member-menu")
    screen.do("key", "h")  # Open c&hat
    screen.until(lambda: screen.windows(" - Chat"), "the chat window")
    window = screen.windows(" - Chat")[-1]
    history = app.home / "chats.sqlite3"
    screen.until(history.exists, "the history")
    left, top, width, height = screen.place(window)
    screen.do("mousemove", str(left + width // 2), str(top + height - 50), "click", "1")
    screen.do("type", "--delay", "60", "What is the capital of France?")
    screen.picture("member-typed")
    screen.do("key", "Return")

    screen.until(app.answers, "the answer in the history", 90)
    screen.picture("member-answered")
    assert "Paris" in app.answers()[-1]


def test_switched_off_it_yields_at_once(
    serving: list[str],
    app: InstalledApp,
    office: LinuxOffice,
    reference: Reference,
    asking: Callable[[], Future[list[int]]],
) -> None:
    answer = asking()
    time.sleep(1.0)
    app.agent.post("contribute", on=False)
    pid = app.runner()
    office.until(lambda: not pid or used(pid, 1.0) < 0.1, "the stage to stand still", 15)
    assert answer.result(240) == reference["long"], "others went on with it"
    office.until(lambda: not app.runner(), "the shard's memory to be free", 60)
    app.agent.post("contribute", on=True)
    whole_again(app, office)


def used(pid: int, seconds: float) -> float:
    """Processor seconds that a process uses in so long; none if it is gone."""

    def total() -> float:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = total()
    time.sleep(seconds)
    return max(0.0, total() - before)


def signal_all(pids: Iterable[int], what: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # one may have been on its way out
            os.kill(pid, what)


def test_a_killed_runner_is_replaced_and_the_answer_goes_on(
    serving: list[str],
    app: InstalledApp,
    office: LinuxOffice,
    reference: Reference,
    asking: Callable[[], Future[list[int]]],
) -> None:
    whole_again(app, office)
    answer = asking()
    time.sleep(1.0)
    killed = app.runners()
    assert killed
    signal_all(killed, signal.SIGKILL)
    assert answer.result(240) == reference["long"]
    whole_again(app, office)
    assert not set(app.runners()) & set(killed)


def test_no_runner_survives_its_agent(
    serving: list[str], app: InstalledApp, office: LinuxOffice
) -> None:
    whole_again(app, office)
    runners = app.runners()
    signal_all(runners, signal.SIGSTOP)  # deaf: they cannot end by themselves
    workers = app.windows.processes("fleetapp-worker.exe")
    agent = next(process for process, line in workers.items() if "agent" in line)
    agent.kill()

    def left() -> set[int]:
        return set(runners) & set(app.runners())

    try:
        office.until(lambda: not left(), "the runners to end with their agent", 15)
    finally:
        signal_all(left(), signal.SIGCONT)
    app.agent.connect()  # the tray starts another
    whole_again(app, office)


def test_an_upgrade_while_it_serves(
    serving: list[str],
    app: InstalledApp,
    office: LinuxOffice,
    built: Built,
    reference: Reference,
    asking: Callable[[], Future[list[int]]],
) -> None:
    whole_again(app, office)
    device = office.nodes()["windows"]["device_id"]
    assert PREVIOUS in app.cli("--version")
    chats = (app.home / "chats.sqlite3").read_bytes()
    answer = asking()
    assert app.install(built.setup) == 0
    assert answer.result(240) == reference["long"]
    assert PREVIOUS not in app.cli("--version")
    app.agent.connect()  # what ran before runs again
    assert any("FleetApp.exe" in line for line in app.running())
    whole_again(app, office)
    assert office.nodes()["windows"]["device_id"] == device
    assert len((app.home / "chats.sqlite3").read_bytes()) >= len(chats)
    assert office.ask(LONG_PROMPT, LONG) == reference["long"]


def test_removed_while_it_serves_it_leaves_nothing(
    serving: list[str], app: InstalledApp, office: LinuxOffice, reference: Reference
) -> None:
    app.uninstall("/REMOVEDATA")
    assert not app.running()
    assert not app.home.exists()
    office.until_live(2)
    assert office.ask(LONG_PROMPT, LONG) == reference["long"]

"""The whole desktop on a real fleet: real agents, real icons, a real mouse and keyboard.

The app runs as it is started by people: on the coordinator, where an admin uses it, with its icon
in a panel; and on another PC, where somebody only wants to be left in peace, with its icon shown by
the StatusNotifier protocol.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fleetapp.errors import AgentNotRunning
from tests.support.agents import AgentProcess
from tests.support.person import Person
from tests.support.sample_model import MODEL, sample_library
from tests.support.screen import MISSING, Screen, end, wait_for
from ui.endpoint import process_alive, read_endpoint

ABSENT = [*MISSING, *(["dbus-daemon"] if shutil.which("dbus-daemon") is None else [])]

pytestmark = [
    pytest.mark.model,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="needs an X server"),
    pytest.mark.skipif(
        bool(ABSENT), reason=f"not installed: {', '.join(ABSENT)} (see debian-packages.txt)"
    ),
]

if sys.platform == "linux":
    from tests.support.notifier_host import NotifierHost

SLOW = 60.0
"""Seconds for what computes."""
QUESTION = "Write a long story about a lighthouse."
TOKENS = 200
CONTRIBUTE = "Contribute idle AI time"
CHAT = "desktop.chats.windows[0]"
ANSWER = f"desktop.chats.model.messages({CHAT}.current)[-1]"


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[AgentProcess]]:
    """Four agents; the first three are a fleet that serves the sample model, all on each PC."""
    folder = tmp_path_factory.mktemp("office")
    more = {"models_dir": str(sample_library()), "threads": "1", "release_after": "3"}
    agents = [AgentProcess(folder / f"José {n}", f"DESK-{n}", **more) for n in (1, 2, 3, 4)]
    with ExitStack() as stack:
        starting = [threading.Thread(target=agent.start) for agent in agents]
        for agent, thread in zip(agents, starting, strict=True):
            agent.home.mkdir()
            stack.callback(agent.stop)
            thread.start()
        for thread in starting:
            thread.join()
        first, second, third, _ = agents
        code = first.create("Büro Süd")
        for agent in (second, third):
            agent.post("fleet/join", code=code, hub_address=first.hub_address)
        for agent in (first, second, third):
            agent.post("contribute", on=True)
        first.post("models/start", model=MODEL, precision="exact", stages=3)
        first.until(lambda agent: len(serving(agent)) == 3, 2 * SLOW)
        yield agents


def serving(agent: AgentProcess) -> set[str]:
    """Devices of the chain that answers."""
    chains = agent.get("fleet")["chains"]
    live = [chain for chain in chains if chain["state"] == "live"]
    return {a["device_id"] for chain in live for a in chain["assignments"]}


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    with ExitStack() as stack:
        # without a window manager a window that is larger would cover the panel
        yield Screen(stack, tmp_path, size="1440x900")


@pytest.fixture
def bus() -> Iterator[str]:
    """Address of a session bus."""
    command = ["dbus-daemon", "--session", "--nofork", "--print-address"]
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert daemon.stdout is not None
    yield daemon.stdout.readline().strip()
    end(daemon)


@pytest.fixture
def host(bus: str) -> Iterator[NotifierHost]:
    """A desktop that shows icons by the protocol."""
    made = NotifierHost(bus)
    yield made
    made.close()


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[AgentProcess]:
    """A fleet of one that answers."""
    home = tmp_path / "José alone"
    home.mkdir()
    more = {"models_dir": str(sample_library()), "threads": "1"}
    with AgentProcess(home, "DESK-1", **more) as agent:
        agent.create("Büro Süd")
        agent.post("contribute", on=True)
        agent.post("models/start", model=MODEL, precision="exact")
        agent.until(lambda agent: bool(serving(agent)), 2 * SLOW)
        yield agent
        # the one that the app has started in its stead, should the test have ended early
        with contextlib.suppress(AgentNotRunning):
            if (pid := read_endpoint(home).pid) != agent.pid:
                os.kill(pid, signal.SIGTERM)


class Admin(Person):
    """At the coordinator, with the fleet view and the chat."""

    def row(self, device: str, column: str = "state") -> str:
        """What the table of PCs says of one; an expression."""
        nodes = "desktop.fleet.nodes.rows"
        place = f"[c.key for c in __import__('ui.fleet.rows').fleet.rows.COLUMNS].index('{column}')"
        return f"{nodes}.index({nodes}.row_of('{device}'), {place}).data()"

    def picks(self, device: str) -> None:
        """A PC in the table."""
        nodes = "desktop.fleet.nodes"
        self.opens_tab("nodes")
        rows = f"{nodes}.rows"
        self.clicks_at(f"spot_of_row({nodes}.table, {rows}.index({rows}.row_of('{device}'), 0))")
        self.waits(f"[n.device_id for n in {nodes}.chosen()] == ['{device}']")

    def orders(self, command: str) -> None:
        """What is in the menu for the chosen PC; yes to the question."""
        nodes = "desktop.fleet.nodes"
        self.clicks(f"{nodes}.more")
        self.clicks_at(f"spot_of_action({nodes}.menu, {nodes}.actions_of['{command}'])")
        self.clicks_at(f"spot_of_yes({nodes}.question)")

    def opens_tab(self, page: str) -> None:
        """One of the fleet view."""
        tabs = "desktop.fleet.tabs"
        index = f"{tabs}.indexOf(desktop.fleet.{page})"
        self.clicks_at(f"spot({tabs}.tabBar(), {tabs}.tabBar().tabRect({index}).center())")
        self.waits(f"desktop.fleet.{page}.isVisible()")

    def opens_chat(self) -> None:
        """And a new one."""
        self.chooses_entry("chat")
        self.waits(f"bool(desktop.chats.model.models) and {CHAT}.isActiveWindow()")
        self.presses("ctrl+n")

    def limits_answers(self, tokens: int) -> None:
        """In the options of the chat."""
        self.presses("ctrl+period")
        self.clicks(f"{CHAT}.options.length")
        self.presses("ctrl+a")
        self.types(str(tokens), "Tab")
        self.presses("ctrl+period")
        self.waits(f"desktop.chats.model.options({CHAT}.current).max_tokens == {tokens}")

    def asks(self, question: str) -> None:
        """In the chat; returns when the answer has begun."""
        self.clicks(f"{CHAT}.composer.text")
        self.types(question, "Return")
        self.waits(f"{ANSWER}.role == 'assistant' and len({ANSWER}.text) > 20", SLOW)

    def answer(self) -> str:
        """To its end."""
        self.waits("not desktop.chats.model.busy", 2 * SLOW)
        assert self.sees(f"{ANSWER}.failure and str({ANSWER}.failure)") is None
        return str(self.sees(f"{ANSWER}.text"))


def test_an_admin_and_an_employee_at_their_pcs(
    office: list[AgentProcess], screen: Screen, bus: str, host: NotifierHost
) -> None:
    _, second, third, fourth = office
    device = [agent.get("status")["device_id"] for agent in office]
    admin = Admin(screen, office[0].home)
    employee = Person(screen, second.home, DBUS_SESSION_BUS_ADDRESS=bus)
    host.wait_for_icon()
    wait_for(screen.icon_position, "the icon in the panel")
    employee.waits("desktop.session.view.icon == 'contributing'")
    wait_for(lambda: "Contributing" in host.tooltip(), "the state in the employee's tooltip")
    assert host.menu()[CONTRIBUTE]["toggle-state"] == 1
    admin.waits("desktop.session.view.admin")

    # a streamed answer, undisturbed
    admin.opens_chat()
    admin.limits_answers(TOKENS)
    admin.asks(QUESTION)
    begun = admin.sees(f"{ANSWER}.text")
    screen.picture("chat while an answer comes")
    undisturbed = admin.answer()
    assert undisturbed.startswith(begun)
    assert len(undisturbed) > len(begun)
    assert sorted(admin.sees(f"list({ANSWER}.served.devices)")) == ["DESK-1", "DESK-2", "DESK-3"]

    # the employee takes the PC back while another answer comes; the admin looks at the fleet
    admin.chooses_entry("fleet")
    admin.waits("desktop.fleet.pulse.nodes.number.text() == '3/3'")
    admin.waits(f"{admin.row(device[1])} == 'Working'")
    admin.opens_chat()
    admin.asks(QUESTION)
    host.choose(CONTRIBUTE)
    chosen = time.monotonic()
    assert admin.sees("desktop.chats.model.busy")
    admin.waits(f"{admin.row(device[1])} == 'Not working · its user has not agreed'")
    shown = time.monotonic() - chosen
    screen.picture("fleet without the employee's PC")
    wait_for(lambda: host.menu()[CONTRIBUTE]["toggle-state"] == 0, "the employee's menu")
    assert admin.answer() == undisturbed
    assert "DESK-2" not in admin.sees(f"list({ANSWER}.served.devices)")
    assert shown < 1.0
    host.choose(CONTRIBUTE)

    # drained by clicking
    admin.chooses_entry("fleet")
    admin.picks(device[2])
    admin.clicks("desktop.fleet.nodes._buttons['drain']")
    admin.waits(f"{admin.row(device[2])} == 'Drained by an admin'")

    # a join with approval
    admin.opens_tab("codes")
    admin.clicks("desktop.fleet.codes.approve")
    admin.clicks("desktop.fleet.codes.button")
    code = admin.waits("desktop.fleet.codes.secret.field.text()")
    body = {"code": code, "hub_address": office[0].hub_address}
    joining = threading.Thread(target=fourth.post, args=("fleet/join",), kwargs=body, daemon=True)
    joining.start()
    line = "desktop.fleet.attention.lines[0]"
    admin.waits(f"{line}.text.text() == 'DESK-4 asks to join.'")
    assert device[3] in admin.sees(f"{line}.detail.text()"), "the same id as on its own screen"
    admin.clicks(f"{line}.approve")
    screen.picture("fleet with a question")
    admin.clicks_at("spot_of_yes(desktop.fleet.nodes.question)")
    joining.join(SLOW)
    # the list of what needs attention has become shorter, and what is below it has moved
    admin.waits(f"{admin.row(device[3])} != 'Waits for approval'")
    admin.waits("len(desktop.fleet.model.concerns) == 1")
    assert fourth.get("status")["fleet_id"] == office[0].get("status")["fleet_id"]

    # evicted and shut out
    admin.picks(device[2])
    admin.orders("evict")
    third.until(lambda agent: not agent.get("status")["hub"])
    admin.waits(f"desktop.fleet.nodes.rows.row_of('{device[2]}') < 0")
    admin.picks(device[3])
    admin.orders("revoke")
    admin.waits(f"{admin.row(device[3])} == 'Shut out'")
    # which of the two it says depends on whether it has read the farewell before the line was cut
    said = ("was removed", "does not count this PC as a member")
    fourth.until(lambda agent: any(part in agent.get("status")["reason"] for part in said))
    screen.picture("fleet at the end")

    # who is left still answers
    left = set(device[:2])
    office[0].until(lambda agent: bool(on := serving(agent)) and on <= left, SLOW)
    admin.opens_chat()
    admin.asks(QUESTION)
    assert admin.answer() == undisturbed
    assert (admin.app.poll(), employee.app.poll()) == (None, None)


@pytest.mark.slow
def test_what_breaks_comes_back(screen: Screen, alone: AgentProcess) -> None:
    admin = Admin(screen, alone.home, **alone.variables)
    wait_for(screen.icon_position, "the icon in the panel")
    admin.waits("desktop.session.view.admin")
    admin.chooses_entry("fleet")
    admin.waits("desktop.fleet.model.freshness == 'live'")
    admin.opens_chat()
    admin.limits_answers(TOKENS)
    admin.asks(QUESTION)
    admin.types("not sent yet")

    # the agent is killed while it answers
    begun = admin.sees(f"{ANSWER}.text")
    alone.kill()
    killed = time.monotonic()
    admin.waits(f"{ANSWER}.status == 'failed'", 5.0)
    assert "fleetapp starts it again" in admin.sees(f"str({ANSWER}.failure)")
    assert admin.sees(f"{ANSWER}.text").startswith(begun)
    admin.waits(f"{CHAT}.agent_line.isVisible()", 5.0)
    assert "agent on this PC is starting" in admin.sees(f"{CHAT}.agent_line.text()")
    assert admin.sees(f"{CHAT}.composer.current_text()") == "not sent yet"
    admin.waits("desktop.fleet.model.freshness == 'stale'")
    assert "What you see is the state of" in admin.waits("desktop.fleet.trouble.label.text()")
    screen.picture("agent killed")
    admin.waits("desktop.session.view.link == 'connected'", SLOW)
    assert time.monotonic() - killed < 30
    admin.waits(f"not {CHAT}.agent_line.isVisible()")
    admin.waits("desktop.fleet.model.freshness == 'live' and not desktop.fleet.trouble.isVisible()")
    again = read_endpoint(alone.home).pid
    assert again != alone.pid
    # what it served it serves again
    admin.waits("desktop.session.view.icon == 'contributing'", SLOW)
    admin.clicks(f"{CHAT}.thread_view._items[-1].view._footer.retry")
    admin.waits(f"{ANSWER}.status == 'writing' and len({ANSWER}.text) > 20", SLOW)
    admin.waits(f"desktop.chats.model.store.messages({CHAT}.current)[-1].text")
    assert admin.sees(f"{CHAT}.composer.current_text()") == "not sent yet"

    # the app is killed while the agent answers
    admin.app.kill()
    admin.app.wait(10)
    assert process_alive(again)
    admin = Admin(screen, alone.home, **alone.variables)
    admin.waits("desktop.session.view.icon == 'contributing'")
    assert read_endpoint(alone.home).pid == again
    wait_for(screen.icon_position, "the icon in the panel")
    admin.chooses_entry("chat")
    admin.waits(f"{CHAT}.isVisible()")
    assert admin.sees(f"{ANSWER}.status") == "interrupted"
    assert admin.sees(f"{ANSWER}.text")
    assert admin.sees(f"{CHAT}.composer.current_text()") == "not sent yet"
    screen.picture("app killed")

    # started again while it runs
    second = Admin(screen, alone.home, **alone.variables)
    assert second.app.wait(10) == 0
    admin.waits("desktop.window.isVisible()")

    # and the end of it, by the menu
    admin.chooses_entry("quit")
    admin.clicks_at("spot_of_yes(desktop.question)")
    assert admin.app.wait(SLOW) == 0
    assert not process_alive(again)

"""What the fleet window knows: the newest view, whether it still holds, and what is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal

from fleetapp.errors import Cancelled, FleetError
from fleetapp.types import FleetView, NodeView
from ui.client import Call
from ui.coalesce import Coalescer
from ui.fleet import troubles, words
from ui.fleet.attention import Concern, concerns
from ui.fleet.commands import CommandName, Rights, request, rights_of
from ui.fleet.pulse import History, Pulse, pulse_of
from ui.fleet.rows import Office, Row, office_of, rows_of
from ui.session import AgentSession
from ui.stream import EventStream
from ui.view import AgentView

translate = QCoreApplication.translate

LARGEST_VIEW = 32 * 1024 * 1024
"""Bytes of one view; ten thousand PCs are about five million."""
TICK_MS = 1000
Freshness = Literal["none", "waiting", "live", "stale"]
"""No fleet; nothing heard yet; as it is now; as it was when the coordinator was last heard of."""


class FleetModel(QObject):
    """Follows the fleet while it is watched, and carries out what an admin wants."""

    changed = Signal()
    """Anything below is new; at most 30 times a second."""
    ticked = Signal()
    """A second has passed: charts move, ages grow."""
    refused = Signal(object)
    """A FleetError: something that was asked for did not happen."""

    def __init__(
        self,
        session: AgentSession,
        parent: QObject | None = None,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self.session = session
        self.view: FleetView | None = None
        self.heard = 0.0
        """When the newest view came, in Unix seconds."""
        self.problem: FleetError | None = None
        """Why nothing newer comes."""
        self.pulse = Pulse()
        self.history = History()
        self.rows: list[Row] = []
        self.office = Office()
        self.concerns: list[Concern] = []
        self.watched = False
        self.wall = wall
        self.clock = clock
        self._calls: set[Call] = set()
        status = session.view.status
        self._fleet = status.fleet_id if status is not None else ""
        self._coalescer = Coalescer(self)
        self._coalescer.passed.connect(self._take)
        self._stream = EventStream(
            session.client, "/local/v1/fleet/events", FleetView, self, LARGEST_VIEW
        )
        self._stream.received.connect(self._received)
        self._stream.lost.connect(self._lost)
        self._tick = QTimer(self, interval=TICK_MS)
        self._tick.timeout.connect(self._ticked)
        session.changed.connect(self._agent_changed)

    # ------------------------------------------------------------------ watching

    def watch(self, on: bool) -> None:
        """Follow the fleet, or leave it alone: nothing is asked while nobody looks."""
        if on == self.watched:
            return
        self.watched = on
        if on:
            self._tick.start()
            self._follow()
        else:
            self._tick.stop()
            self._stream.stop()
        self.changed.emit()

    @property
    def freshness(self) -> Freshness:
        """What the newest view is worth."""
        if self.view is None:
            status = self.session.view.status
            return "none" if status is not None and not status.fleet_id else "waiting"
        return "live" if self.problem is None and self.reachable else "stale"

    @property
    def reachable(self) -> bool:
        """Whether this PC's agent is there and connected to the coordinator."""
        agent = self.session.view
        return agent.status is not None and agent.status.state != "connecting"

    @property
    def rights(self) -> Rights:
        """What the person may do here; nothing while the coordinator cannot hear it."""
        return rights_of(self.session.view.status)

    @property
    def trouble(self) -> str:
        """Why what is shown is old, and since when; empty if it is not."""
        if self.freshness != "stale":
            return ""
        return translate("Fleet", "{why} What you see is the state of {time}.").format(
            why=self.why.strip(), time=words.clock(self.heard)
        )

    @property
    def why(self) -> str:
        """Why nothing new comes, and what happens next; empty if nothing is wrong."""
        agent = self.session.view
        if agent.status is None:
            return troubles.of_agent(agent)
        if not self.reachable:
            return troubles.of_connection(agent.status)
        return "" if self.problem is None else troubles.of_fleet(agent.status, self.problem)

    def node(self, device_id: str) -> NodeView | None:
        """One PC of the newest view."""
        if self.view is None:
            return None
        return next((n for n in self.view.nodes if n.device_id == device_id), None)

    # ------------------------------------------------------------------ asking

    def ask(
        self, path: str, body: object, result: type[Any] | None, done: Callable[[Any], object],
        deadline: float = 30.0,
    ) -> Call:  # fmt: skip
        """POST; a refusal is told by ``refused``."""
        return self.follow(self.session.client.post(path, body, result, deadline), done)

    def read(
        self, path: str, result: type[Any], done: Callable[[Any], object], deadline: float = 30.0
    ) -> Call:
        """GET."""
        return self.follow(self.session.client.get(path, result, deadline), done)

    def delete(self, path: str, done: Callable[[Any], object]) -> Call:
        """DELETE."""
        return self.follow(self.session.client.delete(path), done)

    def follow(self, call: Call, done: Callable[[Any], object]) -> Call:
        """Tell ``refused`` if it fails."""
        return call.then(done, self._refused)

    def carry_out(
        self, command: CommandName, nodes: Sequence[NodeView], name: str = ""
    ) -> list[Call]:
        """Give a command for each of these PCs; the next view shows the outcome."""
        calls = []
        for node in nodes:
            path, body = request(command, node, name)
            calls.append(self.ask(path, body, None, lambda _: None))
        return calls

    def rename_fleet(self, name: str) -> Call | None:
        """Call the fleet itself so; an empty name is none."""
        if not name.strip():
            return None
        return self.ask("/local/v1/fleet/name", {"name": name.strip()}, None, lambda _: None)

    def _refused(self, error: FleetError) -> None:
        if not isinstance(error, Cancelled):
            self.refused.emit(error)

    # ------------------------------------------------------------------ what comes

    def _follow(self) -> None:
        status = self.session.view.status
        if self.watched and status is not None and status.fleet_id:
            self._stream.connect_now()

    def _agent_changed(self, agent: AgentView) -> None:
        status = agent.status
        if status is not None and status.fleet_id != self._fleet:
            # another fleet, or none: nothing of the one before may stand
            self._fleet = status.fleet_id
            self._stream.stop()
            self._forget()
        self._follow()
        self.changed.emit()

    def _forget(self) -> None:
        self.view, self.problem = None, None
        self.pulse, self.history = Pulse(), History()
        self.rows, self.concerns = [], []

    def _received(self, view: FleetView) -> None:
        self._coalescer.submit(view)

    def _take(self, view: object) -> None:
        if not isinstance(view, FleetView) or view.fleet_id != self._fleet:
            return  # of a fleet that this PC has left meanwhile
        self.view, self.heard, self.problem = view, self.wall(), None
        self.pulse = pulse_of(view)
        self.office = office_of(view, self.heard)
        self.rows = rows_of(view)
        self.concerns = concerns(view, self.office)
        self.changed.emit()

    def _lost(self, error: FleetError) -> None:
        self.problem = error
        status = self.session.view.status
        if status is not None and not status.fleet_id:
            self._stream.stop()
        self.changed.emit()

    def _ticked(self) -> None:
        live = self.freshness == "live"
        self.history.add(self.clock(), self.pulse if live else None)
        self.ticked.emit()

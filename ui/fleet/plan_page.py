"""Who serves what, drawn; what the planner thought; what would be if."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from fleetapp.errors import FleetError
from fleetapp.types import ChainView
from ui import agent_words, theme
from ui.chat.safe_text import one_line
from ui.client import Call
from ui.fleet import words
from ui.fleet.chain_picture import ChainPicture, boxes_of, planned_boxes
from ui.fleet.model import FleetModel
from ui.fleet.text_table import Entry, TextTable
from ui.fleet.values import FleetPlan, ModelPlan
from ui.widgets.card import Card, text_label
from ui.widgets.notice import Notice

PLAN_DEADLINE = 60.0
"""Seconds; a plan for a large office takes a few."""
SETTLE_MS = 600
"""After a change of the chains, before the planner is asked anew."""


class ChainCard(Card):
    """One chain as it is."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.state = text_label(muted=True)
        self.picture = ChainPicture()
        self.standbys = text_label(muted=True)
        self.rows.addWidget(self.state)
        self.rows.addWidget(self.picture)
        self.rows.addWidget(self.standbys)

    def show_chain(self, chain: ChainView, *, stale: bool) -> None:
        """Show its newest state."""
        name = self.tr("{model} · {precision}").format(
            model=chain.model, precision=words.precision(chain.precision)
        )
        self.set_title(name)
        said = [words.chain_state(chain)]
        if chain.reason and chain.state != "live":
            said.append(one_line(agent_words.said(chain.reason)))
        load = chain.load
        if load is not None and load.step > 0:
            said.append(
                self.tr("{tokens} tokens/s, {step} for a token, {wire} of it between PCs").format(
                    tokens=words.number(load.tokens_per_second),
                    step=words.milliseconds(load.step),
                    wire=words.milliseconds(load.wire),
                )
            )
        said.append(
            self.tr("{running} answers being written, {waiting} waiting").format(
                running=chain.running, waiting=chain.waiting
            )
        )
        self.state.setText(" · ".join(said))
        theme.mark_error(self.state, on=chain.state == "broken")
        self.picture.show_boxes(boxes_of(chain), name, pale=stale)
        self.picture.setVisible(bool(chain.assignments))
        held = [
            self.tr("{node} (layers {layers})").format(node=one_line(a.node), layers=a.layers)
            for a in chain.standbys
        ]
        self.standbys.setText(
            self.tr("Held ready, to take over when a PC leaves: {pcs}").format(pcs=", ".join(held))
        )
        self.standbys.setVisible(bool(held))


class ModelPlanCard(Card):
    """What the planner says about one model."""

    def __init__(self, plan: ModelPlan, *, drawn: bool, parent: QWidget | None = None) -> None:
        title = self.tr("Plan for {model}, {users} at once").format(
            model=plan.model_id, users=plan.users
        )
        super().__init__(title, parent)
        if drawn:
            for number, chain in enumerate(plan.chains, 1):
                picture = ChainPicture()
                name = self.tr("Planned chain {n}").format(n=number)
                picture.show_boxes(planned_boxes(chain), name)
                self.rows.addWidget(picture)
        for sentence in plan.sentences:
            label = text_label(one_line(sentence))
            theme.mark_error(label, on=not plan.chains)
            self.rows.addWidget(label)
        if not plan.alternatives:
            return
        self.table = TextTable(
            self.tr("Ways to serve {model}").format(model=plan.model_id),
            (
                self.tr("Way"),
                self.tr("One user, tokens/s"),
                self.tr("{n} at once, tokens/s").format(n=plan.users),
                self.tr("PCs"),
            ),
            (22, 20, 24, 30),
            right=(1, 2),
        )
        rows = [
            Entry("", (self.tr("this plan"), words.number(plan.one_user),
                       words.number(plan.tokens_per_second), _pcs(plan)))
        ]  # fmt: skip
        rows += [
            Entry(a.way, (self._way(a.way), words.number(a.one_user),
                          words.number(a.tokens_per_second), ", ".join(map(one_line, a.nodes))))
            for a in plan.alternatives
        ]  # fmt: skip
        self.table.entries.show(rows)
        height = self.table.verticalHeader().defaultSectionSize() * len(rows)
        self.table.setFixedHeight(height + self.table.horizontalHeader().sizeHint().height() + 18)
        self.rows.addWidget(self.table)

    def _way(self, way: str) -> str:
        known = {
            "one PC": self.tr("one PC alone"),
            "replicas": self.tr("the whole model on several PCs"),
            "split": self.tr("one chain over PCs"),
        }
        return known.get(way, way)


def _pcs(plan: ModelPlan) -> str:
    names = [one_line(s.name) for c in plan.chains for s in c.stages]
    return ", ".join(dict.fromkeys(names))


class PlanPage(QWidget):
    """Chains, plans, and a line to play with."""

    def __init__(self, model: FleetModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._chains: dict[str, ChainCard] = {}
        self._plans: list[ModelPlanCard] = []
        self._call: Call | None = None
        self._asked_for: object = None
        self.notice = Notice()
        self.empty = text_label(muted=True)
        self.what_if = QLineEdit(
            placeholderText=self.tr(
                "What if: +16 (a PC with 16 GB), -NAME, model=NAME, users=20; several with commas"
            )
        )
        self.what_if.setAccessibleName(self.tr("What if"))
        self.what_if.setClearButtonEnabled(True)
        self.what_if.returnPressed.connect(self.ask)
        self.what_if.textChanged.connect(lambda text: None if text else self.ask())
        self.go = QPushButton(self.tr("&Plan"))
        self.go.setAutoDefault(False)
        self.go.clicked.connect(self.ask)
        bar = QHBoxLayout()
        bar.setSpacing(theme.GRID)
        bar.addWidget(self.what_if, 1)
        bar.addWidget(self.go)
        pane = QWidget()
        pane.setObjectName("pane")
        self._column = QVBoxLayout(pane)
        self._column.setContentsMargins(0, 0, theme.GRID, 0)
        self._column.setSpacing(2 * theme.GRID)
        self._column.addWidget(self.empty)
        self._column.addStretch(1)
        scroll = QScrollArea(widgetResizable=True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidget(pane)
        scroll.setAccessibleName(self.tr("Chains and plans"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, theme.GRID, 0, 0)
        column.setSpacing(theme.GRID)
        column.addLayout(bar)
        column.addWidget(self.notice)
        column.addWidget(scroll, 1)
        self._later = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._later.timeout.connect(self.ask)
        model.changed.connect(self._changed)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """The planner is asked when somebody looks."""
        super().showEvent(event)
        self._changed()
        self.ask()

    def ask(self) -> None:
        """What the planner would do now, or if."""
        self._later.stop()
        rights = self._model.rights
        if not rights.coordinates or not self.isVisible():
            return
        changes = [c.strip() for c in self.what_if.text().split(",") if c.strip()]
        if self._call is not None:
            self._call.cancel()
        body = {"what_if": changes}
        call = self._model.session.client.post(
            "/local/v1/fleet/plan", body, FleetPlan, PLAN_DEADLINE
        )
        self._call = call.then(self._planned, self._failed)

    def _planned(self, plan: FleetPlan) -> None:
        self._call = None
        self.notice.clear()
        self._show_plans(plan.models, drawn=bool(self.what_if.text().strip()))

    def _failed(self, error: FleetError) -> None:
        if error.code != "cancelled":
            self._call = None
            self.notice.show_error(error)

    def _changed(self) -> None:
        if not self.isVisible():
            return
        view = self._model.view
        chains = view.chains if view is not None else ()
        stale = self._model.freshness == "stale"
        for name in self._chains.keys() - {c.chain for c in chains}:
            card = self._chains.pop(name)
            self._column.removeWidget(card)
            card.deleteLater()
        for place, chain in enumerate(chains):
            if chain.chain not in self._chains:
                self._chains[chain.chain] = ChainCard()
                self._column.insertWidget(1 + place, self._chains[chain.chain])
            self._chains[chain.chain].show_chain(chain, stale=stale)
        self.empty.setText(
            self.tr("No model is served. Start one in the tab “Models”.") if not chains else ""
        )
        self.empty.setVisible(not chains)
        coordinates = self._model.rights.coordinates
        self.what_if.setEnabled(coordinates)
        self.go.setEnabled(coordinates)
        if not coordinates:
            self.what_if.setPlaceholderText(
                self.tr("The planner can be asked on the coordinator's PC only.")
            )
        layout = [(c.chain, c.state, [a.device_id for a in c.assignments]) for c in chains]
        if layout != self._asked_for:
            self._asked_for = layout
            self._later.start()

    def _show_plans(self, plans: Sequence[ModelPlan], *, drawn: bool) -> None:
        for card in self._plans:
            self._column.removeWidget(card)
            card.deleteLater()
        self._plans = [ModelPlanCard(plan, drawn=drawn) for plan in plans]
        for card in self._plans:
            # above the stretch that ends the column
            self._column.insertWidget(self._column.count() - 1, card)

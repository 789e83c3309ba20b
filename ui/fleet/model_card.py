"""One model of the library: what it is, which plan it would get and why, start and stop."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from fleetapp.errors import Cancelled, FleetError
from fleetapp.types import LibraryModel
from ui import theme
from ui.chat.safe_text import one_line
from ui.client import Call
from ui.fleet import words
from ui.fleet.chain_picture import ChainPicture, planned_boxes
from ui.fleet.model import FleetModel
from ui.fleet.models_model import Serving, facts, licence
from ui.fleet.plan_page import PLAN_DEADLINE
from ui.fleet.values import FleetPlan
from ui.widgets.card import Card, text_label

ASK_MS = 150
"""After the selection has moved: somebody who goes down the list asks once."""
MOST_STAGES = 1000


class ModelCard(Card):
    """Follows a choice in the library."""

    start_asked = Signal(object, int)
    """Precision or None for the setting; stages, 0 for automatic."""
    stop_asked = Signal()
    remove_asked = Signal()
    verify_asked = Signal()

    def __init__(self, model: FleetModel, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self._model = model
        self._shown: LibraryModel | None = None
        self._call: Call | None = None
        self.title.setWordWrap(True)
        self.facts = text_label(muted=True)
        self.licence = text_label(muted=True)
        self.state = text_label()
        self.plan_title = theme.heading(QLabel(self.tr("If it were served alone")), 1.0)
        self.pictures = QVBoxLayout()
        self.pictures.setSpacing(theme.GRID)
        self.plan = text_label()
        self.precision = QComboBox()
        for text, value in (
            (self.tr("as in the settings"), None),
            (words.precision("fast"), "fast"),
            (words.precision("exact"), "exact"),
        ):
            self.precision.addItem(text, value)
        self.stages = QSpinBox(minimum=0, maximum=MOST_STAGES)
        theme.padded(self.stages)
        self.stages.setSpecialValueText(self.tr("automatic"))
        self.start = QPushButton(self.tr("&Start"))
        self.stop = QPushButton(self.tr("S&top…"))
        self.verify = QPushButton(self.tr("Veri&fy"))
        self.verify.setToolTip(self.tr("Hash every part again and compare"))
        self.remove = QPushButton(self.tr("Re&move…"))
        self.start.clicked.connect(
            lambda: self.start_asked.emit(self.precision.currentData(), self.stages.value())
        )
        self.stop.clicked.connect(self.stop_asked)
        self.verify.clicked.connect(self.verify_asked)
        self.remove.clicked.connect(self.remove_asked)
        self.form = QFormLayout()
        self.form.setSpacing(theme.GRID)
        for label, field in (
            (self.tr("&Precision"), self.precision),
            (self.tr("Stag&es"), self.stages),
        ):
            field.setAccessibleName(label.replace("&", ""))
            self.form.addRow(label, field)
        buttons = QHBoxLayout()
        buttons.setSpacing(theme.GRID)
        for button in (self.start, self.stop, self.verify, self.remove):
            button.setAutoDefault(False)
            buttons.addWidget(button)
        buttons.addStretch(1)
        for part in (self.facts, self.licence, self.state):
            self.rows.addWidget(part)
        self.rows.addLayout(self.form)
        self.rows.addLayout(buttons)
        self.rows.addWidget(self.plan_title)
        self.rows.addWidget(self.plan)
        self.rows.addLayout(self.pictures)
        self.rows.addStretch(1)
        self._later = QTimer(self, singleShot=True, interval=ASK_MS)
        self._later.timeout.connect(self._ask)

    @property
    def shown(self) -> LibraryModel | None:
        """The model that is shown."""
        return self._shown

    def show_model(self, model: LibraryModel | None, now: Serving, *, may: bool) -> None:
        """Show it; the planner is asked when it is another one than before."""
        other = (model.id if model else "") != (self._shown.id if self._shown else "")
        self._shown = model
        self.setVisible(model is not None)
        if model is None:
            return
        self.set_title(one_line(model.title or model.id))
        self.facts.setText(facts(model))
        said = self.tr("Licence: {name}").format(name=licence(model.licence))
        if model.licence.url:
            said = f"{said} · {model.licence.url}"
        self.licence.setText(said)
        self.state.setText(self.tr("Now: {state}").format(state=now.text))
        theme.mark_error(self.state, on=now.broken)
        self.start.setVisible(not now.served)
        self.stop.setVisible(now.served)
        self.form.setRowVisible(0, not now.served)
        self.form.setRowVisible(1, not now.served)
        for button in (self.start, self.stop, self.verify):
            button.setEnabled(may)
        self.remove.setEnabled(may and not now.served)
        if other:
            self._clear_plan(self.tr("Asking the planner…"))
            self._later.start()

    def _ask(self) -> None:
        if self._shown is None or not self._model.rights.coordinates:
            self._clear_plan("")
            return
        if self._call is not None:
            self._call.cancel()
        asked = self._shown.id
        call = self._model.session.client.post(
            "/local/v1/fleet/plan", {"what_if": [f"model={asked}"]}, FleetPlan, PLAN_DEADLINE
        )
        self._call = call.then(lambda plan: self._planned(asked, plan), self._failed)

    def _planned(self, asked: str, plan: FleetPlan) -> None:
        self._call = None
        if self._shown is None or self._shown.id != asked or not plan.models:
            return
        found = plan.models[0]
        self._clear_plan("\n".join(map(one_line, found.sentences)))
        theme.mark_error(self.plan, on=not found.chains)
        for number, chain in enumerate(found.chains, 1):
            picture = ChainPicture()
            name = self.tr("Planned chain {n}").format(n=number)
            picture.show_boxes(planned_boxes(chain), name)
            self.pictures.addWidget(picture)

    def _failed(self, error: FleetError) -> None:
        if not isinstance(error, Cancelled):
            self._call = None
            self._clear_plan(str(error))
            theme.mark_error(self.plan, on=True)

    def _clear_plan(self, text: str) -> None:
        while (item := self.pictures.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        self.plan.setText(text)
        theme.mark_error(self.plan, on=False)
        self.plan_title.setVisible(bool(text))

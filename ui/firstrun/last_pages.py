"""The last two pages of the first run: limits, and the work itself."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSpinBox,
    QWidget,
)

from fleetapp.errors import Cancelled
from fleetapp.types import SettingView
from ui import theme
from ui.firstrun import words as said
from ui.firstrun.marks import Mark, MarkState
from ui.firstrun.model import FirstRun
from ui.firstrun.pages import PageWidget, ask_for_model, row_of
from ui.firstrun.steps import Step
from ui.firstrun.work import Work
from ui.widgets.card import Card, text_label
from ui.widgets.copy_field import CopyField


class LimitsPage(PageWidget):
    """Whether, when and how much this PC gives."""

    def __init__(self, model: FirstRun, parent: QWidget | None = None) -> None:
        super().__init__(model, parent)
        self.title = self.tr("What this PC gives")
        self._intro = text_label()
        self.card = Card(self.tr("Limits"))
        self.controls: dict[str, QWidget] = {}
        self._made_for: object = None
        self.column.addWidget(self._intro)
        self.column.addWidget(self.card)
        self.column.addWidget(
            text_label(
                self.tr("What is not locked can be changed later in the settings."), muted=True
            )
        )
        self.column.addStretch(1)
        self._rows: list[QWidget] = []

    def refresh(self) -> None:
        """Make the controls once the settings are known."""
        model = self.model
        self._intro.setText(
            self.tr(
                "This PC computes the answers to your own questions. Contributing is switched on "
                "for that; your fleet has no other PC, so nobody else can use this one."
            )
            if model.alone
            else self.tr(
                "Your organisation has laid down whether this PC contributes. You can ask the "
                "fleet in any case."
            )
            if any(s.locked for s in model.limits if s.name == "contribute")
            else self.tr(
                "You decide. Without the first tick this PC gives nothing, and you can ask the "
                "fleet all the same."
            )
        )
        key = (model.limits, model.choices.way)
        if key != self._made_for:
            self._made_for = key
            self._make()

    def _make(self) -> None:
        self.controls.clear()
        for row in self._rows:
            self.card.rows.removeWidget(row)
            row.hide()
            row.deleteLater()
        self._rows = []
        for setting in self.model.limits:
            row = self._row(setting)
            self._rows.append(row)
            self.card.rows.addWidget(row)

    def _row(self, setting: SettingView) -> QWidget:
        row = QWidget()
        layout = QHBoxLayout(row)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2 * theme.GRID)
        control = self._control(setting)
        control.setEnabled(not setting.locked)
        control.setToolTip(setting.help)
        control.setAccessibleDescription(setting.help)
        self.controls[setting.name] = control
        if isinstance(control, QCheckBox):
            layout.addWidget(control, 1)
        else:
            caption = QLabel(setting.label, wordWrap=True)
            caption.setBuddy(control)
            control.setAccessibleName(setting.label)
            layout.addWidget(caption, 1)
            layout.addWidget(control)
        if setting.locked:
            layout.addWidget(text_label(said.managed(setting), muted=True), 1)
        return row

    def _control(self, setting: SettingView) -> QWidget:
        value = self.model.value(setting)
        if isinstance(value, bool):
            tick = QCheckBox(setting.label)
            tick.setChecked(value)
            tick.toggled.connect(lambda on: self.model.set_limit(setting.name, on))
            return tick
        if setting.options:
            choice = QComboBox()
            for option in setting.options:
                choice.addItem(option.label, option.value)
            choice.setCurrentIndex(max(0, choice.findData(value)))
            choice.currentIndexChanged.connect(
                lambda index: self.model.set_limit(setting.name, choice.itemData(index))
            )
            return choice
        number = QSpinBox()
        theme.padded(number)
        number.setRange(setting.minimum, min(setting.maximum, 2**31 - 1))
        number.setSuffix(f" {setting.unit}" if setting.unit else "")
        number.setSpecialValueText(setting.nothing if setting.minimum == 0 else "")
        number.setSingleStep(1024 if setting.unit.startswith("Mi") else 5)
        number.setValue(int(value))
        number.setMinimumWidth(20 * theme.GRID)
        number.valueChanged.connect(lambda n: self.model.set_limit(setting.name, n))
        return number


class WorkPage(PageWidget):
    """Step by step, with what went wrong and what to do."""

    chat_asked = Signal()

    def __init__(self, model: FirstRun, parent: QWidget | None = None) -> None:
        super().__init__(model, parent)
        self.title = self.tr("Setting up")
        self.card = Card(self.tr("What is done"))
        self.marks: dict[str, Mark] = {}
        self.stop = QPushButton(self.tr("&Stop"))
        self.stop.clicked.connect(self._stop)
        self.again = QPushButton(self.tr("Try &again"))
        self.again.clicked.connect(self._again)
        self.file = QPushButton(self.tr("Choose a &model file…"))
        self.file.clicked.connect(self.ask_for_file)
        self.result = text_label()
        self.id = CopyField(self.tr("Id of this PC"))
        self.code = CopyField(self.tr("Join code"))
        self.chat = QPushButton(self.tr("&Open the chat"))
        self.chat.clicked.connect(self.chat_asked)
        self.card.rows.addSpacing(0)
        self.column.addWidget(self.card)
        for widget in (self.result, self.id, self.code):
            self.column.addWidget(widget)
        self.column.addLayout(row_of(self.stop, self.again, self.file, self.chat))
        self.column.addStretch(1)

    def refresh(self) -> None:
        """Show every step, and what can be done now."""
        work = self.model.work
        self._show_steps(work)
        failed = work.failed if work is not None else None
        over = work is not None and work.over
        waits = work is not None and work.awaits_approval
        status = self.model.session.view.status
        self.stop.setVisible(work is not None and work.running is not None)
        self.again.setVisible(failed is not None)
        self.file.setVisible(failed is not None and failed.name == "model")
        self.chat.setVisible(over)
        self.id.setVisible(waits)
        self.code.setVisible(over and work is not None and bool(work.code) and not self.model.alone)
        if status is not None:
            self.id.set_text(status.device_id)
        if work is not None:
            self.code.set_text(work.code)
        self.result.setText(self._result(work, waits=waits))
        self.result.setVisible(bool(self.result.text()))

    def ask_for_file(self) -> None:
        """A model without a network."""
        work = self.model.work
        if work is not None:
            ask_for_model(self, work.use_file)

    def _result(self, work: Work | None, *, waits: bool) -> str:
        if work is None:
            return self.tr("The agent on this PC is starting.")
        if waits:
            return self.tr(
                "An administrator has to let this PC in. Read them this id, so that they let in "
                "the right one. You may close this window; it goes on."
            )
        if not work.over:
            return ""
        status = self.model.session.view.status
        name = status.fleet_name if status is not None else ""
        match work.choices.way:
            case "alone":
                return self.tr("Everything is ready. Ask something!")
            case "create":
                return self.tr(
                    "The fleet “{name}” is founded. Enter this code on each PC that should join; "
                    "it is shown this once, and the menu makes more."
                ).format(name=name)
            case "join":
                return self.tr("This PC is now part of “{name}”.").format(name=name)

    def _show_steps(self, work: Work | None) -> None:
        steps = work.steps if work is not None else {}
        if steps.keys() != self.marks.keys():
            for mark in self.marks.values():
                self.card.rows.removeWidget(mark)
                mark.hide()
                mark.deleteLater()
            self.marks = {}
            for name, step in steps.items():
                self.marks[name] = Mark("none", step.title)
                self.card.rows.addWidget(self.marks[name])
        for name, step in steps.items():
            _show_step(self.marks[name], step)

    def _stop(self) -> None:
        if self.model.work is not None:
            self.model.work.cancel()

    def _again(self) -> None:
        if self.model.work is not None:
            self.model.work.begin()


def _show_step(mark: Mark, step: Step) -> None:
    states: dict[str, MarkState] = {
        "waiting": "none",
        "running": "running",
        "done": "ok",
        "failed": "warn" if isinstance(step.error, Cancelled) else "fail",
    }
    error = step.error
    remedy = error.remedy if error is not None and not isinstance(error, Cancelled) else ""
    mark.show_texts(states[step.state], error.message if error is not None else step.detail, remedy)
    mark.show_progress(step.done, step.total, on=step.state == "running")

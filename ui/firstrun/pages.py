"""The pages of the first run. Thin: each shows a FirstRun and tells it what is clicked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import (
    QButtonGroup,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from fleetapp.types import Finding, HardwareView
from ui import agent_words, theme
from ui.firstrun import words as said
from ui.firstrun.choices import Way
from ui.firstrun.marks import Mark, MarkState
from ui.firstrun.model import FirstRun
from ui.widgets.card import Card, text_label
from ui.words import size

translate = QCoreApplication.translate

SHORT = 48
"""Characters of a file's name; the rest of a longer one is left out."""
ENOUGH = 200
"""Characters of a code or an address; no real one is as long."""


class PageWidget(QWidget):
    """A column below a heading."""

    title = ""

    def __init__(self, model: FirstRun, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = model
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(2 * theme.GRID)

    def refresh(self) -> None:
        """Show the model as it is now."""


class WelcomePage(PageWidget):
    """What this is, and what is shared."""

    def __init__(self, model: FirstRun, parent: QWidget | None = None) -> None:
        super().__init__(model, parent)
        self.title = self.tr("Welcome to fleetapp")
        self.column.addWidget(
            text_label(
                self.tr(
                    "The PCs of an office answer questions together: each holds a part of a large "
                    "language model, and no cloud takes part. This takes two minutes, and "
                    "nothing is changed before the last page."
                )
            )
        )
        shared = Card(self.tr("What is shared, and what is not"))
        shared.rows.addWidget(
            text_label(
                self.tr(
                    "A PC that holds a part of a model computes on numbers (activations) that come "
                    "from other people's text, and the PC with the first part sees the words "
                    "themselves, as token ids. Somebody with full control of such a PC could read "
                    "them. fleetapp writes none of it down. It reads no files of yours; your chats "
                    "are stored on your own PC only."
                )
            )
        )
        yours = Card(self.tr("It stays your PC"))
        yours.rows.addWidget(
            text_label(
                self.tr(
                    "Nothing is computed for others before you, or a policy of your organisation, "
                    "say so. Then this PC helps while you do not need it, gives way when you come "
                    "back, and can be paused from its icon unless a policy forbids that."
                )
            )
        )
        self.column.addWidget(shared)
        self.column.addWidget(yours)
        self.column.addStretch(1)


class WayPage(PageWidget):
    """Alone, with others, or the first of others."""

    def __init__(self, model: FirstRun, parent: QWidget | None = None) -> None:
        super().__init__(model, parent)
        self.title = self.tr("What would you like to do?")
        self._group = QButtonGroup(self)
        self.buttons: dict[Way, QRadioButton] = {}
        self._parts: dict[Way, QWidget] = {}
        self._add("alone", self.tr("&Try it alone on this PC"), self.tr(
            "A small model answers on this PC. No other PC takes part, and others can join later."
        ), self._alone_part())  # fmt: skip
        self._add("join", self.tr("&Join a fleet with a code"), self.tr(
            "Your administrator has given you a code that begins with FLEET-."
        ), self._join_part())  # fmt: skip
        self._add("create", self.tr("&Create a fleet"), self.tr(
            "This PC becomes the coordinator: it lets other PCs in, plans their work, and must be "
            "on for the fleet to answer."
        ), self._create_part())  # fmt: skip
        self.column.addStretch(1)

    def refresh(self) -> None:
        """Show the choice, and the fields that belong to it."""
        choices = self.model.choices
        for way, button in self.buttons.items():
            button.setChecked(way == choices.way)
            self._parts[way].setVisible(way == choices.way)
        for field, text in (
            (self.code, choices.code), (self.address, choices.address), (self.name, choices.name)
        ):  # fmt: skip
            if field.text() != text:
                field.setText(text)
        self._model_line.setText(self._model_text())
        self._model_line.setToolTip(choices.file)
        self.catalogue.setVisible(bool(choices.file))

    def _model_text(self) -> str:
        choices, found = self.model.choices, self.model.models
        if choices.file:
            # the whole path may be wider than the window, and cannot be broken
            name = PurePath(choices.file).name
            short = name if len(name) <= SHORT else f"{name[: SHORT - 9]}…{name[-8:]}"
            return self.tr("Model file: {path}").format(path=short)
        default = next((m for m in found.catalog if m.default), None) if found else None
        if default is None:
            return self.tr("The model is chosen in a moment.")
        if default.in_library:
            return self.tr("Model: {title}. It is here already.").format(title=default.title)
        return self.tr("Model: {title}. {size} are downloaded.").format(
            title=default.title, size=size(default.bytes)
        )

    def _add(self, way: Way, title: str, text: str, part: QWidget) -> None:
        frame = QFrame()
        frame.setObjectName("card")
        rows = QVBoxLayout(frame)
        rows.setContentsMargins(*(2 * theme.GRID,) * 4)
        rows.setSpacing(theme.GRID)
        button = QRadioButton(title)
        button.setAccessibleDescription(text)
        button.clicked.connect(lambda: self.model.choose(way))
        self._group.addButton(button)
        self.buttons[way] = button
        self._parts[way] = part
        rows.addWidget(button)
        note = text_label(text, muted=True)
        note.setIndent(3 * theme.GRID)
        rows.addWidget(note)
        rows.addWidget(part)
        self.column.addWidget(frame)

    def _alone_part(self) -> QWidget:
        part, column = _part()
        self._model_line = text_label(muted=True)
        self.file = QPushButton(self.tr("Choose a &file instead…"))
        self.file.clicked.connect(self.ask_for_file)
        self.catalogue = QPushButton(self.tr("&Download one after all"))
        self.catalogue.clicked.connect(lambda: self.model.say(file=""))
        column.addWidget(self._model_line)
        column.addLayout(row_of(self.file, self.catalogue))
        return part

    def ask_for_file(self) -> None:
        """A GGUF file of this PC."""
        ask_for_model(self, lambda path: self.model.say(file=path))

    def _join_part(self) -> QWidget:
        part, column = _part()
        self.code = QLineEdit(placeholderText="FLEET-…")
        self.code.setFont(theme.fixed_font())
        self.address = QLineEdit(placeholderText=self.tr("only if it is not found by itself"))
        for caption, field, key in (
            (self.tr("Join c&ode"), self.code, "code"),
            (self.tr("Coordinator &address (host:port)"), self.address, "address"),
        ):
            _field(column, caption, field)
            field.textEdited.connect(lambda text, key=key: self.model.say(**{key: text}))
        return part

    def _create_part(self) -> QWidget:
        part, column = _part()
        self.name = QLineEdit(placeholderText=self.tr("for example: Office"))
        _field(column, self.tr("&Name of the fleet"), self.name)
        self.name.setMaxLength(60)
        self.name.textEdited.connect(lambda text: self.model.say(name=text))
        return part


def _part() -> tuple[QWidget, QVBoxLayout]:
    part = QWidget()
    column = QVBoxLayout(part)
    column.setContentsMargins(3 * theme.GRID, 0, 0, 0)
    column.setSpacing(theme.GRID)
    return part, column


def row_of(*widgets: QWidget) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(theme.GRID)
    for widget in widgets:
        row.addWidget(widget)
    row.addStretch(1)
    return row


def _field(column: QVBoxLayout, caption: str, field: QLineEdit) -> None:
    label = QLabel(caption)
    label.setBuddy(field)
    field.setMaxLength(ENOUGH)
    field.setAccessibleName(caption.replace("&", ""))
    column.addWidget(label)
    column.addWidget(field)


def ask_for_model(parent: QWidget, chosen: Callable[[str], object]) -> QFileDialog:
    """A file dialog that does not block; ``chosen`` is called with a path."""
    dialog = QFileDialog(parent, translate("FirstRun", "Choose a model file"))
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.setNameFilters(
        [translate("FirstRun", "Models (*.gguf)"), translate("FirstRun", "All files (*)")]
    )
    dialog.fileSelected.connect(chosen)
    dialog.open()
    return dialog


class PcPage(PageWidget):
    """What is in this PC, and whether others reach it."""

    def __init__(self, model: FirstRun, parent: QWidget | None = None) -> None:
        super().__init__(model, parent)
        self.title = self.tr("This PC")
        self.hardware = Card(self.tr("What it can compute with"))
        self._devices = QVBoxLayout()
        self._devices.setSpacing(theme.GRID)
        self.hardware.rows.addLayout(self._devices)
        self.looking = QProgressBar(textVisible=False)
        self.looking.setRange(0, 0)
        self.looking.setAccessibleName(self.tr("Looking for devices"))
        self.hardware.rows.addWidget(self.looking)
        self.connection = Card(self.tr("The way to other PCs"))
        self._checks = QVBoxLayout()
        self._checks.setSpacing(theme.GRID)
        self.connection.rows.addLayout(self._checks)
        self.checking = QProgressBar(textVisible=False)
        self.checking.setRange(0, 0)
        self.checking.setAccessibleName(self.tr("Checking the connection"))
        self.connection.rows.addWidget(self.checking)
        self.again = QPushButton(self.tr("Check &again"))
        self.again.clicked.connect(model.look_at_connection)
        self.connection.rows.addLayout(row_of(self.again))
        self.column.addWidget(self.hardware)
        self.column.addWidget(self.connection)
        self.column.addStretch(1)
        self._shown: tuple[object, object] = (None, None)

    def refresh(self) -> None:
        """Show what has been found so far."""
        model = self.model
        self.connection.setVisible(not model.alone)
        self.looking.setVisible(model.hardware is None and model.hardware_problem is None)
        self.checking.setVisible(model.findings is None and model.checks_problem is None)
        self.again.setEnabled(not self.checking.isVisibleTo(self))
        found = (model.hardware or model.hardware_problem, model.findings or model.checks_problem)
        if found == self._shown:
            return
        self._shown = found
        clear(self._devices)
        if model.hardware is not None:
            self._show_hardware(model.hardware)
        elif model.hardware_problem is not None:
            self._devices.addWidget(Mark("fail", self.tr("Devices"), str(model.hardware_problem)))
        clear(self._checks)
        for finding in model.findings or ():
            self._checks.addWidget(mark_of(finding))
        if model.checks_problem is not None:
            self._checks.addWidget(Mark("fail", self.tr("Check"), str(model.checks_problem)))

    def _show_hardware(self, found: HardwareView) -> None:
        for device in found.devices:
            name = device.name or device.id
            title = f"{said.device_kind(device)} · {name}"
            state: MarkState = "warn" if device.error else "ok" if device.for_stages else "none"
            self._devices.addWidget(Mark(state, title, said.could_run(device, found)))
        self._devices.addWidget(Mark(
            "ok" if found.billion_parameters > 0 else "warn",
            self.tr("Memory"), said.memory_line(found),
            "" if found.billion_parameters > 0 else self.tr("Close programs that you do not need."),
        ))  # fmt: skip
        if found.problem:
            self._devices.addWidget(
                Mark(
                    "fail",
                    self.tr("Devices"),
                    agent_words.said(found.problem),
                    agent_words.said(found.remedy),
                )
            )


def mark_of(finding: Finding) -> Mark:
    remedy = agent_words.said(finding.remedy) if finding.state != "ok" else ""
    name = said.check_name(finding)
    return Mark(finding.state, name, agent_words.said(finding.detail), remedy)


def clear(layout: QVBoxLayout) -> None:
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()

"""What can be chosen for a conversation: system prompt, temperature, length."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QDoubleSpinBox, QFormLayout, QFrame, QPlainTextEdit, QSpinBox, QWidget

from ui import theme
from ui.chat.values import Options

SAVE_MS = 400
"""After the last change."""


class OptionsPanel(QFrame):
    """Says what was chosen a moment after the last change."""

    chosen = Signal(object)
    """Options; the model is the one that was shown."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self.setAccessibleName(self.tr("Options of this chat"))
        self._shown = Options()
        self._filling = False
        self.system = QPlainTextEdit()
        self.system.setObjectName("question-input")
        self.system.setAccessibleName(self.tr("System prompt"))
        self.system.setPlaceholderText(self.tr("What the model should always keep in mind"))
        self.system.setTabChangesFocus(True)
        self.system.setFixedHeight(4 * self.fontMetrics().lineSpacing() + 2 * theme.GRID)
        self.temperature = QDoubleSpinBox()
        self.temperature.setRange(0.0, 2.0)
        self.temperature.setSingleStep(0.1)
        self.temperature.setDecimals(1)
        self.temperature.setAccessibleName(self.tr("Temperature"))
        self.temperature.setToolTip(
            self.tr("0 always takes the likeliest word; higher values vary more.")
        )
        self.length = QSpinBox()
        self.length.setRange(0, 32768)
        self.length.setSingleStep(128)
        self.length.setSpecialValueText(self.tr("As long as fits"))
        self.length.setSuffix(self.tr(" tokens"))
        self.length.setAccessibleName(self.tr("Longest answer"))
        form = QFormLayout(self)
        form.setContentsMargins(*(2 * theme.GRID,) * 4)
        form.setSpacing(theme.GRID)
        form.addRow(self.tr("S&ystem prompt"), self.system)
        form.addRow(self.tr("Te&mperature"), self.temperature)
        form.addRow(self.tr("&Longest answer"), self.length)
        for field in (self.temperature, self.length):
            theme.padded(field)
            form.labelForField(field).setMinimumHeight(field.sizeHint().height())
        self._later = QTimer(self, singleShot=True, interval=SAVE_MS)
        self._later.timeout.connect(self.flush)
        self.system.textChanged.connect(self._changed)
        self.temperature.valueChanged.connect(self._changed)
        self.length.valueChanged.connect(self._changed)

    def show_options(self, options: Options) -> None:
        """Show those of another conversation."""
        self._later.stop()
        self._filling = True
        self._shown = options
        self.system.setPlainText(options.system)
        self.temperature.setValue(options.temperature)
        self.length.setValue(options.max_tokens)
        self._filling = False

    def flush(self) -> None:
        """Say it now, if anything was changed."""
        self._later.stop()
        options = replace(
            self._shown,
            system=self.system.toPlainText(),
            temperature=round(self.temperature.value(), 1),
            max_tokens=self.length.value(),
        )
        if options != self._shown:
            self._shown = options
            self.chosen.emit(options)

    def set_model(self, model: str) -> None:
        """The picker beside has another one."""
        self._shown = replace(self._shown, model=model)

    def _changed(self) -> None:
        if not self._filling:
            self._later.start()

"""One control for each kind of setting: shows a value, says what a person makes of it."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QWidget,
)

from fleetapp.types import SettingView
from ui import theme

SAVE_MS = 500
"""After the last step of a number, so that holding an arrow key saves once."""
HEIGHT = 4 * theme.GRID
"""Of fields that are not lines of text, to match those that are."""
_INT_MAX = 2**31 - 1


class Control(QWidget):
    """Base: a row of widgets for one setting.

    Subclasses call ``chosen.emit`` for what a person did, never for what was shown.
    """

    chosen = Signal(object)
    """A value that the person wants."""
    wide = False
    """Stands below its words instead of beside them."""

    def __init__(self, view: SettingView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = view
        self.line = QHBoxLayout(self)
        self.line.setContentsMargins(0, 0, 0, 0)
        self.line.setSpacing(theme.GRID)

    def show_value(self, value: bool | int | str) -> None:
        """Show a value that holds; overridden."""

    def flush(self) -> None:
        """Say now what is typed and not said yet; overridden where that can be."""

    def add(self, widget: QWidget, stretch: int = 0, name: str = "") -> None:
        """Put a widget into the row; its name for screen readers is the setting's label."""
        widget.setAccessibleName(name or self.view.label)
        widget.setAccessibleDescription(self.view.help)
        self.line.addWidget(widget, stretch)
        if self.focusProxy() is None:
            self.setFocusProxy(widget)


class SwitchControl(Control):
    """On or off."""

    def __init__(self, view: SettingView, parent: QWidget | None = None) -> None:
        super().__init__(view, parent)
        self.box = QCheckBox()
        self.box.clicked.connect(lambda: self.chosen.emit(self.box.isChecked()))
        self.add(self.box)

    def show_value(self, value: bool | int | str) -> None:
        """Tick it, or not."""
        self.box.setChecked(bool(value))


class _Spin(QSpinBox):
    """A wheel over a page that scrolls must not change what happens to lie under it."""

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class _Combo(QComboBox):
    """Likewise."""

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class NumberControl(Control):
    """A whole number with its unit; 0 is shown as what it stands for."""

    def __init__(self, view: SettingView, parent: QWidget | None = None) -> None:
        super().__init__(view, parent)
        self.spin = _Spin()
        theme.padded(self.spin)
        self.spin.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.spin.setRange(view.minimum, min(view.maximum, _INT_MAX))
        self.spin.setSingleStep(_step(view))
        self.spin.setGroupSeparatorShown(bool(view.unit))  # a port is a name, not an amount
        self.spin.setMinimumSize(22 * theme.GRID, HEIGHT)
        if view.unit:
            self.spin.setSuffix(f" {view.unit}")
        if view.nothing and view.minimum == 0:
            self.spin.setSpecialValueText(view.nothing[:1].upper() + view.nothing[1:])
        self._later = QTimer(self, singleShot=True, interval=SAVE_MS)
        self._later.timeout.connect(self.flush)
        self._dirty = False
        self.spin.valueChanged.connect(self._changed)
        self.spin.editingFinished.connect(self.flush)
        self.add(self.spin)

    def show_value(self, value: bool | int | str) -> None:
        """Show it, unless another is being typed."""
        if not self._dirty:
            with QSignalBlocker(self.spin):
                self.spin.setValue(int(value))

    def flush(self) -> None:
        """Say it now."""
        self._later.stop()
        if self._dirty:
            self._dirty = False
            self.chosen.emit(self.spin.value())

    def _changed(self) -> None:
        self._dirty = True
        self._later.start()


def _step(view: SettingView) -> int:
    return {"MiB": 256, "tokens": 1024, "%": 5, "°C": 1}.get(view.unit, 1)


class ChoiceControl(Control):
    """One of a few."""

    def __init__(self, view: SettingView, parent: QWidget | None = None) -> None:
        super().__init__(view, parent)
        self.combo = _Combo()
        self.combo.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        for option in view.options:
            self.combo.addItem(option.label, option.value)
        self.combo.setMinimumSize(22 * theme.GRID, HEIGHT)
        self.combo.activated.connect(lambda i: self.chosen.emit(self.combo.itemData(i)))
        self.add(self.combo)

    def show_value(self, value: bool | int | str) -> None:
        """Select it."""
        self.combo.setCurrentIndex(self.combo.findData(value))


class TextControl(Control):
    """One line of text, said with Enter or when the cursor leaves."""

    wide = True

    def __init__(self, view: SettingView, parent: QWidget | None = None) -> None:
        super().__init__(view, parent)
        self.edit = QLineEdit()
        self.edit.setMaxLength(1024)
        hint = view.nothing[:1].upper() + view.nothing[1:]
        if view.example:
            example = self.tr("for example {value}").format(value=view.example)
            hint = f"{hint} · {example}" if hint else example
        self.edit.setPlaceholderText(hint)
        self.edit.editingFinished.connect(self.flush)
        self._shown = ""
        self.add(self.edit, 1)

    def show_value(self, value: bool | int | str) -> None:
        """Show it, unless something else is being typed."""
        typing = self.edit.hasFocus() and self.edit.text() != self._shown
        self._shown = str(value)
        if not typing:
            self.edit.setText(self._shown)
            self.edit.setCursorPosition(0)

    def flush(self) -> None:
        """Say it now."""
        text = self.edit.text().strip()
        if text != self._shown:
            self._shown = text
            self.chosen.emit(text)


class FolderControl(TextControl):
    """A folder, typed or chosen."""

    def __init__(self, view: SettingView, parent: QWidget | None = None) -> None:
        super().__init__(view, parent)
        self.browse = QPushButton(self.tr("Browse…"))
        self.browse.setAutoDefault(False)
        self.browse.clicked.connect(self._browse)
        self.add(self.browse, name=self.tr("Browse: {what}").format(what=view.label))
        self.dialog: QFileDialog | None = None

    def _browse(self) -> None:
        dialog = QFileDialog(self.window(), self.view.label, self.edit.text())
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self._selected)
        self.dialog = dialog
        dialog.open()

    def _selected(self, folder: str) -> None:
        self.edit.setText(folder)
        self.flush()


class DevicesControl(Control):
    """A tick for each kind of device; all or none stand for all there are."""

    wide = True
    KINDS = ("CPU", "GPU", "NPU")

    def __init__(self, view: SettingView, parent: QWidget | None = None) -> None:
        super().__init__(view, parent)
        self.boxes = {kind: QCheckBox(kind) for kind in self.KINDS}
        for kind, box in self.boxes.items():
            box.clicked.connect(self._clicked)
            self.add(box, name=f"{view.label}: {kind}")
        self.line.addStretch(1)

    def show_value(self, value: bool | int | str) -> None:
        """Tick those."""
        ticked = {word.strip() for word in str(value).split(",") if word.strip()}
        for kind, box in self.boxes.items():
            box.setChecked(not ticked or kind in ticked)

    def _clicked(self) -> None:
        ticked = [kind for kind, box in self.boxes.items() if box.isChecked()]
        everything = len(ticked) in (0, len(self.KINDS))
        if not ticked:
            self.show_value("")
        self.chosen.emit("" if everything else ",".join(ticked))

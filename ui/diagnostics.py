"""Exporting diagnostics: what is in it, where it should lie, progress, and where it lies then."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QDateTime, QDir, QStandardPaths, Qt, QTimer, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QLabel,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from fleetapp.errors import Cancelled, FleetError
from fleetapp.types import BundleView
from ui import theme, words
from ui.client import Call
from ui.icons import app_icon
from ui.session import AgentSession
from ui.widgets.card import text_label
from ui.widgets.copy_field import CopyField
from ui.widgets.notice import Notice

DEADLINE = 120.0
"""Seconds: the doctor asks drivers, and each may take its time."""

_open: set[DiagnosticsDialog] = set()


def export_diagnostics(session: AgentSession, parent: QWidget | None) -> DiagnosticsDialog:
    """Open the dialog; it asks, shows progress, and deletes itself when it is closed."""
    dialog = DiagnosticsDialog(session, parent)
    # without a parent nobody else would hold it
    _open.add(dialog)
    dialog.finished.connect(lambda _: _open.discard(dialog))
    dialog.open()
    return dialog


class DiagnosticsDialog(QDialog):
    """One question, one request, one answer; errors stay inside and can be mended at once."""

    def __init__(self, session: AgentSession, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._call: Call | None = None
        self._target = ""
        self.chooser: QFileDialog | None = None
        self.setWindowTitle(self.tr("Export diagnostics"))
        self.setWindowIcon(app_icon())
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setMinimumWidth(60 * theme.GRID)
        inside = text_label(
            self.tr(
                "In it: logs, what the doctor says of this PC, settings and where they come from, "
                "versions, hardware, and to which fleet this PC belongs. Names of this PC and of "
                "the fleet, addresses in your network and names of models are among these."
            )
        )
        never = text_label(
            self.tr(
                "Never in it: chats, prompts and answers; join codes, API keys, tokens, private "
                "keys and passphrases; models."
            )
        )
        self.progress = text_label(muted=True)
        self.bar = QProgressBar(textVisible=False)
        self.bar.setRange(0, 0)
        self.bar.setAccessibleName(self.windowTitle())
        self.notice = Notice()
        self.written = CopyField(self.tr("File"))
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.buttons.rejected.connect(self.reject)
        self.save = QPushButton(self.tr("&Save…"))
        self.buttons.addButton(self.save, QDialogButtonBox.ButtonRole.ActionRole)
        self.save.setDefault(True)
        self.save.clicked.connect(self.choose)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(*(2 * theme.GRID,) * 4)
        column.setSpacing(2 * theme.GRID)
        column.addWidget(theme.heading(QLabel(self.tr("Export diagnostics")), 1.2))
        column.addWidget(
            text_label(
                self.tr("One zip file that tells whoever helps you how this PC is."), muted=True
            )
        )
        for widget in (inside, never, self.progress, self.bar, self.notice, self.written):
            column.addWidget(widget)
        for widget in (self.progress, self.bar, self.notice, self.written):
            widget.hide()
        column.addStretch(1)
        column.addWidget(self.buttons)
        self._fit()

    def choose(self) -> None:
        """Ask for a file name."""
        chooser = QFileDialog(self, self.tr("Export diagnostics"), suggested_file())
        chooser.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        chooser.setNameFilter(self.tr("Zip files (*.zip)"))
        chooser.setDefaultSuffix("zip")
        chooser.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        chooser.fileSelected.connect(self.write)
        self.chooser = chooser
        chooser.open()

    def write(self, file: str) -> None:
        """Let the agent write to ``file``."""
        self._target = str(Path(file))
        self.notice.clear()
        self.progress.setText(self.tr("Examining this PC and collecting logs…"))
        self._busy(True)
        body = {"path": self._target}
        self._call = self._session.client.post(
            "/local/v1/support-bundle", body, BundleView, DEADLINE
        ).then(self._written, self._failed)

    def reject(self) -> None:
        """Cancel what is under way, and close."""
        if self._call is not None:
            self._call.cancel()
        super().reject()

    def _written(self, bundle: BundleView) -> None:
        self._call = None
        self._busy(False)
        self.progress.setText(
            self.tr("Written: {size}. Look through it before you send it to somebody.").format(
                size=words.size(bundle.size)
            )
        )
        self.progress.show()
        self.written.set_text(QDir.toNativeSeparators(bundle.path))
        self.written.show()
        self.save.hide()
        folder = QUrl.fromLocalFile(str(Path(bundle.path).parent))
        self.show_folder = QPushButton(self.tr("Show &folder"))
        self.show_folder.clicked.connect(lambda: QDesktopServices.openUrl(folder))
        self.buttons.addButton(self.show_folder, QDialogButtonBox.ButtonRole.ActionRole)
        cancel = self.buttons.button(QDialogButtonBox.StandardButton.Cancel)
        self.buttons.removeButton(cancel)
        close = self.buttons.addButton(QDialogButtonBox.StandardButton.Close)
        close.setDefault(True)
        close.setFocus()
        self._fit()

    def _failed(self, error: FleetError) -> None:
        self._call = None
        self._busy(False)
        if not isinstance(error, Cancelled):
            self.notice.show_error(error)
            self._fit()

    def _busy(self, busy: bool) -> None:
        self.progress.setVisible(busy)
        self.bar.setVisible(busy)
        self.save.setEnabled(not busy)
        self._fit()

    def _fit(self) -> None:
        """As high as its words need, once the layout has taken in what was shown and hidden."""
        QTimer.singleShot(0, self, self._fit_now)

    def _fit_now(self) -> None:
        self._column.activate()
        # adjustSize would stop at two thirds of a small screen, in the middle of a sentence
        self.resize(self.width(), self._column.totalHeightForWidth(self.width()))


def suggested_file() -> str:
    """A name with the time, where people look for their files."""
    place = QStandardPaths.StandardLocation.DocumentsLocation
    folder = QStandardPaths.writableLocation(place) or QDir.homePath()
    if not QDir(folder).exists():
        folder = QDir.homePath()
    now = QDateTime.currentDateTime().toString("yyyyMMdd-HHmmss")
    return str(Path(folder) / f"fleetapp-support-{now}.zip")

"""The coordinator's models: what is here, what can be fetched, what is under way."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from fleetapp.errors import FleetError
from fleetapp.types import CatalogModel, ModelJob
from ui import theme
from ui import words as common
from ui.chat.safe_text import one_line
from ui.fleet import asking
from ui.fleet.model import FleetModel
from ui.fleet.model_card import ModelCard
from ui.fleet.models_model import ModelsModel, Serving, job_line, licence, serving
from ui.fleet.text_table import Entry, TextTable
from ui.widgets.card import text_label
from ui.widgets.notice import Notice

CARD = 52 * theme.GRID
START_DEADLINE = 60.0
"""Seconds; a plan is made before it answers."""


class JobRow(QWidget):
    """Work on one model."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.job = ""
        self.name = QLabel()
        self.name.setTextFormat(Qt.TextFormat.PlainText)
        self.bar = QProgressBar(textVisible=False)
        self.text = text_label(muted=True)
        self.cancel = QPushButton(self.tr("Cancel"))
        self.cancel.setAutoDefault(False)
        texts = QVBoxLayout()
        texts.setSpacing(theme.GRID // 2)
        for part in (self.name, self.bar, self.text):
            texts.addWidget(part)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.GRID)
        row.addLayout(texts, 1)
        row.addWidget(self.cancel, 0, Qt.AlignmentFlag.AlignTop)

    def show_job(self, job: ModelJob) -> None:
        """Its newest state."""
        self.job = job.job
        running = job.state == "running"
        self.name.setText(one_line(job.model))
        self.text.setText(one_line(job_line(job)))
        theme.mark_error(self.text, on=not running)
        self.bar.setVisible(running)
        self.cancel.setVisible(running)
        self.bar.setAccessibleName(self.tr("Progress of {model}").format(model=job.model))
        self.cancel.setAccessibleName(self.tr("Cancel {model}").format(model=job.model))
        # thousandths: bytes may not fit the control's 32 bits
        self.bar.setRange(0, 1000 if job.total > 0 else 0)
        if job.total > 0:
            self.bar.setValue(min(1000, 1000 * job.done // job.total))


class ModelsPage(QWidget):
    """Library and catalogue on the left, the chosen model on the right."""

    def __init__(self, model: FleetModel, notice: Notice, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._notice = notice
        self._watching = False
        self.models = ModelsModel(model.session.client, self)
        self.question: QWidget | None = None
        self._jobs: dict[str, JobRow] = {}
        self.elsewhere = text_label(
            self.tr("Models are kept, started and stopped on the coordinator's PC."), muted=True
        )
        self.library = TextTable(
            self.tr("Models that can be served"),
            (
                self.tr("Model"), self.tr("State"), self.tr("Size"), self.tr("Layers"),
                self.tr("Licence"),
            ),
            (30, 18, 10, 7, 14),
            right=(2, 3),
        )  # fmt: skip
        self.catalogue = TextTable(
            self.tr("Models that can be fetched"),
            (self.tr("Catalogue"), self.tr("Size"), self.tr("Licence")),
            (48, 12, 20),
            right=(1,),
        )
        rows = self.catalogue.verticalHeader().defaultSectionSize()
        self.catalogue.setMinimumHeight(self.catalogue.minimumHeight() - rows)
        self.card = ModelCard(model)
        self._build()
        for table in (self.library, self.catalogue):
            table.selectionModel().selectionChanged.connect(self._show_chosen)
        self.card.start_asked.connect(self._start)
        self.card.stop_asked.connect(self._ask_to_stop)
        self.card.remove_asked.connect(self._ask_to_remove)
        self.card.verify_asked.connect(self._verify)
        self.models.changed.connect(self._show)
        self.models.lost.connect(self._lost)
        model.changed.connect(self._changed)
        self._show()

    def _build(self) -> None:
        self.empty = text_label(muted=True)
        self.import_file = QPushButton(self.tr("&Import a file…"))
        self.import_file.setToolTip(self.tr("A GGUF file on this PC"))
        self.import_file.clicked.connect(self._choose_file)
        self.get = QPushButton(self.tr("&Get"))
        self.get.clicked.connect(self._ask_to_get)
        for button in (self.import_file, self.get):
            button.setAutoDefault(False)
        self._job_rows = QVBoxLayout()
        self._job_rows.setSpacing(theme.GRID)
        left, heads = QVBoxLayout(), []
        left.setSpacing(theme.GRID)
        for title, button in (
            (self.tr("Library"), self.import_file),
            (self.tr("To be fetched"), self.get),
        ):
            head = QHBoxLayout()
            head.addWidget(theme.heading(QLabel(title), 1.0), 1)
            head.addWidget(button)
            heads.append(head)
        left.addLayout(heads[0])
        left.addWidget(self.empty)
        left.addWidget(self.library, 3)
        left.addLayout(self._job_rows)
        left.addLayout(heads[1])
        left.addWidget(self.catalogue, 2)
        pane = QWidget()
        pane.setObjectName("pane")
        holder = QVBoxLayout(pane)
        holder.setContentsMargins(0, 0, 0, 0)
        holder.addWidget(self.card)
        holder.addStretch(1)
        scroll = QScrollArea(widgetResizable=True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(pane)
        scroll.setMinimumWidth(CARD - 12 * theme.GRID)
        scroll.setAccessibleName(self.tr("The chosen model"))
        both = QHBoxLayout()
        both.setSpacing(2 * theme.GRID)
        both.addLayout(left, 3)
        both.addWidget(scroll, 2)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, theme.GRID, 0, 0)
        column.setSpacing(theme.GRID)
        column.addWidget(self.elsewhere)
        column.addLayout(both, 1)

    # ------------------------------------------------------------------ what is shown

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """The library is followed while somebody looks."""
        super().showEvent(event)
        self._follow()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802 - Qt's name
        """And not otherwise."""
        super().hideEvent(event)
        self._follow()

    def _follow(self) -> None:
        wanted = self.isVisible() and self._model.watched and self._model.rights.coordinates
        if wanted != self._watching:
            self._watching = wanted
            self.models.watch(wanted)

    def _changed(self) -> None:
        self._follow()
        self._show()

    def _show(self) -> None:
        may = self._model.rights.coordinates
        chosen = self.library.chosen() or Entry("", ())
        self.elsewhere.setVisible(not may)
        self.library.entries.show(
            [
                Entry(
                    m.id,
                    (one_line(m.id), self._serving(m.id).text, common.size(m.bytes), str(m.layers),
                     licence(m.licence)),
                    hint=one_line(m.title),
                )
                for m in self.models.library
            ]
        )  # fmt: skip
        if self.library.chosen() is None:
            self.library.choose(chosen.id)
        picked = self.catalogue.chosen()
        self.catalogue.entries.show(
            [
                Entry(m.id, (one_line(m.title), self._size(m), licence(m.licence)), hint=m.id)
                for m in self.models.catalogue
            ]
        )
        if picked is not None:
            self.catalogue.choose(picked.id)
        self._show_jobs()
        known = self.models.view is not None
        self.empty.setText(
            self.tr("No model is here yet. Get one below, or import a GGUF file.")
            if known
            else self.tr("The library has not been heard of yet.")
        )
        self.empty.setVisible(may and not self.models.library)
        self.import_file.setEnabled(may and known)
        self._show_chosen()

    def _size(self, model: CatalogModel) -> str:
        if not model.fetched:
            return common.size(model.bytes)
        return self.tr("{done} of {total}").format(
            done=common.size(model.fetched), total=common.size(model.bytes)
        )

    def _show_jobs(self) -> None:
        jobs = {j.job: j for j in self.models.jobs}
        for gone in self._jobs.keys() - jobs.keys():
            row = self._jobs.pop(gone)
            self._job_rows.removeWidget(row)
            row.hide()
            row.deleteLater()
        for key, job in jobs.items():
            if key not in self._jobs:
                row = self._jobs[key] = JobRow()
                row.cancel.clicked.connect(partial(self._cancel, key))
                self._job_rows.addWidget(row)
            self._jobs[key].show_job(job)

    def _show_chosen(self) -> None:
        chosen = self.library.chosen()
        model = next((m for m in self.models.library if chosen and m.id == chosen.id), None)
        may = self._model.rights.coordinates
        now = self._serving(model.id) if model is not None else Serving()
        self.card.show_model(model, now, may=may)
        self.get.setEnabled(may and self.catalogue.chosen() is not None)

    def _serving(self, model: str) -> Serving:
        view = self._model.view
        return serving(model, view.chains if view is not None else ())

    # ------------------------------------------------------------------ what is asked for

    def _post(self, path: str, body: object, deadline: float = 30.0) -> None:
        self._notice.clear()
        self._model.ask(f"/local/v1/models/{path}", body, None, lambda _: None, deadline)

    def _start(self, precision: str | None, stages: int) -> None:
        if self.card.shown is not None:
            body = {"model": self.card.shown.id, "precision": precision, "stages": stages}
            self._post("start", body, START_DEADLINE)

    def _ask_to_stop(self) -> None:
        model = self.card.shown
        if model is not None:
            self.question = asking.confirm(
                self,
                self.tr("Stop serving {model}?").format(model=model.id),
                self.tr(
                    "Answers that are being written break off. PCs let their parts go from memory "
                    "and keep them on the disk."
                ),
                self.tr("&Stop"),
                lambda: self._post("stop", {"model": model.id}, START_DEADLINE),
            )

    def _ask_to_remove(self) -> None:
        model = self.card.shown
        if model is not None:
            self.question = asking.confirm(
                self,
                self.tr("Remove {model} from this PC?").format(model=model.id),
                self.tr(
                    "{size} are freed. Using it again takes another download or import."
                ).format(size=common.size(model.bytes)),
                self.tr("Re&move"),
                lambda: self._post("remove", {"model": model.id}),
            )

    def _verify(self) -> None:
        if self.card.shown is not None:
            self._post("verify", {"model": self.card.shown.id})

    def _cancel(self, job: str, *_: object) -> None:
        self._post("cancel", {"job": job})

    def _ask_to_get(self) -> None:
        chosen = self.catalogue.chosen()
        model = next((m for m in self.models.catalogue if chosen and m.id == chosen.id), None)
        if model is None:
            return
        if not model.licence.accept:
            self._post("get", {"model": model.id})
            return
        self.question = asking.confirm(
            self,
            self.tr("Agree to the terms of {model}?").format(model=one_line(model.title)),
            self.tr("Licence {name}, to be read at {url}. Its terms restrict use.").format(
                name=model.licence.id, url=model.licence.url
            ),
            self.tr("&Agree and get"),
            lambda: self._post("get", {"model": model.id, "accept_licence": True}),
        )

    def _choose_file(self) -> None:
        dialog = QFileDialog(self, self.tr("Import a model"), str(Path.home()))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters([self.tr("GGUF models (*.gguf)"), self.tr("All files (*)")])
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.import_path)
        dialog.open()
        self.question = dialog

    def import_path(self, path: str) -> None:
        """Import the model at ``path``."""
        self._post("import", {"path": path, "name": ""})

    def _lost(self, error: FleetError) -> None:
        if self._model.reachable:
            self._notice.show_error(error)

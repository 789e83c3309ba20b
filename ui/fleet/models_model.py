"""The coordinator's model library as it changes, and what may be done with each model."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QLocale, QObject, Signal

from fleetapp.errors import FleetError, from_code
from fleetapp.types import CatalogModel, ChainView, LibraryModel, Licence, ModelJob, ModelsView
from ui import agent_words
from ui import words as common
from ui.client import AgentClient
from ui.coalesce import Coalescer
from ui.counts import counts
from ui.fleet import words
from ui.stream import EventStream

translate = QCoreApplication.translate


class ModelsModel(QObject):
    """Follows the library while its page is watched."""

    changed = Signal()
    lost = Signal(object)
    """A FleetError; it goes on trying."""

    def __init__(self, client: AgentClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.view: ModelsView | None = None
        self._coalescer = Coalescer(self)
        self._coalescer.passed.connect(self._take)
        self._stream = EventStream(client, "/local/v1/models/events", ModelsView, self)
        self._stream.received.connect(self._coalescer.submit)
        self._stream.lost.connect(self.lost)

    def watch(self, on: bool) -> None:
        """Follow it, or leave it alone."""
        if on:
            self._stream.connect_now()
        else:
            self._stream.stop()

    @property
    def library(self) -> tuple[LibraryModel, ...]:
        """Models that can be served."""
        return self.view.library if self.view is not None else ()

    @property
    def catalogue(self) -> tuple[CatalogModel, ...]:
        """Models that can be fetched: those that are not here."""
        found = self.view.catalog if self.view is not None else ()
        return tuple(m for m in found if not m.in_library)

    @property
    def jobs(self) -> tuple[ModelJob, ...]:
        """What is under way, and what has failed."""
        found = self.view.jobs if self.view is not None else ()
        return tuple(j for j in found if j.state in ("running", "failed"))

    def _take(self, view: object) -> None:
        if isinstance(view, ModelsView):
            self.view = view
            self.changed.emit()


@dataclass(frozen=True)
class Serving:
    """How a model is served now."""

    text: str = ""
    served: bool = False
    broken: bool = False


def serving(model: str, chains: tuple[ChainView, ...]) -> Serving:
    """By the fleet's chains."""
    of = [c for c in chains if c.model == model and c.state != "stopped"]
    if not of:
        return Serving(translate("Fleet", "not served"))
    live = sum(c.state == "live" for c in of)
    if live:
        text = counts.served_by(len({a.device_id for c in of for a in c.assignments}))
        return Serving(text, served=True)
    return Serving(words.chain_state(of[0]), served=True, broken=of[0].state == "broken")


def licence(value: Licence) -> str:
    """In a table; one with terms says so."""
    if not value.id:
        return translate("Fleet", "unknown")
    if value.accept:
        return translate("Fleet", "{name} (with terms)").format(name=value.id)
    return value.id


def facts(model: LibraryModel) -> str:
    """What the model is, in one line."""
    tokens = QLocale().toString(model.context)
    return " · ".join(
        filter(
            None,
            (
                model.architecture,
                model.quantisation,
                translate("Fleet", "{n} layers").format(n=model.layers),
                common.size(model.bytes),
                translate("Fleet", "{n} tokens").format(n=tokens),
                "" if model.chat else translate("Fleet", "no chat template"),
            ),
        )
    )


def job_line(job: ModelJob) -> str:
    """Phase, how far, how long still; or why it failed."""
    if job.error is not None:
        return str(job_error(job))
    phase = {
        "starting": translate("Fleet", "Starting"),
        "waiting": translate("Fleet", "Waiting for another process"),
        "downloading": translate("Fleet", "Downloading"),
        "unpacking": translate("Fleet", "Unpacking"),
        "verifying": translate("Fleet", "Verifying"),
        "copying": translate("Fleet", "Copying"),
        "converting": translate("Fleet", "Converting"),
        "inspecting": translate("Fleet", "Inspecting"),
        "checking": translate("Fleet", "Comparing the parts with the whole"),
        "splitting": translate("Fleet", "Splitting into shards"),
        "hashing": translate("Fleet", "Hashing"),
    }[job.phase]
    said = [phase]
    if job.total > 0:
        counts = (
            (common.size(job.done), common.size(job.total))
            if job.unit == "bytes"
            else (str(job.done), str(job.total))
        )
        said.append(translate("Fleet", "{done} of {total}").format(done=counts[0], total=counts[1]))
    if job.seconds_left is not None:
        said.append(common.time_left(job.seconds_left))
    if job.message:
        said.append(job.message)
    return " · ".join(said)


def job_error(job: ModelJob) -> FleetError | None:
    """Why it failed."""
    if job.error is None:
        return None
    error = job.error
    return from_code(error.code, agent_words.said(error.message), agent_words.said(error.remedy))

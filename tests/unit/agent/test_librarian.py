"""What may be asked of the model library of a PC, and what is refused."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import filelock
import msgspec
import pytest
from msgspec.structs import replace

from fleetapp.agent import librarian, shelf
from fleetapp.agent.librarian import Librarian
from fleetapp.errors import (
    BadRequest,
    Busy,
    DiskFull,
    FleetError,
    LicenceNotAccepted,
    NotFound,
    ReadOnly,
    StorageError,
)
from fleetapp.models import fetch
from fleetapp.models.catalog import Entry, HubSource
from fleetapp.models.library import Library
from fleetapp.models.manifest import digest
from fleetapp.platform.paths import Paths
from fleetapp.types import ModelId, ModelJob
from tests.support.file_server import FileServer
from tests.support.sample_model import NobodySigns
from tests.support.tiny_models import tiny_gguf


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gguf(tmp_path_factory.mktemp("g") / "tiny.gguf", "llama", 2, quant="Q8_0").path


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory, gguf: Path) -> Path:
    """A library with the model ``tiny`` in it, to be copied."""
    root = tmp_path_factory.mktemp("l") / "models"
    Library(root, NobodySigns()).import_path(gguf, licence="CC0-1.0")
    return root


class Office:
    """A PC, the hub it may have, and its librarian."""

    def __init__(self, home: Path, entries: tuple[Entry, ...]) -> None:
        home.mkdir()
        self.paths = Paths(home)
        self.models_dir = ""
        self.used: tuple[str, ...] | None = None
        """By which served models every model is used; None: there is no hub."""
        self.over = False
        self.entries = entries
        self.librarian = self.another()

    def another(self) -> Librarian:
        """As the next agent on this state folder has it."""
        pc = SimpleNamespace(
            paths=self.paths,
            identity=NobodySigns(),
            settings=lambda: SimpleNamespace(models_dir=self.models_dir),
        )
        return Librarian(lambda: cast("Any", pc), self._hub, lambda: self.over, self.entries)

    def _hub(self) -> Any:
        if self.used is None:
            return None
        return SimpleNamespace(models=SimpleNamespace(in_use=lambda _: self.used))

    async def ended(self, model: str) -> ModelJob:
        """The outcome for a model, as soon as there is one."""
        async with asyncio.timeout(60):
            async for view in self.librarian.events():
                for job in view.jobs:
                    if job.model == model and job.state != "running":
                        return job
        raise AssertionError("the events ended")


@pytest.fixture
def hub(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    data = gguf.read_bytes()
    with FileServer(data).running() as server:
        server.headers = {"X-Linked-ETag": f'"{digest(data)}"', "X-Linked-Size": str(len(data))}
        monkeypatch.setenv(fetch.HUB_VARIABLE, server.url)
        yield server


def entries(gguf: Path) -> tuple[Entry, ...]:
    data = gguf.read_bytes()
    tiny = Entry(
        ModelId("tiny"),
        "Tiny",
        "CC0-1.0",
        digest(data),
        len(data),
        (HubSource("o/r", "m", "t.gguf"),),
    )
    return tiny, replace(tiny, model_id=ModelId("guarded"), title="Guarded", licence="gemma")


@pytest.fixture
async def office(tmp_path: Path, gguf: Path) -> AsyncIterator[Office]:
    made = Office(tmp_path / "José 測試", entries(gguf))
    await made.librarian.start()
    yield made
    await made.librarian.stop()


@pytest.fixture
def stocked(office: Office, ready: Path) -> Office:
    shutil.copytree(ready, office.paths.models)
    return office


async def test_terms_have_to_be_agreed_to(office: Office, hub: FileServer) -> None:
    view = await office.librarian.view()
    guarded = next(c for c in view.catalog if c.id == "guarded")
    assert guarded.licence.accept
    assert guarded.licence.url == "https://ai.google.dev/gemma/terms"
    with pytest.raises(LicenceNotAccepted, match="terms") as refused:
        await office.librarian.get("guarded")
    assert guarded.licence.url in refused.value.remedy
    assert (await office.librarian.view()).jobs == ()
    await office.librarian.get("guarded", accept_licence=True)
    assert (await office.ended("guarded")).state == "done"
    (model,) = (await office.librarian.view()).library
    assert (model.id, model.title, model.licence.id) == ("guarded", "Guarded", "gemma")


async def test_a_model_that_is_here_is_not_fetched_again(stocked: Office, hub: FileServer) -> None:
    job = await stocked.librarian.get("tiny")
    assert (job.state, job.message) == ("done", "tiny is here already.")
    assert hub.requests == []


async def test_another_model_of_that_name_is_refused(stocked: Office, gguf: Path) -> None:
    other = replace(entries(gguf)[0], sha256="0" * 64)
    stocked.librarian = Office(stocked.paths.home / "x", (other,)).librarian
    shutil.copytree(stocked.paths.models, stocked.paths.home / "x" / "models")
    with pytest.raises(BadRequest, match="already another model named 'tiny'"):
        await stocked.librarian.get("tiny")


async def test_a_full_disk_is_said_before_anything_is_begun(
    office: Office, hub: FileServer, gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = office.librarian._shelf.library()
    monkeypatch.setattr(library, "free", lambda _: int(len(hub.data) * 3.15))  # and no margin
    with pytest.raises(DiskFull, match="Getting tiny needs"):
        await office.librarian.get("tiny")
    monkeypatch.setattr(library, "free", lambda _: 1000)
    with pytest.raises(DiskFull, match=r"Importing tiny\.gguf needs"):
        await office.librarian.import_path(str(gguf))
    assert ((await office.librarian.view()).jobs, hub.requests) == ((), [])


async def test_the_same_twice_is_once_and_too_much_is_refused(
    office: Office, gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(librarian, "MOST", 2)
    calls = [office.librarian.import_path(str(gguf), "one") for _ in range(5)]
    jobs = await asyncio.gather(*calls)
    assert len({job.job for job in jobs}) == 1
    with pytest.raises(Busy, match="'one' is being worked on"):
        await office.librarian.import_path(str(gguf.parent), "one")
    await office.librarian.import_path(str(gguf), "two")
    with pytest.raises(Busy, match="2 models"):
        await office.librarian.import_path(str(gguf), "three")
    for job in (await office.librarian.view()).jobs:
        assert (await office.librarian.cancel(job.job)).state == "cancelled"
    await office.librarian.import_path(str(gguf), "three")


async def test_a_model_in_use_is_not_removed(stocked: Office) -> None:
    stocked.used = ("tiny",)
    with pytest.raises(Busy, match="'tiny' is being served") as refused:
        await stocked.librarian.remove("tiny")
    assert "unserve tiny" in refused.value.remedy
    stocked.used = ("big",)
    with pytest.raises(Busy, match="'tiny' drafts for big"):
        await stocked.librarian.remove("tiny")
    stocked.used = ()
    await stocked.librarian.remove("tiny")
    assert (await stocked.librarian.view()).library == ()
    with pytest.raises(NotFound):
        await stocked.librarian.remove("tiny")


async def test_nothing_is_begun_with_a_model_that_is_being_removed(
    stocked: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "LOCK_DEADLINE", 10.0)
    with filelock.FileLock(stocked.paths.models / "library.lock"):
        removing = asyncio.create_task(stocked.librarian.remove("tiny"))
        while not stocked.librarian._leaving:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for call in (
            stocked.librarian.verify("tiny"),
            stocked.librarian.get("tiny"),
            stocked.librarian.remove("tiny"),
        ):
            with pytest.raises(Busy, match="being removed"):
                await call
        with pytest.raises(Busy):
            stocked.librarian.require_settled("tiny")
    await removing
    stocked.librarian.require_settled("tiny")


async def test_removing_does_not_wait_for_hours_for_another_process(
    stocked: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "LOCK_DEADLINE", 0.2)
    with (
        filelock.FileLock(stocked.paths.models / "library.lock"),
        pytest.raises(Busy, match="while another model is being"),
    ):
        await stocked.librarian.remove("tiny")
    assert len((await stocked.librarian.view()).library) == 1
    await stocked.librarian.remove("tiny")


async def test_what_other_processes_do_is_seen(
    stocked: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(librarian, "LOOK_EVERY", 0.1)
    events = stocked.librarian.events()
    assert [m.id for m in (await anext(events)).library] == ["tiny"]
    Library(stocked.paths.models, NobodySigns()).remove("tiny")
    async with asyncio.timeout(10):
        assert (await anext(events)).library == ()
        assert next(c for c in (await stocked.librarian.view()).catalog if c.id == "tiny")
    stocked.over = True
    stocked.librarian.ring()
    async with asyncio.timeout(5):
        with pytest.raises(StopAsyncIteration):
            await anext(events)


async def test_damage_is_found_and_told(stocked: Office) -> None:
    weights = stocked.paths.models / "imported" / "tiny" / "openvino_model.bin"
    weights.write_bytes(b"\0" * weights.stat().st_size)
    await stocked.librarian.verify("tiny")
    job = await stocked.ended("tiny")
    assert job.error is not None
    assert (job.kind, job.state, job.error.code) == ("verify", "failed", "corrupt_model")
    assert "openvino_model.bin" in job.error.message


async def test_an_interrupted_job_is_told_until_it_is_done_or_put_away(
    office: Office, hub: FileServer
) -> None:
    hub.stall_after = len(hub.data) // 2
    job = await office.librarian.get("tiny")
    async with asyncio.timeout(30):
        async for view in office.librarian.events():
            if view.jobs[0].done == len(hub.data) // 2:
                break
    await office.librarian.stop()
    for _ in range(2):  # told again and again
        office.librarian = office.another()
        await office.librarian.start()
        view = await office.librarian.view()
        (told,) = view.jobs
        assert told.error is not None
        assert (told.job, told.state, told.error.code) == (job.job, "failed", "interrupted")
        assert told.done == len(hub.data) // 2
        assert next(c for c in view.catalog if c.id == "tiny").fetched == len(hub.data) // 2
        await office.librarian.stop()
    office.librarian = office.another()
    await office.librarian.start()
    await office.librarian.cancel(job.job)
    assert (await office.librarian.view()).jobs == ()
    await office.librarian.get("tiny")
    assert (await office.ended("tiny")).state == "done"
    office.librarian = office.another()
    await office.librarian.start()
    assert (await office.librarian.view()).jobs == ()


async def test_what_was_interrupted_is_not_told_when_somebody_else_has_got_it(
    stocked: Office,
) -> None:
    async with asyncio.timeout(10):  # the fixture's own librarian may be tidying that file away
        await asyncio.gather(*stocked.librarian._chores)
    left = [ModelJob("j", "get", "tiny"), ModelJob("k", "verify", "tiny2")]
    stocked.paths.model_jobs_file.write_bytes(msgspec.json.encode(left))
    stocked.librarian = stocked.another()
    await stocked.librarian.start()
    assert [j.job for j in (await stocked.librarian.view()).jobs] == ["k"]


@pytest.mark.parametrize("raw", [b"", b"{}", b"[{}]", b"\xff"])
async def test_a_damaged_note_of_jobs_is_no_reason_not_to_start(office: Office, raw: bytes) -> None:
    office.paths.model_jobs_file.write_bytes(raw)
    office.librarian = office.another()
    await office.librarian.start()
    assert (await office.librarian.view()).jobs == ()


async def test_outcomes_are_kept_for_each_model_and_not_for_ever(
    stocked: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(librarian, "KEPT", 3)
    for name in ("one", "two", "three", "one", "four"):
        stocked.librarian._keep(ModelJob(name, "get", name, "done"))
    assert [j.model for j in (await stocked.librarian.view()).jobs] == ["three", "one", "four"]


async def test_another_folder_of_models_is_another_library(stocked: Office, tmp_path: Path) -> None:
    assert len((await stocked.librarian.view()).library) == 1
    stocked.models_dir = str(tmp_path / "elsewhere")
    view = await stocked.librarian.view()
    assert (view.library, view.folder) == ((), stocked.models_dir)


async def test_a_library_that_cannot_be_made_is_said_and_ends_nothing(office: Office) -> None:
    office.paths.models.write_text("a file")
    with pytest.raises((ReadOnly, StorageError)):
        await office.librarian.view()
    with pytest.raises(FleetError):
        await office.librarian.get("tiny")


async def test_a_disk_that_does_not_answer_is_said(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading  # noqa: PLC0415

    over = threading.Event()
    monkeypatch.setattr(librarian, "DISK_DEADLINE", 0.1)
    monkeypatch.setattr(librarian, "locate", lambda _: over.wait(20))
    try:
        with pytest.raises(StorageError, match="gave no answer"):
            await office.librarian.import_path("/net/x.gguf")
    finally:
        over.set()


@pytest.mark.parametrize("path", ["", "x.gguf", "./x", "~/x", "/x\0y"])
async def test_paths_are_absolute(office: Office, path: str) -> None:
    with pytest.raises(BadRequest, match="absolute"):
        await office.librarian.import_path(path)

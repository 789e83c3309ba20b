"""Whatever server and network do, a download ends with the right bytes or a reason."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from aiohttp import web

from fleetapp.errors import DiskFull, DownloadFailed, HashMismatch, ReadOnly, StorageError
from fleetapp.models.disk import MARGIN, DiskFree, disk_free
from fleetapp.models.download import Patience, Wanted, download, session
from fleetapp.models.manifest import digest
from fleetapp.models.progress import Progress, ProgressFn, silent
from tests.support.file_server import FileServer

DATA = random.Random(1).randbytes(700_000)
QUICK = Patience(attempts=3, stall=0.4, connect=2.0, backoff=0.01, longest_wait=0.05)
Get = Callable[..., Path]


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer(DATA).running() as running:
        yield running


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "José 測試" / "model.gguf"


@pytest.fixture
def get(server: FileServer, target: Path) -> Get:
    def fetch(
        data: bytes = DATA, progress: ProgressFn = silent, free: DiskFree = disk_free
    ) -> Path:
        async def run() -> Path:
            wanted = Wanted(f"{server.url}/file", digest(data), len(data))
            async with session(QUICK) as client:
                return await download(client, wanted, target, progress, patience=QUICK, free=free)

        return asyncio.run(run())

    return fetch


def part(target: Path) -> Path:
    return target.with_name("model.gguf.part")


def begun(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    part(target).write_bytes(data)


def test_a_file_arrives_whole_and_leaves_nothing_beside_it(get: Get, target: Path) -> None:
    seen: list[Progress] = []
    assert get(progress=seen.append).read_bytes() == DATA
    assert [p.name for p in target.parent.iterdir()] == ["model.gguf"]
    assert seen[0].phase == "downloading"
    assert seen[-1] == Progress("verifying", len(DATA), len(DATA))
    amounts = [p.done for p in seen if p.phase == "downloading"]
    assert amounts == sorted(amounts)
    assert amounts[-1] == len(DATA)


def test_a_file_that_is_there_is_not_fetched_again(get: Get, server: FileServer) -> None:
    get()
    get()
    assert len(server.requests) == 1


def test_a_connection_that_breaks_is_resumed_where_it_broke(get: Get, server: FileServer) -> None:
    server.cut_after = 300_000
    assert get().read_bytes() == DATA
    ranges = [r for _, _, r in server.requests]
    assert ranges == ["", "bytes=300000-"]


def test_a_connection_that_stalls_is_given_up_and_resumed(get: Get, server: FileServer) -> None:
    server.stall_after = 200_000
    assert get().read_bytes() == DATA
    assert server.requests[-1][2] == "bytes=200000-"


def test_an_interrupted_download_is_resumed_by_the_next_run(
    get: Get, server: FileServer, target: Path
) -> None:
    server.behave = lambda s, r: web.Response(status=503) if len(s.requests) > 1 else None
    server.cut_after = 123_456
    with pytest.raises(DownloadFailed, match="503") as failure:
        get()
    assert "kept" in failure.value.remedy
    assert part(target).stat().st_size == 123_456
    server.behave = None
    assert get().read_bytes() == DATA
    assert server.requests[-1][2] == "bytes=123456-"


def test_a_server_without_ranges_sends_all_of_it_again(get: Get, server: FileServer) -> None:
    server.ranges = False
    server.cut_after = 300_000
    assert get().read_bytes() == DATA


def test_a_file_that_changed_on_the_server_is_not_mixed_with_the_old_one(
    get: Get, server: FileServer
) -> None:
    """The partial belongs to version 1; If-Range makes the server send version 2 whole."""
    server.cut_after = 300_000

    def change(s: FileServer, _: web.Request) -> None:
        if len(s.requests) == 2:
            s.etag = '"v2"'

    server.behave = change
    assert get().read_bytes() == DATA


def test_a_416_body_is_never_appended(get: Get, server: FileServer, target: Path) -> None:
    """T22: the server knows a shorter file than our partial."""
    begun(target, DATA[:400_000])

    def refuse(_: FileServer, request: web.Request) -> web.Response | None:
        if "Range" in request.headers:
            return web.Response(status=416, body=b"x" * 300_000)
        return None

    server.behave = refuse
    assert get().read_bytes() == DATA


def test_a_server_that_always_answers_416_ends_in_a_reason(
    get: Get, server: FileServer, target: Path
) -> None:
    """T22: no endless loop."""
    server.behave = lambda *_: web.Response(status=416, body=b"<html>")
    begun(target, DATA[:400_000])
    with pytest.raises(DownloadFailed, match="could not resume"):
        get()
    assert len(server.requests) <= 2 * QUICK.attempts


def test_a_partial_longer_than_the_file_is_started_anew(get: Get, target: Path) -> None:
    """T22"""
    begun(target, DATA + b"more")
    assert get().read_bytes() == DATA


def test_zeros_of_the_right_size_are_fetched_again(
    get: Get, server: FileServer, target: Path
) -> None:
    """T23, as a partial and as a finished file."""
    begun(target, bytes(len(DATA)))
    assert get().read_bytes() == DATA
    target.write_bytes(bytes(len(DATA)))
    assert get().read_bytes() == DATA
    assert len(server.requests) == 2


def test_a_complete_partial_needs_no_server(get: Get, server: FileServer, target: Path) -> None:
    begun(target, DATA)
    assert get().read_bytes() == DATA
    assert server.requests == []


def test_a_damaged_beginning_is_found_at_the_end_and_fetched_again(get: Get, target: Path) -> None:
    begun(target, b"\0" + DATA[1:400_000])
    assert get().read_bytes() == DATA


def test_a_server_with_another_file_is_told_from_a_network_fault(get: Get, target: Path) -> None:
    with pytest.raises(HashMismatch, match="is not the file it should be"):
        get(data=DATA[::-1])
    assert not target.exists()
    assert not part(target).exists()


@pytest.mark.parametrize("size", [len(DATA) - 1000, len(DATA) + 1000])
def test_a_server_with_a_file_of_another_size_ends_in_a_reason(get: Get, size: int) -> None:
    with pytest.raises(DownloadFailed, match=f"700000 bytes instead of {size}"):
        get(data=random.Random(2).randbytes(size))


def test_a_short_file_whose_size_is_not_said_ends_in_a_reason(get: Get, server: FileServer) -> None:
    """T22: each restart brings bytes and none leads anywhere."""

    async def some() -> AsyncIterator[bytes]:
        yield DATA[:1000]

    def chunked(_: FileServer, request: web.Request) -> web.Response:
        return web.Response(status=416) if "Range" in request.headers else web.Response(body=some())

    server.behave = chunked
    with pytest.raises(DownloadFailed, match="could not resume"):
        get()
    assert len(server.requests) <= 4 * QUICK.attempts


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_is_final_and_names_the_address(
    get: Get, server: FileServer, status: int
) -> None:
    server.behave = lambda *_: web.Response(status=status)
    with pytest.raises(DownloadFailed, match=f"{status}.*/file"):
        get()
    assert len(server.requests) == 1


def test_an_overloaded_server_is_asked_again(get: Get, server: FileServer) -> None:
    server.behave = lambda s, _: web.Response(status=429) if len(s.requests) < 3 else None
    assert get().read_bytes() == DATA


def test_attempts_that_bring_something_do_not_count(get: Get, server: FileServer) -> None:
    """Ten broken connections with three attempts allowed."""

    def cut(s: FileServer, _: web.Request) -> None:
        s.cut_after = 60_000 if len(s.requests) <= 10 else None

    server.behave = cut
    assert get().read_bytes() == DATA


def test_nobody_there_ends_in_a_reason(target: Path) -> None:
    async def run() -> None:
        async with session(QUICK) as client:
            wanted = Wanted("http://127.0.0.1:9/file", digest(DATA), len(DATA))
            await download(client, wanted, target, silent, patience=QUICK)

    with pytest.raises(DownloadFailed, match="could not be fetched"):
        asyncio.run(run())


def test_a_full_disk_is_said_before_anything_is_asked(
    get: Get, server: FileServer, target: Path
) -> None:
    """T24"""
    begun(target, DATA[:400_000])
    with pytest.raises(DiskFull, match=r"model\.gguf needs"):
        get(free=lambda _: MARGIN + 299_999)
    assert server.requests == []
    assert part(target).stat().st_size == 400_000
    assert get(free=lambda _: MARGIN + 300_000).read_bytes() == DATA


def test_a_disk_that_fills_up_keeps_the_partial(
    small_disk: Callable[[int], Path], server: FileServer
) -> None:
    """T24, on a real file system."""
    disk = small_disk(1)
    server.data = random.Random(3).randbytes(3_000_000)

    async def run() -> None:
        async with session(QUICK) as client:
            wanted = Wanted(f"{server.url}/f", digest(server.data), len(server.data))
            await download(
                client, wanted, disk / "model.gguf", silent, patience=QUICK, free=lambda _: 1 << 40
            )

    with pytest.raises(DiskFull, match="is full"):
        asyncio.run(run())
    assert part(disk / "model.gguf").stat().st_size > 500_000


def test_a_folder_that_cannot_be_made_is_named(get: Get, target: Path) -> None:
    target.parent.write_text("a file where a folder should be")
    with pytest.raises((ReadOnly, StorageError), match="測試"):
        get()

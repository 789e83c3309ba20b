"""Multicast DNS for real, on loopback only."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fleetapp.fleet.discovery import Discovery
from fleetapp.platform.fake import FakePlatform
from fleetapp.platform.network import Address

LOOPBACK = ("127.0.0.1",)
FLEET = "fffff77777fffff77777"
ANNA, BERT, CARL = "annaannaannaannaanna", "bertbertbertbertbert", "carlcarlcarlcarlcarl"
DEADLINE = 20.0

NODE = """
import sys
from fleetapp.fleet.discovery import Discovery
node = Discovery(("127.0.0.1",))
node.start(20)
node.announce(sys.argv[1], sys.argv[2], "coordinator", 4321, ("127.0.0.1",))
sys.stdin.readline()
node.stop()
"""


@contextmanager
def searching(*interfaces: str, platform: FakePlatform | None = None) -> Iterator[Discovery]:
    node = Discovery(interfaces or LOOPBACK, platform)
    node.start(DEADLINE)
    try:
        yield node
    finally:
        node.stop()


def ids(node: Discovery) -> list[str]:
    return [p.device_id for p in node.found()]


async def sees(node: Discovery, *devices: str) -> bool:
    return await node.wait_for(lambda peers: set(devices) <= {p.device_id for p in peers}, DEADLINE)


async def test_two_nodes_see_each_other_and_not_themselves() -> None:
    with searching() as a, searching() as b:
        a.announce(ANNA, FLEET, "coordinator", 1234, LOOPBACK)
        b.announce(BERT, FLEET, "member", 0, LOOPBACK)
        assert await sees(a, BERT)
        assert await sees(b, ANNA)
        assert ANNA not in ids(a)
        (anna,) = [p for p in b.found() if p.device_id == ANNA]
        assert (anna.role, anna.port, anna.addresses) == ("coordinator", 1234, LOOPBACK)
        assert anna.in_fleet(FLEET)


async def test_a_goodbye_is_noticed_and_a_change_too() -> None:
    with searching() as a, searching() as b:
        a.announce(ANNA, FLEET, "member", 1, LOOPBACK)
        assert await sees(b, ANNA)
        a.announce(ANNA, FLEET, "coordinator", 2, LOOPBACK)
        assert await b.wait_for(
            lambda peers: any((p.role, p.port) == ("coordinator", 2) for p in peers), DEADLINE
        )
        a.withdraw()
        assert await b.wait_for(lambda peers: not _has(peers, ANNA), DEADLINE)
        a.announce(ANNA, FLEET, "member", 3, LOOPBACK)
        assert await sees(b, ANNA)
        a.stop()
        assert await b.wait_for(lambda peers: not _has(peers, ANNA), DEADLINE)


def _has(peers: tuple, device: str) -> bool:
    return any(p.device_id == device for p in peers)


async def test_who_comes_later_finds_those_already_there() -> None:
    with searching() as a:
        a.announce(ANNA, FLEET, "coordinator", 1, LOOPBACK)
        with searching() as first:
            assert await sees(first, ANNA)
        with searching() as second:
            assert await sees(second, ANNA)


def spawn(device: str, port: int) -> "subprocess.Popen[bytes]":
    code = NODE.replace("4321", str(port))
    return subprocess.Popen([sys.executable, "-c", code, device, FLEET], stdin=subprocess.PIPE)


async def test_two_processes_see_each_other() -> None:
    process = spawn(CARL, 4321)
    try:
        with searching() as here:
            assert await sees(here, CARL)
            await asyncio.to_thread(process.communicate, b"\n", DEADLINE)
            assert await here.wait_for(lambda peers: not _has(peers, CARL), DEADLINE)
    finally:
        process.kill()
        process.wait(DEADLINE)


async def test_a_quick_restart_is_one_peer() -> None:
    """Trap T17: killed without a goodbye and back at once under another port."""
    with searching() as watcher:
        for port in (1, 2):
            process = spawn(CARL, port)
            try:
                assert await watcher.wait_for(
                    lambda peers, port=port: (
                        [p.port for p in peers if p.device_id == CARL] == [port]
                    ),
                    DEADLINE,
                )
            finally:
                process.kill()
                process.communicate(timeout=DEADLINE)
        assert ids(watcher).count(CARL) == 1


async def test_an_interface_that_fails_is_skipped_and_remembered() -> None:
    """Trap T20."""
    with searching("203.0.113.7", "127.0.0.1") as a, searching() as b:
        a.announce(ANNA, FLEET, "member", 1, LOOPBACK)
        assert await sees(b, ANNA)
        assert any("203.0.113.7" in sentence for sentence in a.diagnose())


async def test_without_any_network_it_starts_and_says_why() -> None:
    with searching("203.0.113.7") as node:
        node.announce(ANNA, FLEET, "member", 1, LOOPBACK)
        assert node.found() == ()
        assert any("no network" in sentence for sentence in node.diagnose())
        assert not await node.wait_for(bool, 0.05)


async def test_a_network_that_comes_later_is_taken_into_use() -> None:
    platform = FakePlatform()
    late = Discovery(None, platform)
    late.start(DEADLINE)
    try:
        with searching() as other:
            late.announce(ANNA, FLEET, "member", 1, LOOPBACK)
            assert any("no network" in sentence for sentence in late.diagnose())
            platform.address_list = (Address("lo", "127.0.0.1", "ordinary", 8),)
            late.refresh()
            assert await sees(other, ANNA)
            platform.address_list = ()
            late.refresh()
            assert await other.wait_for(lambda peers: not _has(peers, ANNA), DEADLINE)
    finally:
        late.stop()


async def test_after_waking_it_announces_again() -> None:
    with searching() as a, searching() as b:
        a.announce(ANNA, FLEET, "member", 1, LOOPBACK)
        assert await sees(b, ANNA)
        gone = asyncio.Event()
        loop = asyncio.get_running_loop()
        stop = b.on_change(
            lambda: None if _has(b.found(), ANNA) else loop.call_soon_threadsafe(gone.set)
        )
        a.refresh()
        async with asyncio.timeout(DEADLINE):
            await gone.wait()
        stop()
        assert await sees(b, ANNA)


async def test_listeners_are_called_in_discoverys_thread_until_they_stop() -> None:
    with searching() as a, searching() as b:
        threads: list[str] = []
        stop = b.on_change(lambda: threads.append(threading.current_thread().name))
        a.announce(ANNA, FLEET, "member", 1, LOOPBACK)
        assert await sees(b, ANNA)
        assert set(threads) == {"discovery"}
        stop()
        stop()
        count = len(threads)
        a.withdraw()
        assert await b.wait_for(lambda peers: not _has(peers, ANNA), DEADLINE)
        assert len(threads) == count


def test_stopping_is_harmless_at_any_time() -> None:
    node = Discovery(LOOPBACK)
    node.stop()
    assert "not running" in node.diagnose()[0]
    before = threading.active_count()
    node.start(0)
    node.stop()
    node.stop()
    node.start(DEADLINE)
    node.start(DEADLINE)
    node.stop()
    assert threading.active_count() == before


@pytest.mark.parametrize("count", [5])
async def test_as_many_nodes_as_the_demo_has_all_see_each_other(count: int) -> None:
    nodes = [Discovery(LOOPBACK) for _ in range(count)]
    names = [chr(ord("a") + n) * 20 for n in range(count)]
    try:
        for node in nodes:
            node.start(DEADLINE)
        for node, name in zip(nodes, names, strict=True):
            node.announce(name, FLEET, "member", 0, LOOPBACK)
        for node, name in zip(nodes, names, strict=True):
            assert await sees(node, *(n for n in names if n != name))
    finally:
        for node in nodes:
            node.stop()


async def test_whatever_the_host_is_called_it_starts_and_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Trap T19: 80 bytes of CJK, a dot, a line break, an emoji. None of it is announced."""
    odd = "測" * 27 + ".b\n😀"
    for name in ("gethostname", "getfqdn"):
        monkeypatch.setattr(f"socket.{name}", lambda *_: odd)
    with searching() as a, searching() as b:
        a.announce(ANNA, FLEET, "coordinator", 1, LOOPBACK)
        assert await sees(b, ANNA)
        assert "測" not in str(b.found())

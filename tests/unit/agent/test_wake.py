"""Sleep is noticed on every system; a busy moment or a clock set back is not taken for it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.agent import hublink
from fleetapp.agent.wake import WakeWatch, slept
from tests.support.control_server import ControlServer, Linked
from tests.support.relay import Relay


@pytest.mark.parametrize(
    ("monotonic", "wall", "missed"),
    [
        (2.0, 2.0, 0),
        (5.5, 5.5, 0),  # a busy loop
        (2.0, 3602.0, 3600),  # a suspended Linux: the monotonic clock stood still
        (3602.0, 3602.0, 3600),  # a suspended Windows, or a stopped process
        (3602.0, -9e9, 3600),  # and its wall clock was set back meanwhile
        (2.0, -9e9, 0),  # a clock set back
        (2.0, 9e9, 9e9 - 2),  # a clock set forward: looks like sleep
    ],
)
def test_what_counts_as_sleep(monotonic: float, wall: float, missed: float) -> None:
    assert slept(2.0, monotonic, wall) == pytest.approx(missed)


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(-1e12, 1e12))
def test_it_is_never_negative(asked: float, monotonic: float, wall: float) -> None:
    assert slept(asked, monotonic, wall) >= 0


async def test_it_calls_once_for_each_sleep() -> None:
    times = iter([(0, 0), (2, 2), (2, 2), (4, 900), (4, 900), (6, 902)])
    woke: list[float] = []
    now = [0.0, 0.0]

    def monotonic() -> float:
        try:
            now[:] = next(times)
        except StopIteration:
            raise asyncio.CancelledError from None
        return now[0]

    async def pause(_: float) -> None: ...

    watch = WakeWatch(lambda: woke.append(now[0]), monotonic, lambda: now[1], pause)
    with pytest.raises(asyncio.CancelledError):
        await watch.run()
    assert woke == [4]


async def test_after_waking_a_dead_connection_is_made_anew_and_a_live_one_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hublink, "HEARTBEAT_SECONDS", 0.1)
    monkeypatch.setattr(hublink, "AFTER_WAKING", 0.7)
    async with ControlServer(tmp_path) as server, Relay(server.port) as relay:
        anna = server.home.enrol("anna")
        async with Linked(server, anna, relay.port, server.port) as linked:
            await linked.until_connected()
            linked.link.woke()
            await asyncio.sleep(1.0)
            assert [on for on, _ in linked.said] == [True], "it still answers: nothing happens"
            relay.freeze()
            linked.link.woke()
            await linked.until_told("silent")
            relay.down()
            await linked.until(lambda: linked.connected)


async def test_a_jump_of_the_wall_clock_evicts_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(hublink, "HEARTBEAT_SECONDS", 0.1)
    async with ControlServer(tmp_path) as server:
        anna = server.home.enrol("anna")
        async with Linked(server, anna) as linked:
            await linked.until_connected()
            for jump in (10 * 365 * 86_400, -10 * 365 * 86_400):
                monkeypatch.setattr(time, "time", lambda jump=jump: now + jump)
                await asyncio.sleep(0.7)  # a sweep and some heartbeats
                assert server.online() == {"anna"}
                assert [on for on, _ in linked.said] == [True]

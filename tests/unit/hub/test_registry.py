"""Liveness is counted on the monotonic clock, and a rejoin is one member, not two (T17)."""

from fleetapp.fleet.control import GONE_AFTER, Heartbeat, MemberHello
from fleetapp.hub.registry import Registry, Session
from fleetapp.types import DeviceId, Hardware


async def _send(_: object) -> None: ...


async def _close() -> None: ...


def session(device: str, now: float = 0.0) -> Session:
    hello = MemberHello(1, "0", device, device, Hardware(2, 8, 4, 9), True, ("127.0.0.1",))
    return Session(DeviceId(device), "ab", hello, ("127.0.0.1",), _send, _close, now, 4, 9, True)


def test_a_second_connection_replaces_the_first() -> None:
    registry = Registry()
    first, second = session("a"), session("a")
    assert registry.attach(first) is None
    assert registry.attach(second) is first
    assert registry.sessions() == (second,)
    assert not registry.detach(first), "the old connection's end must not remove the new one"
    assert registry.get(DeviceId("a")) is second


def test_silence_is_suspected_then_gone() -> None:
    registry = Registry()
    one = session("a", now=100.0)
    registry.attach(one)
    assert one.liveness(102.9) == "online"
    assert one.liveness(105.0) == "suspected", "a stall of five seconds evicts nobody"
    for now in (102.0, 104.0, 105.0):
        assert registry.silent(now) == ()
    assert registry.silent(100.0 + GONE_AFTER + 0.1) == (one,)


def test_a_hub_that_slept_itself_evicts_nobody_at_once() -> None:
    registry = Registry()
    alive, dead = session("a", now=100.0), session("b", now=100.0)
    for one in (alive, dead):
        registry.attach(one)  # and then it is stopped, before it has looked even once
    assert registry.silent(160.0) == (), "what they sent meanwhile is still to be read"
    registry.heard(alive, None, 160.4)
    for now in (160.5, 161.0, 162.7):
        assert registry.silent(now) == ()
    assert registry.silent(162.9) == (dead,)


def test_a_heartbeat_refreshes_and_tells_what_changed() -> None:
    registry = Registry()
    one = session("a")
    registry.attach(one)
    assert not registry.heard(one, Heartbeat(1, 3, 9, True), 5.0)
    assert one.memory_free == 3
    assert registry.heard(one, Heartbeat(2, 3, 9, False), 6.0), "consent was taken back"
    assert registry.silent(11.0) == ()


def test_devices_that_are_known_only_after_the_greeting_are_shown() -> None:
    registry = Registry()
    one = session("a")
    registry.attach(one)
    names = ("CPU: Core", "GPU.0: Arc")
    assert registry.heard(one, Heartbeat(1, 3, 9, True, devices=names), 5.0)
    assert one.hello.hardware.devices == names
    assert not registry.heard(one, Heartbeat(2, 3, 9, True), 6.0)
    assert one.hello.hardware.devices == names

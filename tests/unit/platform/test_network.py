"""Trap T20: the wrong interface advertised, or a broken one in the way."""

import errno
import socket
import ssl

import aiohttp
import pytest

from fleetapp.platform import current
from fleetapp.platform.common import system_interfaces
from fleetapp.platform.network import RawInterface, connect_problem, rank


def interface(
    name: str, *addresses: str, up: bool = True, point_to_point: bool = False
) -> RawInterface:
    return RawInterface(name, up, point_to_point, tuple((a, None) for a in addresses))


def order(*interfaces: RawInterface, loopback: bool = False) -> list[str]:
    return [a.address for a in rank(interfaces, loopback=loopback)]


def test_a_real_network_comes_before_bridges_tunnels_and_self_assigned_addresses() -> None:
    assert order(
        interface("docker0", "172.17.0.1"),
        interface("tun0", "10.8.0.2", point_to_point=True),
        interface("eth1", "169.254.3.4"),
        interface("wlp3s0", "192.168.1.20", "fd00::20"),
    ) == ["192.168.1.20", "fd00::20", "172.17.0.1", "10.8.0.2", "169.254.3.4"]


def test_interfaces_that_are_down_are_skipped() -> None:
    assert order(interface("eth0", "10.0.0.1", up=False), interface("eth1", "10.0.0.2")) == [
        "10.0.0.2"
    ]


def test_loopback_only_if_asked_for() -> None:
    lo = interface("lo", "127.0.0.1")
    assert order(lo) == []
    assert order(lo, loopback=True) == ["127.0.0.1"]


@pytest.mark.parametrize(
    "useless", ["fe80::1%eth0", "0.0.0.0", "::", "224.0.0.1", "not an address", ""]
)
def test_addresses_that_nobody_else_could_use_are_skipped(useless: str) -> None:
    assert order(interface("eth0", useless, "10.0.0.1")) == ["10.0.0.1"]


def test_only_self_assigned_addresses_are_better_than_none() -> None:
    assert order(interface("eth0", "169.254.3.4")) == ["169.254.3.4"]


def test_one_address_on_two_interfaces_is_told_once() -> None:
    assert order(interface("eth0", "10.0.0.1"), interface("tun0", "10.0.0.1")) == ["10.0.0.1"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("br-1a2b3c", "bridge"),
        ("virbr0", "bridge"),
        ("vEthernet (WSL)", "bridge"),
        ("VMware Network Adapter VMnet8", "bridge"),
        ("wg0", "tunnel"),
        ("tailscale0", "tunnel"),
        ("Cisco AnyConnect", "tunnel"),
        ("Ethernet 2", "ordinary"),
        ("WLAN", "ordinary"),
        ("enp0s31f6", "ordinary"),
        ("br0", "ordinary"),
    ],
)
def test_virtual_networks_are_known_by_name(name: str, kind: str) -> None:
    assert rank([interface(name, "10.1.1.1")])[0].kind == kind


def test_the_netmask_is_told_as_a_prefix() -> None:
    raw = RawInterface("eth0", True, False, (("10.0.0.1", "255.255.255.0"),))
    assert rank([raw])[0].prefix == 24


def test_this_machine_answers_with_its_own_addresses() -> None:
    assert system_interfaces()
    assert all(a.kind != "loopback" for a in current().addresses())
    assert "127.0.0.1" in [a.address for a in current().addresses(loopback=True)]


async def test_a_refused_connection_is_told_without_the_clients_own_objects() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorError) as caught:
            await session.get(f"https://127.0.0.1:{port}/", ssl=ssl.create_default_context())
    words = connect_problem(caught.value)
    assert words
    assert "SSLContext" not in words
    assert "Connect call" not in words


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "Network is unreachable"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version"), "does not speak"),
        (TimeoutError(), "does not answer"),
        (aiohttp.ServerDisconnectedError(), "Server disconnected"),
        (ConnectionResetError(), "ConnectionResetError"),
    ],
)
def test_why_there_is_no_connection(error: Exception, words: str) -> None:
    assert words in connect_problem(error)

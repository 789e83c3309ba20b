"""Trap T20 with real interfaces: two hosts in network namespaces, and whatever laptops have."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or shutil.which("ip") is None,
    reason="needs root, Linux and iproute2",
)
FLEET = "fffff77777fffff77777"

NODE = """
import asyncio, json, socket, sys, threading
from fleetapp.fleet.discovery import Discovery
from fleetapp.platform import current

server = socket.create_server(("0.0.0.0", 4321))
def serve():
    while True:
        server.accept()[0].sendall(sys.argv[1].encode())
threading.Thread(target=serve, daemon=True).start()
node = Discovery()
node.start(20)
usable = [a.address for a in current().addresses()]
node.announce(sys.argv[1], sys.argv[2], "coordinator", 4321, tuple(usable))
asyncio.run(node.wait_for(lambda peers: len(peers) > 0, 30))
found = [list(p.addresses) for p in node.found()]
reached = ""
for address in (found[0] if found else []):
    try:
        with socket.create_connection((address, 4321), 2) as there:
            said = there.recv(99).decode()
    except OSError:
        continue
    if said != sys.argv[1]:
        reached = address
        break
print(json.dumps({"usable": usable, "found": found, "reached": reached,
                  "why": node.diagnose()}), flush=True)
sys.stdin.readline()
node.stop()
"""


def ip(*args: str) -> None:
    subprocess.run(["ip", *args], check=True, capture_output=True, text=True)


@pytest.fixture
def hosts() -> Iterator[tuple[str, str]]:
    """Two namespaces with a cable between them; ``cable`` in both, without an address."""
    names = (f"fleetapp-odd-{os.getpid()}-a", f"fleetapp-odd-{os.getpid()}-b")
    with ExitStack() as stack:
        for name in names:
            try:
                ip("netns", "add", name)
            except subprocess.CalledProcessError as failed:
                pytest.skip(f"no network namespaces here: {failed.stderr.strip()}")
            stack.callback(ip, "netns", "del", name)
        try:
            ip("link", "add", "cable", "netns", names[0], "type", "veth",
               "peer", "name", "cable", "netns", names[1])  # fmt: skip
        except subprocess.CalledProcessError as failed:
            pytest.skip(f"no such interfaces here: {failed.stderr.strip()}")
        for name in names:
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", "cable", "up")
        yield names


def give(host: str, interface: str, address: str) -> None:
    ip("-n", host, "address", "add", address, "dev", interface)


def docker(host: str) -> None:
    """The same address on every host, as Docker has it; with something plugged in."""
    ip("-n", host, "link", "add", "docker0", "type", "bridge")
    ip("-n", host, "link", "add", "plug0", "type", "veth", "peer", "name", "plug1")
    ip("-n", host, "link", "set", "plug0", "master", "docker0")
    for name in ("docker0", "plug0", "plug1"):
        ip("-n", host, "link", "set", name, "up")
    give(host, "docker0", "172.17.0.1/16")


def tunnel(host: str, address: str) -> None:
    ip("-n", host, "tuntap", "add", "mode", "tun", "name", "tun0")
    give(host, "tun0", address)
    ip("-n", host, "link", "set", "tun0", "up")


def down(host: str) -> None:
    ip("-n", host, "link", "add", "wlan9", "type", "veth", "peer", "name", "wlan9x")
    give(host, "wlan9", "10.99.0.1/24")


def meet(hosts: tuple[str, str], then: Callable[[dict], None]) -> None:
    """Start a node on each host; each says what it has found and reached."""
    root = str(Path(__file__).resolve().parents[2])
    nodes = [
        subprocess.Popen(
            ["ip", "netns", "exec", host, sys.executable, "-c", NODE, name * 20, FLEET],
            cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for host, name in zip(hosts, "ab", strict=True)
    ]  # fmt: skip
    try:
        for node in nodes:
            assert node.stdout is not None
            then(json.loads(node.stdout.readline()))
    finally:
        for node in nodes:
            node.communicate("\n", timeout=20)


def test_between_docker_a_tunnel_and_an_interface_that_is_down_the_cable_is_found(
    hosts: tuple[str, str],
) -> None:
    for number, host in enumerate(hosts, 1):
        docker(host)
        tunnel(host, f"10.8.0.{number}/24")
        down(host)
        give(host, "cable", f"10.77.0.{number}/24")

    def check(said: dict) -> None:
        assert said["usable"][0].startswith("10.77.0."), "the cable comes first"
        assert "10.99.0.1" not in said["usable"], "what is down is not told"
        assert said["reached"].startswith("10.77.0."), said
        (found,) = said["found"]
        assert found[0].startswith("10.77.0.")
        assert found[-1] == "172.17.0.1", "both have that one: last"

    meet(hosts, check)


def test_two_pcs_on_one_cable_with_self_assigned_addresses(hosts: tuple[str, str]) -> None:
    for number, host in enumerate(hosts, 1):
        give(host, "cable", f"169.254.7.{number}/16")

    def check(said: dict) -> None:
        assert said["reached"].startswith("169.254.7."), said
        assert any("self-assigned" in sentence for sentence in said["why"])

    meet(hosts, check)

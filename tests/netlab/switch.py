"""A user-space Ethernet switch between network namespaces; a process of its own.

Every host hangs on it with one cable, a TAP device. A frame is handed on at the time at which
cables of that delay, rate and jitter would have delivered it (``fleetapp.bench.link``): what
follows is on its way meanwhile. Cables can lose frames and be pulled out, two hosts can be kept
from each other; multicast can be switched off, as office networks do (ARP is broadcast and stays).

Started with the ports as JSON; takes one command a line from stdin, answers each with a line, and
ends when stdin closes.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import json
import os
import random
import selectors
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from fleetapp.bench.link import Pacer, Shape

MTU = 9000
"""Jumbo frames: a switch in Python has to touch six times fewer."""
BUFFER_SECONDS = 0.25
"""What a cable with a rate holds back before it drops frames, as a router's queue does."""
BATCH = 64
SPIN = 0.0015
"""epoll counts whole milliseconds; the last bit before a release is spent awake (s)."""

_TUNSETIFF = 0x400454CA
_TAP_NO_INFO = 0x0002 | 0x1000
_BROADCAST = b"\xff" * 6


def mac_of(number: int) -> bytes:
    """The address of the host with that number, in bytes; locally administered."""
    return b"\x02\x00\x00\x00" + number.to_bytes(2, "big")


@dataclass
class Cable:
    """One host's, the same in both directions."""

    namespace: str
    device: int
    number: int
    up: bool = True
    loss: float = 0.0
    to_switch: Pacer = field(default_factory=lambda: Pacer(Shape()))
    to_host: Pacer = field(default_factory=lambda: Pacer(Shape()))
    apart: set[int] = field(default_factory=set)
    """Numbers of hosts whose frames do not reach this one."""

    def shape(self, shape: Shape) -> None:
        self.to_switch = Pacer(shape, 2 * self.number)
        self.to_host = Pacer(shape, 2 * self.number + 1)


class Switch:
    """Owns the cables; ``serve`` until stdin closes."""

    def __init__(self, ports: list[dict[str, Any]], seed: int = 0) -> None:
        self.multicast = True
        self._dice = random.Random(seed)
        self._cables = [_plug(number, **port) for number, port in enumerate(ports, 1)]
        self._by_mac = {mac_of(c.number): c for c in self._cables}
        self._queue: list[tuple[float, int, Cable, bytes]] = []
        self._count = 0
        self._selector = selectors.DefaultSelector()
        for cable in self._cables:
            self._selector.register(cable.device, selectors.EVENT_READ, cable)
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ, None)

    def serve(self) -> None:
        print("ready", flush=True)
        while True:
            wait = None
            if self._queue:
                wait = max(0.0, self._queue[0][0] - time.monotonic())
                wait = 0 if wait < SPIN else wait
            for key, _ in self._selector.select(wait):
                if key.data is not None:
                    self._read(key.data)
                elif not self._obey():
                    return
            self._deliver()

    def _obey(self) -> bool:
        line = sys.stdin.readline()
        if not line:
            return False
        asked = json.loads(line)
        if "multicast" in asked:
            self.multicast = asked["multicast"]
        for cable in self._cables:
            if asked.get("host") not in (None, cable.number):
                continue
            cable.up = asked.get("up", cable.up)
            cable.loss = asked.get("loss", cable.loss)
            cable.apart = set(asked.get("apart", cable.apart))
            if "shape" in asked:
                cable.shape(Shape(**asked["shape"]))
        print("done", flush=True)
        return True

    def _read(self, cable: Cable) -> None:
        for _ in range(BATCH):
            try:
                frame = os.read(cable.device, MTU + 64)
            except BlockingIOError:
                return
            if cable.up and not self._lost(cable):
                self._forward(cable, frame)

    def _forward(self, source: Cable, frame: bytes) -> None:
        target = self._by_mac.get(frame[:6])
        group = frame[0] & 1
        if target is None and not group:
            return
        if group and frame[:6] != _BROADCAST and not self.multicast:
            return
        now = time.monotonic()
        at_switch = _through(source.to_switch, now, now, len(frame))
        if at_switch is None:
            return
        for cable in [target] if target is not None else self._cables:
            if cable is source or source.number in cable.apart or self._lost(cable):
                continue
            release = _through(cable.to_host, now, at_switch, len(frame))
            if release is not None:
                self._count += 1
                heapq.heappush(self._queue, (release, self._count, cable, frame))

    def _lost(self, cable: Cable) -> bool:
        return bool(cable.loss) and self._dice.random() < cable.loss

    def _deliver(self) -> None:
        now = time.monotonic()
        while self._queue and self._queue[0][0] <= now:
            _, _, cable, frame = heapq.heappop(self._queue)
            if cable.up:
                with contextlib.suppress(OSError):  # its queue is full, or the device is down
                    os.write(cable.device, frame)


def _through(pacer: Pacer, now: float, given: float, size: int) -> float | None:
    """When a frame that enters a cable at ``given`` leaves it; None if its queue is full."""
    if pacer.shape.rate and pacer.backlog(given) > BUFFER_SECONDS:
        return None
    return pacer.release(max(now, given), size)


def _plug(number: int, namespace: str, address: str) -> Cable:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    name = f"lab{number}"
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH", name.encode(), _TAP_NO_INFO))
    mac = mac_of(number).hex(":")
    for line in (
        f"link set {name} netns {namespace}",
        f"-n {namespace} link set {name} name eth0 mtu {MTU} address {mac}",
        f"-n {namespace} addr add {address} brd + dev eth0",
        f"-n {namespace} link set eth0 up",
        f"-n {namespace} link set lo up",
    ):
        subprocess.run(["ip", *line.split()], check=True, timeout=10)
    return Cable(namespace, device, number)


if __name__ == "__main__":
    Switch(json.loads(sys.argv[1])).serve()

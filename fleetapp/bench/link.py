"""A network link between two neighbours on one machine: delay, rate, jitter, partition.

A relay of TCP bytes, encrypted or not. Every piece gets the time at which the link would have
delivered it and is handed on then; pieces that follow are on their way meanwhile. (Sleeping in
send or receive instead would hide exactly the overlap that is to be measured.)
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

_PIECE: Final = 1 << 16
_SMALLEST: Final = 1500
_TICK: Final = 0.002
"""Seconds that one piece takes on a link with a rate: it is handed on whole."""
_BUFFER: Final = 16 << 20
"""Bytes on their way in one direction; a sender that fills them waits."""
_DEADLINE: Final = 10.0


@dataclass(frozen=True)
class Shape:
    """What a link does to what it carries, in each direction.

    Attributes:
        delay: one way, in seconds.
        rate: bits per second; 0 for as fast as it goes.
        jitter: up to so many seconds more, evenly distributed. Nothing overtakes.
    """

    delay: float = 0.0
    rate: float = 0.0
    jitter: float = 0.0

    @property
    def piece(self) -> int:
        """Bytes handed on at once."""
        if not self.rate:
            return _PIECE
        return max(_SMALLEST, min(_PIECE, int(self.rate / 8 * _TICK)))


class Pacer:
    """When a link delivers what is sent over it. Pure: time comes in, time goes out."""

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        self.shape = shape
        self._dice = random.Random(seed)  # noqa: S311 (jitter, no secret)
        self._free = 0.0
        self._last = 0.0

    def backlog(self, now: float) -> float:
        """Seconds for which the link is busy with what it was given before."""
        return max(0.0, self._free - now)

    def release(self, now: float, size: int) -> float:
        """The time at which ``size`` bytes given to the link ``now`` come out."""
        shape = self.shape
        begins = max(now, self._free)
        self._free = begins + (size * 8 / shape.rate if shape.rate else 0.0)
        more = self._dice.random() * shape.jitter if shape.jitter else 0.0
        self._last = max(self._last, self._free + shape.delay + more)
        return self._last


@dataclass
class Carried:
    """What one direction has carried.

    Attributes:
        bytes: handed on.
        most_on_the_way: the largest number of pieces at one time.
    """

    bytes: int = 0
    most_on_the_way: int = 0


class Link:
    """Listens on a port of 127.0.0.1 and relays every connection to another one.

    Args:
        target: port on 127.0.0.1.
        shape: of both directions.
        seed: of the jitter.
    """

    def __init__(self, target: int, shape: Shape | None = None, *, seed: int = 0) -> None:
        self._target = target
        self._shape = shape or Shape()
        self._seed = seed
        self._lock = threading.Lock()
        self._open = threading.Event()
        self._open.set()
        self._sockets: set[socket.socket] = set()
        self._pumps: list[_Pump] = []
        self._closed = False
        self.forward = Carried()
        self.back = Carried()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(0.2)
        self._threads = [threading.Thread(target=self._accept, name="link-accept", daemon=True)]
        self._threads[0].start()

    @property
    def port(self) -> int:
        """To connect to instead of the target's."""
        return int(self._server.getsockname()[1])

    def reshape(self, shape: Shape) -> None:
        """From now on the link is like this; what is on its way arrives as it would have."""
        with self._lock:
            self._shape = shape
            for pump in self._pumps:
                pump.pacer.shape = shape

    def partition(self) -> None:
        """Nothing comes out any more, and nobody is told."""
        self._open.clear()

    def heal(self) -> None:
        """What was kept back comes out, in order."""
        self._open.set()

    def cut(self) -> None:
        """End every connection with a reset."""
        with self._lock:
            for sock in self._sockets:
                _reset(sock)
            self._sockets.clear()
        self._open.set()

    def close(self) -> None:
        """End everything and wait for the threads."""
        self._closed = True
        self.cut()
        for thread in list(self._threads):
            thread.join(_DEADLINE)
        self._server.close()

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                near, _ = self._server.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target), timeout=_DEADLINE)
            except OSError:
                _reset(near)
                continue
            self._relay(near, far)

    def _relay(self, near: socket.socket, far: socket.socket) -> None:
        for sock in (near, far):
            sock.settimeout(None)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            if self._closed:
                _reset(near)
                _reset(far)
                return
            self._sockets |= {near, far}
            ends = ((near, far, self.forward), (far, near, self.back))
            for source, sink, carried in ends:
                pacer = Pacer(self._shape, self._seed + len(self._pumps))
                pump = _Pump(source, sink, pacer, carried, self._open)
                self._pumps.append(pump)
                for work in (pump.read, pump.write):
                    thread = threading.Thread(target=work, name="link", daemon=True)
                    self._threads.append(thread)
                    thread.start()


@dataclass
class _Pump:
    """One direction of one connection: one thread reads, one hands on."""

    source: socket.socket
    sink: socket.socket
    pacer: Pacer
    carried: Carried
    open: threading.Event
    clock: Callable[[], float] = time.monotonic
    _news: threading.Condition = field(default_factory=threading.Condition)
    _on_the_way: deque[tuple[float, bytes]] = field(default_factory=deque)
    _bytes: int = 0

    def read(self) -> None:
        data = b"?"
        while data:
            try:
                data = self.source.recv(self.pacer.shape.piece)
            except OSError:
                data = b""
            with self._news:
                self._news.wait_for(lambda: self._bytes < _BUFFER)
                # The end of the stream takes its time on the link, too.
                self._on_the_way.append((self.pacer.release(self.clock(), len(data)), data))
                self._bytes += len(data)
                waiting = len(self._on_the_way)
                self.carried.most_on_the_way = max(self.carried.most_on_the_way, waiting)
                self._news.notify_all()

    def write(self) -> None:
        data = b"?"
        while data:
            with self._news:
                self._news.wait_for(lambda: self._on_the_way)
                release, data = self._on_the_way[0]
            while (left := release - self.clock()) > 0:
                time.sleep(left)
            self.open.wait()
            try:
                if data:
                    self.carried.bytes += len(data)
                    self.sink.sendall(data)
                else:
                    self.sink.shutdown(socket.SHUT_WR)
            except OSError:
                _reset(self.source)
                data = b""
            with self._news:
                self._on_the_way.popleft()
                self._bytes = self._bytes - len(data) if data else 0
                self._news.notify_all()


def _reset(sock: socket.socket) -> None:
    """End it at once; whoever waits in it is woken."""
    with contextlib.suppress(OSError):
        # An l_onoff of 1 with l_linger 0: a reset instead of a polite end.
        linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()

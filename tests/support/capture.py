"""Listens on the loopback interface (Linux, root) and tells what crosses it, stream by stream."""

from __future__ import annotations

import socket
import struct
import threading
from collections import defaultdict

Stream = tuple[int, int]
"""Source port, destination port."""


class Capture:
    """Records TCP payloads on ``lo``, in order and without retransmissions.

    Raises:
        PermissionError: raw sockets are not allowed here.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(0x0003))
        # SO_RCVBUFFORCE: root may exceed the system's limit; a dropped packet would spoil a stream
        self._socket.setsockopt(socket.SOL_SOCKET, 33, 512 * 2**20)
        self._socket.bind(("lo", 0))
        self._socket.settimeout(0.2)
        self._parts: dict[Stream, dict[int, bytes]] = defaultdict(dict)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Capture:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(5)
        self._socket.close()

    def streams(self) -> dict[Stream, bytes]:
        """Payload of every stream seen."""
        return {ports: _joined(parts) for ports, parts in list(self._parts.items())}

    def _run(self) -> None:
        while not self._end.is_set():
            try:
                frame = self._socket.recv(1 << 17)
            except TimeoutError:
                continue
            self._note(frame[14:])

    def _note(self, packet: bytes) -> None:
        if len(packet) < 40 or packet[0] >> 4 != 4 or packet[9] != 6:
            return
        header = (packet[0] & 15) * 4
        total = struct.unpack_from("!H", packet, 2)[0]
        source, target, sequence = struct.unpack_from("!HHI", packet, header)
        payload = packet[header + (packet[header + 12] >> 4) * 4 : total]
        if payload:
            self._parts[source, target].setdefault(sequence, payload)


def _joined(parts: dict[int, bytes]) -> bytes:
    """Segments in order, overlaps dropped.

    Raises:
        AssertionError: one is missing; the capture itself is at fault.
    """
    first = next(iter(parts))
    data, end = bytearray(), first
    for sequence in sorted(parts, key=lambda s: (s - first + 2**31) % 2**32):
        late = (end - sequence) % 2**32
        if late > 2**31:
            raise AssertionError(f"the capture lost {2**32 - late} bytes")
        data += parts[sequence][late:]
        end = max(end, sequence + len(parts[sequence]))
    return bytes(data)


def is_tls(data: bytes) -> bool:
    """Whether a stream begins with a TLS record: 20 change, 21 alert, 22 handshake, 23 data."""
    return len(data) >= 3 and data[0] in (20, 21, 22, 23) and data[1] == 3


def records_only(data: bytes) -> bool:
    """Whether a stream seen from its start is nothing but TLS records (a cut tail is fine)."""
    at = 0
    while at + 5 <= len(data):
        kind, major, _, size = struct.unpack_from("!BBBH", data, at)
        if kind not in (20, 21, 22, 23) or major != 3 or size > 16384 + 256:
            return False
        at += 5 + size
    return True

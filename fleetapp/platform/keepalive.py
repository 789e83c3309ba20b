"""Learning from the operating system that the PC at the other end of a connection is gone.

A PC whose process is stopped for a moment still acknowledges what its network stack receives; one
that was switched off or whose cable was pulled does not. Heartbeats cannot tell these two apart.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Final

IDLE: Final = 2
"""Seconds of silence before the first probe."""
INTERVAL: Final = 1
COUNT: Final = 3
GONE: Final = IDLE + INTERVAL * COUNT
"""Seconds after which a peer that acknowledges nothing has its connection ended."""


def watch_peer(connection: socket.socket | None) -> None:
    """End this connection when its peer acknowledges nothing for ``GONE`` seconds.

    Does what the system can: Windows and older systems lack some of the options, and anything but
    TCP all of them.
    """
    if connection is None:
        return
    wanted = (
        (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE", IDLE),
        (socket.IPPROTO_TCP, "TCP_KEEPINTVL", INTERVAL),
        (socket.IPPROTO_TCP, "TCP_KEEPCNT", COUNT),
        # Keepalive rests while something is under way; this covers what is never acknowledged.
        (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", GONE * 1000),
    )
    for level, name, value in wanted:
        option = getattr(socket, name, None)
        if option is not None:
            with contextlib.suppress(OSError):
                connection.setsockopt(level, option, value)

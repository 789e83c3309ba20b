import socket
import sys

import pytest

from fleetapp.platform.keepalive import GONE, watch_peer


@pytest.mark.skipif(sys.platform != "linux", reason="the options have these names on Linux")
def test_a_connection_is_probed_and_given_up_in_time() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as near,
    ):
        watch_peer(near)
        tcp = socket.IPPROTO_TCP
        idle, interval, count = (
            near.getsockopt(tcp, getattr(socket, name))
            for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
        )
        assert near.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert idle + interval * count == GONE
        assert near.getsockopt(tcp, socket.TCP_USER_TIMEOUT) == GONE * 1000


def test_what_is_no_tcp_connection_is_left_alone() -> None:
    watch_peer(None)
    one, other = socket.socketpair()
    with one, other:
        watch_peer(one)
        one.sendall(b"x")
        assert other.recv(1) == b"x"

import contextlib
import errno
import queue
import socket
import ssl
import threading
import time

import numpy as np
import pytest

from fleetapp.bench.link import Link, Shape
from fleetapp.errors import (
    Malformed,
    NotAMember,
    PeerClosed,
    PeerTimeout,
    UserError,
    WrongFleet,
)
from fleetapp.platform.keepalive import GONE
from fleetapp.wire import frames
from fleetapp.wire.channel import Connection
from tests.support.tls import Ends, TestAuthority, dial, listening


def big_step(tokens: int = 512, hidden: int = 4096) -> tuple[frames.Step, np.ndarray]:
    step = frames.Step(1, 2, (frames.Segment(0, 0, 0, tokens, True),), "f32", hidden)
    rows = np.random.default_rng(0).standard_normal((tokens, hidden), dtype=np.float32)
    return step, rows


def raw_client(authority: TestAuthority, port: int):
    """A peer that has a certificate and then does what it likes."""
    raw = socket.create_connection(("127.0.0.1", port), timeout=10)
    context = authority.context("rude.test", server=False)
    return context.wrap_socket(raw, server_hostname="server.test")


def test_messages_arrive_whole_and_in_order(ends: Ends) -> None:
    step, rows = big_step()
    sender = threading.Thread(
        target=lambda: [ends.client.send(step, rows), ends.client.send(frames.Ping(1, 2))]
    )
    sender.start()
    frame, payload = ends.server.recv(10)
    assert frame == step
    assert payload == rows.tobytes()
    assert ends.server.recv(10)[0] == frames.Ping(1, 2)
    sender.join(10)
    assert ends.client.sent_bytes == ends.server.received_bytes > rows.nbytes


def test_both_sides_know_who_the_other_is(ends: Ends) -> None:
    assert len(ends.client.peer_spki) == len(ends.server.peer_spki) == 64
    assert ends.client.peer_spki != ends.server.peer_spki


def test_an_idle_wait_leaves_the_connection_sound(ends: Ends) -> None:
    with pytest.raises(PeerTimeout):
        ends.server.recv(5, idle=0.05)
    ends.client.send(frames.Ping(1, 1))
    assert ends.server.recv(5, idle=5)[0] == frames.Ping(1, 1)


def rude(authority: TestAuthority, **kw):
    accepted: queue.Queue[Connection] = queue.Queue()
    listener = listening(authority, accepted.put, **kw)
    peer = raw_client(authority, listener.port)
    return peer, accepted.get(timeout=10), listener


def test_a_peer_that_dribbles_bytes_is_cut(authority) -> None:
    peer, connection, listener = rude(authority)
    stop = threading.Event()

    def dribble() -> None:
        message = b"\x01FLT\x00\x00\x10\x00\x00\x00\x00\x00" + bytes(4096)
        for byte in message:
            if stop.wait(0.02):
                return
            try:
                peer.send(bytes([byte]))
            except OSError:
                return

    thread = threading.Thread(target=dribble)
    thread.start()
    began = time.monotonic()
    with pytest.raises(PeerTimeout, match="did not finish"):
        connection.recv(0.5)
    assert time.monotonic() - began < 3
    assert connection.closed
    stop.set()
    thread.join(10)
    peer.close()
    listener.close()


@pytest.mark.parametrize(
    "message",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        bytes(64),
        b"\x01FLT" + b"\xff" * 8,
        b"\x01FLT\x00\x00\x00\x05\x00\x00\x00\x00hello",
    ],
)
def test_garbage_and_oversize_are_refused_and_the_connection_closed(authority, message) -> None:
    peer, connection, listener = rude(authority)
    peer.sendall(message)
    with pytest.raises(Malformed):
        connection.recv(5)
    assert connection.closed
    peer.close()
    listener.close()


def test_half_a_message_and_then_the_end(authority) -> None:
    peer, connection, listener = rude(authority)
    peer.sendall(b"\x01FLT\x00\x00\x00\x05\x00\x00\x00\x00he")
    peer.close()
    with pytest.raises(PeerClosed):
        connection.recv(5)
    listener.close()


def test_a_half_closed_peer_is_a_closed_peer(authority) -> None:
    peer, connection, listener = rude(authority)
    socket.socket.shutdown(peer, socket.SHUT_WR)
    with pytest.raises(PeerClosed):
        connection.recv(5)
    peer.close()
    listener.close()


def test_a_reset_is_a_closed_peer(authority) -> None:
    peer, connection, listener = rude(authority)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    peer.close()
    with pytest.raises(PeerClosed):
        connection.recv(5)
    listener.close()


def test_a_peer_that_does_not_read_is_cut(ends: Ends) -> None:
    step, rows = big_step(2048, 4096)
    with pytest.raises(PeerTimeout, match="did not take"):
        ends.client.send(step, rows, deadline=0.5)
    assert ends.client.closed
    with pytest.raises(PeerClosed):
        ends.client.send(frames.Ping(0, 0))


@pytest.mark.parametrize("part", [0, 5])
def test_a_peer_that_falls_silent_is_cut_after_a_while_also_within_a_message(
    ends: Ends, part: int
) -> None:
    """``idle`` is long, as where nobody knows whether the peer has anything to say."""
    ends.server.patience = 0.5
    ends.client.send(frames.Ping(1, 1))
    assert ends.server.recv(20, idle=60)[0] == frames.Ping(1, 1)
    ends.client._sock.sendall(b"\x00" * part)
    started = time.monotonic()
    with pytest.raises(PeerTimeout, match=r"sent nothing for 0\.5 s"):
        ends.server.recv(20, idle=60)
    assert 0.4 < time.monotonic() - started < 3
    assert ends.server.closed


def test_a_peer_that_takes_nothing_is_cut_after_a_while(ends: Ends) -> None:
    step, rows = big_step(2048, 4096)
    ends.client.patience = 0.5
    started = time.monotonic()
    with pytest.raises(PeerTimeout, match=r"took nothing for 0\.5 s"):
        ends.client.send(step, rows, deadline=20)
    assert time.monotonic() - started < 5
    assert ends.client.closed


def test_a_wrong_payload_harms_nobody(ends: Ends) -> None:
    step, _ = big_step()
    with pytest.raises(Malformed):
        ends.client.send(step, b"short")
    ends.client.send(frames.Ping(0, 3))
    assert ends.server.recv(5)[0] == frames.Ping(0, 3)


def test_close_from_another_thread_wakes_a_reader(ends: Ends) -> None:
    outcome: queue.Queue[BaseException] = queue.Queue()

    def read() -> None:
        try:
            ends.server.recv(60)
        except PeerClosed as e:
            outcome.put(e)

    thread = threading.Thread(target=read)
    thread.start()
    ends.server.close()
    ends.server.close()
    assert isinstance(outcome.get(timeout=5), PeerClosed)
    thread.join(5)
    with pytest.raises(PeerClosed):
        ends.client.recv(5)


def test_close_from_another_thread_wakes_a_writer(ends: Ends) -> None:
    outcome: queue.Queue[BaseException] = queue.Queue()
    step, rows = big_step(2048, 4096)

    def write() -> None:
        try:
            ends.client.send(step, rows, deadline=60)
        except PeerClosed as e:
            outcome.put(e)

    thread = threading.Thread(target=write)
    thread.start()
    ends.client.close()
    assert isinstance(outcome.get(timeout=5), PeerClosed)
    thread.join(5)


def test_many_senders_on_one_connection_do_not_mix_their_messages(ends: Ends) -> None:
    step, rows = big_step(16, 1024)
    threads = [
        threading.Thread(target=lambda: [ends.client.send(step, rows) for _ in range(10)])
        for _ in range(4)
    ]
    for t in threads:
        t.start()
    for _ in range(40):
        assert ends.server.recv(10)[1] == rows.tobytes()
    for t in threads:
        t.join(10)


def test_one_direction_is_enforced(ends: Ends) -> None:
    ends.client.restrict("send")
    ends.server.restrict("recv")
    with pytest.raises(RuntimeError):
        ends.client.recv(1)
    with pytest.raises(RuntimeError):
        ends.server.send(frames.Ping(0, 0))


def unplug(connection: Connection, *tells: Exception | int) -> None:
    """Its peer acknowledges nothing: what the socket says one after the other."""
    told = iter(tells)

    def call(_view: memoryview) -> int:
        said = next(told)
        if isinstance(said, Exception):
            raise said
        return said

    sock = connection._sock
    sock.recv_into = sock.send = call  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize(
    "tells",
    [
        [TimeoutError(errno.ETIMEDOUT, "Connection timed out"), 0],
        [*[TimeoutError("The read operation timed out")] * GONE, 0],  # as OpenSSL 3 has it
    ],
    ids=["told", "not told"],
)
def test_a_peer_whose_cable_is_out_is_silent_and_has_not_left(
    ends: Ends, tells: list[Exception | int]
) -> None:
    unplug(ends.server, *tells)
    with pytest.raises(PeerTimeout, match="does not acknowledge"):
        ends.server.recv(30.0)
    assert ends.server.closed


def test_a_peer_that_takes_nothing_because_its_cable_is_out_is_silent(ends: Ends) -> None:
    unplug(ends.client, TimeoutError(errno.ETIMEDOUT, "Connection timed out"))
    with pytest.raises(PeerTimeout, match="does not acknowledge"):
        ends.client.send(frames.Ping(1, 1, ()))
    assert ends.client.closed


def test_a_peer_that_leaves_after_a_short_silence_has_left(ends: Ends) -> None:
    unplug(ends.server, *[TimeoutError("The read operation timed out")] * 3, 0)
    with pytest.raises(PeerClosed):
        ends.server.recv(30.0)


def test_a_silent_peer_blocks_nobody_and_is_cut(authority) -> None:
    accepted: queue.Queue[Connection] = queue.Queue()
    listener = listening(authority, accepted.put, handshake_deadline=0.5)
    silent = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(5)]
    good = raw_client(authority, listener.port)
    accepted.get(timeout=5).close()
    for s in silent:
        s.settimeout(5)
        assert s.recv(1) == b""
        s.close()
    good.close()
    listener.close()


def test_a_flood_of_silent_peers_does_not_lock_a_real_one_out(authority) -> None:
    accepted: queue.Queue[Connection] = queue.Queue()
    listener = listening(authority, accepted.put, handshake_deadline=30, max_pending=4)
    silent = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(10)]
    silent[0].settimeout(5)
    assert silent[0].recv(1) == b""
    good = raw_client(authority, listener.port)
    accepted.get(timeout=5).close()
    listener.close()
    silent[9].settimeout(5)
    assert silent[9].recv(1) == b""
    for s in [*silent, good]:
        s.close()


def test_a_plaintext_peer_is_refused_and_the_next_one_served(authority) -> None:
    accepted: queue.Queue[Connection] = queue.Queue()
    listener = listening(authority, accepted.put)
    with socket.create_connection(("127.0.0.1", listener.port), timeout=5) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert plain.recv(1000)[:1] in (b"", b"\x15")  # a TLS alert at most
    good = raw_client(authority, listener.port)
    accepted.get(timeout=5).close()
    good.close()
    listener.close()


def test_a_client_without_certificate_gets_nothing(authority, tmp_path) -> None:
    accepted: queue.Queue[Connection] = queue.Queue()
    listener = listening(authority, accepted.put)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    raw = socket.create_connection(("127.0.0.1", listener.port), timeout=5)
    tls = context.wrap_socket(raw)
    with pytest.raises(ssl.SSLError):
        tls.recv(1)
    tls.close()
    listener.close()
    assert accepted.empty()


def test_another_fleets_peer_is_refused_on_both_sides(authority, tmp_path) -> None:
    other = TestAuthority(tmp_path, "other")
    listener = listening(authority, lambda c: None)
    began = time.monotonic()
    with pytest.raises(WrongFleet):
        dial(other, listener.port)
    assert time.monotonic() - began < 5
    listener.close()


def test_a_peer_that_is_not_a_member_is_refused(authority) -> None:
    accepted: queue.Queue[Connection] = queue.Queue()

    def nobody(tls) -> str:
        raise NotAMember("That node is not in the membership.")

    listener = listening(authority, accepted.put, authenticate=nobody)
    client = dial(authority, listener.port)
    with pytest.raises(PeerClosed):
        client.recv(5)
    assert accepted.empty()
    client.close()
    listener.close()


def test_start_order_does_not_matter(authority) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    outcome: queue.Queue[Connection] = queue.Queue()

    thread = threading.Thread(target=lambda: outcome.put(dial(authority, port, 20)))
    thread.start()
    accepted: queue.Queue[Connection] = queue.Queue()
    listener = listening(authority, accepted.put, port=port)
    server, client = accepted.get(timeout=20), outcome.get(timeout=20)
    client.send(frames.Ping(3, 3))
    assert server.recv(5)[0] == frames.Ping(3, 3)
    for c in (client, server, listener):
        c.close()
    thread.join(5)


def test_the_right_one_of_several_addresses_is_found(authority) -> None:
    accepted: queue.Queue[Connection] = queue.Queue()
    listener = listening(authority, accepted.put)
    client = dial(
        authority, listener.port, 20, hosts=["127.0.0.9", "no-such-host.invalid", "127.0.0.1"]
    )
    assert client.peer.startswith("127.0.0.1:")
    accepted.get(timeout=5).close()
    client.close()
    listener.close()


def test_nobody_there_ends_at_the_deadline(authority) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    began = time.monotonic()
    with pytest.raises(PeerTimeout, match=str(port)):
        dial(authority, port, 0.5)
    assert time.monotonic() - began < 5


def test_a_listener_that_accepts_and_says_nothing_ends_at_the_deadline(authority) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        with pytest.raises(PeerTimeout):
            dial(authority, silent.getsockname()[1], 0.5)
        assert time.monotonic() - began < 5


def test_connecting_can_be_given_up(authority) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    with pytest.raises(PeerTimeout):
        dial(authority, port, 60, stop=stop)


def test_a_taken_port_is_one_clear_sentence(authority) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"Port {port} on 127.0.0.1"):
            listening(authority, lambda c: None, port=port)


def test_connecting_tells_the_round_trip_and_a_large_payload_the_rate(
    authority: TestAuthority,
) -> None:
    accepted: queue.Queue[Connection] = queue.Queue()
    listener = listening(authority, accepted.put)
    rate = 64e6
    with Link(listener.port, Shape(rate=rate)) as link:
        client = dial(authority, link.port, 20)
        server = accepted.get(timeout=20)
        assert 0 < client.round_trip < 1
        assert server.round_trip == 0
        seen: list[tuple[int, float]] = []
        server.transferred = lambda size, seconds: seen.append((size, seconds))
        step, rows = big_step(tokens=64)  # 1 MiB
        client.send(step, rows)
        client.send(frames.Ping(1, 2))
        assert server.recv(20)[0] == step
        assert server.recv(20)[0] == frames.Ping(1, 2)
        client.close()
        server.close()
    listener.close()
    ((size, seconds),) = seen
    assert size / seconds == pytest.approx(rate / 8, rel=0.4)

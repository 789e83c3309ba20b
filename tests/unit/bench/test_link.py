"""What a link does to bytes: all of them, in order, at their time, many on their way at once."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.bench.link import Link, Pacer, Shape

seconds = st.floats(0, 10, allow_nan=False)
sent = st.lists(st.tuples(seconds, st.integers(1, 1 << 20)), max_size=40)
shapes = st.builds(
    Shape,
    delay=st.floats(0, 1),
    rate=st.sampled_from([0.0, 1e6, 1e9]),
    jitter=st.sampled_from([0.0, 0.05]),
)


@given(shapes, sent)
def test_nothing_overtakes_and_nothing_is_early(
    shape: Shape, pieces: list[tuple[float, int]]
) -> None:
    pacer = Pacer(shape)
    pieces.sort(key=lambda p: p[0])
    out = [pacer.release(at, size) for at, size in pieces]
    assert out == sorted(out)
    for (at, size), release in zip(pieces, out, strict=True):
        own = size * 8 / shape.rate if shape.rate else 0.0
        assert release >= at + own + shape.delay - 1e-9


@given(sent)
def test_a_delay_alone_moves_everything_by_the_same_time(pieces: list[tuple[float, int]]) -> None:
    pacer = Pacer(Shape(delay=0.25))
    for at, size in sorted(pieces, key=lambda p: p[0]):
        assert pacer.release(at, size) == pytest.approx(at + 0.25)


def test_the_rate_is_shared_by_what_is_sent_at_once() -> None:
    pacer = Pacer(Shape(delay=1.0, rate=8000))
    assert [pacer.release(0.0, 500) for _ in range(3)] == [1.5, 2.0, 2.5]
    assert pacer.release(10.0, 1000) == 12.0


def test_jitter_is_bounded_and_repeatable() -> None:
    def releases(seed: int) -> list[float]:
        pacer = Pacer(Shape(jitter=0.1), seed)
        return [pacer.release(float(i), 1) for i in range(50)]

    assert releases(1) == releases(1) != releases(2)
    assert all(0 <= r - i <= 0.1 for i, r in enumerate(releases(1)))


class Far:
    """The other end: sends back what it gets, or keeps it."""

    def __init__(self, *, echo: bool = True) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.got = b""
        self.ended = threading.Event()
        self._echo = echo
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            connection, _ = self.server.accept()
            with connection:
                while data := connection.recv(1 << 16):
                    self.got += data
                    if self._echo:
                        connection.sendall(data)
        except OSError:
            pass
        self.ended.set()

    def close(self) -> None:
        self.server.close()


@pytest.fixture
def far() -> Iterator[Far]:
    made = Far()
    yield made
    made.close()


def connected(link: Link) -> socket.socket:
    return socket.create_connection(("127.0.0.1", link.port), timeout=20)


def exactly(near: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size and (data := near.recv(1 << 16)):
        found += data
    return found


@pytest.mark.parametrize(
    "shape", [Shape(), Shape(delay=0.01, jitter=0.01), Shape(rate=80e6, delay=0.005)]
)
def test_every_byte_arrives_in_order_both_ways(far: Far, shape: Shape) -> None:
    data = random.Random(1).randbytes(300_000)
    with Link(far.port, shape) as link, connected(link) as near:
        threading.Thread(target=near.sendall, args=(data,), daemon=True).start()
        assert exactly(near, len(data)) == data
        assert link.forward.bytes == link.back.bytes == len(data)


def test_messages_travel_at_the_same_time(far: Far) -> None:
    """Ten that are sent one by one are all on their way before the first arrives."""
    delay = 0.5
    with Link(far.port, Shape(delay=delay)) as link, connected(link) as near:
        began = time.monotonic()
        pieces = [bytes([i]) * 100 for i in range(10)]
        for number, piece in enumerate(pieces):
            near.sendall(piece)
            until = time.monotonic() + 10
            while link.forward.most_on_the_way <= number and time.monotonic() < until:
                if time.monotonic() - began > delay / 2:
                    break  # a machine this slow may join pieces; enough of them are apart
                threading.Event().wait(0.001)
        assert exactly(near, 1000) == b"".join(pieces)
        assert time.monotonic() - began >= 2 * delay
        assert link.forward.most_on_the_way > 1


def test_a_partition_keeps_everything_back_until_it_heals(far: Far) -> None:
    with Link(far.port) as link, connected(link) as near:
        near.sendall(b"before")
        assert exactly(near, 6) == b"before"
        link.partition()
        near.sendall(b"during")
        near.settimeout(0.3)
        with pytest.raises(TimeoutError):
            near.recv(1)
        link.heal()
        near.settimeout(20)
        assert exactly(near, 6) == b"during"


def test_the_end_of_one_side_reaches_the_other(far: Far) -> None:
    with Link(far.port, Shape(delay=0.02)) as link:
        near = connected(link)
        near.sendall(b"last words")
        near.shutdown(socket.SHUT_WR)
        assert exactly(near, 100) == b"last words"
        assert far.ended.wait(20)
        near.close()


def test_a_cut_ends_connections_and_the_link_takes_new_ones(far: Far) -> None:
    with Link(far.port) as link:
        with connected(link) as near:
            near.sendall(b"x")
            assert exactly(near, 1) == b"x"
            link.cut()
            with contextlib.suppress(ConnectionError):  # a reset, or an end, as the system likes
                assert near.recv(1) == b""
        with connected(link) as again:
            assert again.fileno() >= 0
        assert far.ended.wait(20)


def test_a_target_that_is_not_there_looks_like_one() -> None:
    with socket.socket() as nobody:  # has a port and does not listen; the link cannot get it
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        # The end may come as early as while connecting.
        with Link(port) as link, contextlib.suppress(ConnectionError), connected(link) as near:
            assert near.recv(1) == b""


def test_closing_leaves_no_thread(far: Far) -> None:
    before = threading.active_count()
    with Link(far.port, Shape(delay=0.01)) as link, connected(link) as near:
        near.sendall(b"x")
        assert exactly(near, 1) == b"x"
    assert far.ended.wait(20)
    until = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < until:
        threading.Event().wait(0.01)
    assert threading.active_count() <= before


def test_reshaping_applies_to_what_is_sent_from_now_on(far: Far) -> None:
    with Link(far.port, Shape(delay=20.0)) as link:
        link.reshape(Shape())
        with connected(link) as near:
            near.sendall(b"x")
            assert exactly(near, 1) == b"x"

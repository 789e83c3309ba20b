import queue
import threading

import pytest

from fleetapp import __version__
from fleetapp.errors import FleetError, HashMismatch, Malformed, PeerTimeout, VersionMismatch
from fleetapp.types import PROTOCOL_VERSION
from fleetapp.wire import codec, frames
from fleetapp.wire.hello import client_hello, expect_hello
from tests.support.tls import Ends


def hello(protocol: int = PROTOCOL_VERSION, model: str = "m") -> frames.Hello:
    return frames.Hello(protocol, "0.0.9", "ov", "f", "c", 3, 0, 1, 2, model, 10, "exact")


YES = frames.HelloReply(ok=True, protocol=PROTOCOL_VERSION)


def serve(ends: Ends, check) -> queue.Queue[frames.Hello | FleetError]:
    outcome: queue.Queue[frames.Hello | FleetError] = queue.Queue()

    def run() -> None:
        try:
            outcome.put(expect_hello(ends.server, check, deadline=5))
        except FleetError as e:
            outcome.put(e)

    threading.Thread(target=run, daemon=True).start()
    return outcome


def test_two_that_fit_together_go_on_in_one_direction(ends: Ends) -> None:
    seen: list[str] = []
    outcome = serve(ends, lambda h, spki: seen.append(spki) or YES)
    assert client_hello(ends.client, hello()).ok
    assert outcome.get(timeout=5) == hello()
    assert seen == [ends.server.peer_spki]
    ends.client.send(frames.Ping(1, 1))
    assert ends.server.recv(5)[0] == frames.Ping(1, 1)
    with pytest.raises(RuntimeError):
        ends.client.recv(1)
    with pytest.raises(RuntimeError):
        ends.server.send(frames.Ping(1, 1))


@pytest.mark.parametrize("theirs", [PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1])
def test_another_protocol_is_refused_and_both_sides_are_named(ends: Ends, theirs: int) -> None:
    outcome = serve(ends, lambda h, spki: YES)
    with pytest.raises(VersionMismatch) as e:
        client_hello(ends.client, hello(theirs))
    mine = outcome.get(timeout=5)
    assert isinstance(mine, VersionMismatch)
    for text in (e.value.message, mine.message):
        assert f"protocol {theirs} (fleetapp 0.0.9)" in text
        assert f"protocol {PROTOCOL_VERSION} (fleetapp {__version__})" in text
    assert ends.client.closed
    assert ends.server.closed


def test_a_peer_that_frames_in_another_version_hears_why(ends: Ends) -> None:
    outcome = serve(ends, lambda h, spki: YES)
    theirs = PROTOCOL_VERSION + 1
    raw = b"".join(codec.encode(hello(theirs), protocol=theirs))
    ends.client._sock.sendall(raw)
    reply, _ = ends.client.recv(5)
    assert isinstance(reply, frames.HelloReply)
    assert reply.code == "version_mismatch"
    assert f"protocol {theirs}" in reply.reason
    assert isinstance(outcome.get(timeout=5), VersionMismatch)


def test_a_refusal_arrives_as_the_error_it_is(ends: Ends) -> None:
    reason = "Stage 1 holds another model than stage 0."
    no = frames.HelloReply(False, PROTOCOL_VERSION, "hash_mismatch", reason)
    outcome = serve(ends, lambda h, spki: no)
    with pytest.raises(HashMismatch, match="another model"):
        client_hello(ends.client, hello())
    assert isinstance(outcome.get(timeout=5), HashMismatch)


def test_whoever_begins_with_something_else_is_refused(ends: Ends) -> None:
    outcome = serve(ends, lambda h, spki: YES)
    ends.client.send(frames.Ping(0, 0))
    assert isinstance(outcome.get(timeout=5), Malformed)
    assert ends.server.closed


def test_silence_ends_at_the_deadline(ends: Ends) -> None:
    with pytest.raises(PeerTimeout):
        expect_hello(ends.server, lambda h, spki: YES, deadline=0.1)
    assert ends.server.closed

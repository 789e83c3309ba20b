"""Who can connect to whom: every refusal on loopback, seen from both ends."""

import datetime as dt
import socket
import ssl
import threading
from collections.abc import Callable

import pytest

from fleetapp.errors import (
    FleetError,
    NotAMember,
    PeerTimeout,
    ProtocolError,
    VersionMismatch,
    WrongFleet,
)
from fleetapp.fleet import tls
from tests.support.fleet import TestFleet, TestMember

DEADLINE = 20.0
Outcome = str | None | FleetError
Side = Callable[[socket.socket], Outcome]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> TestFleet:
    return TestFleet(tmp_path_factory.mktemp("José 測試 dir"))


@pytest.fixture(scope="module")
def anna(fleet: TestFleet) -> TestMember:
    return fleet.enrol("anna")


@pytest.fixture(scope="module")
def bert(fleet: TestFleet) -> TestMember:
    return fleet.enrol("bert")


@pytest.fixture(scope="module")
def expired(fleet: TestFleet) -> TestMember:
    return fleet.enrol("old", issued=dt.datetime.now(dt.UTC) - dt.timedelta(days=31))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> TestMember:
    return TestFleet(tmp_path_factory.mktemp("other")).enrol("stranger")


def run_side(side: Side, sock: socket.socket, peer: str) -> Outcome:
    sock.settimeout(DEADLINE)
    try:
        return side(sock)
    except (OSError, EOFError) as exc:
        return tls.explain_tls_error(exc, peer)
    finally:
        sock.close()


def meet(server: Side, client: Side) -> tuple[Outcome, Outcome]:
    """(outcome of the server, outcome of the client): a peer's SPKI, or the error explained."""
    seen: list[Outcome] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(DEADLINE)

        def accept() -> None:
            seen.append(run_side(server, listener.accept()[0], "the client"))

        thread = threading.Thread(target=accept)
        thread.start()
        theirs = run_side(
            client, socket.create_connection(listener.getsockname(), DEADLINE), "the server"
        )
        thread.join(DEADLINE)
    assert not thread.is_alive()
    return seen[0], theirs


def serving(context: ssl.SSLContext) -> Side:
    def side(sock: socket.socket) -> Outcome:
        with context.wrap_socket(sock, server_side=True) as secure:
            assert secure.version() == "TLSv1.3"
            secure.sendall(b"x")
            secure.recv(1)
            return tls.peer_spki(secure)

    return side


def asking(context: ssl.SSLContext, name: str) -> Side:
    def side(sock: socket.socket) -> Outcome:
        with context.wrap_socket(sock, server_hostname=name) as secure:
            # a refusal of our certificate comes with the first read
            if not secure.recv(1):
                raise EOFError
            secure.sendall(b"x")
            return tls.peer_spki(secure)

    return side


def server_of(member: TestMember, *, optional: bool = False) -> Side:
    return serving(tls.server_context(member.enrolment.credentials, optional_client=optional))


def client_of(member: TestMember, name: str) -> Side:
    return asking(tls.client_context(member.enrolment.credentials), name)


def unverified(member: TestMember | None) -> Side:
    """A client that believes any server, so that the server has to do the refusing."""
    context = tls.join_client_context()
    if member is not None:
        credentials = member.enrolment.credentials
        context.load_cert_chain(credentials.leaf_path, credentials.key_path)
    return asking(context, "any.fleet.internal")


def test_members_of_one_fleet_meet_and_know_each_others_key(
    anna: TestMember, bert: TestMember
) -> None:
    server, client = meet(server_of(anna), client_of(bert, anna.hostname))
    assert server == bert.identity.spki
    assert client == anna.identity.spki


def test_a_client_turns_away_from_another_fleet(anna: TestMember, stranger: TestMember) -> None:
    server, client = meet(server_of(anna), client_of(stranger, anna.hostname))
    assert isinstance(client, WrongFleet)
    assert "the server" in client.message
    assert isinstance(server, WrongFleet)


def test_a_server_turns_another_fleet_away(anna: TestMember, stranger: TestMember) -> None:
    for optional in (False, True):
        server, client = meet(server_of(anna, optional=optional), unverified(stranger))
        assert isinstance(server, WrongFleet)
        assert isinstance(client, WrongFleet)


def test_without_a_certificate_there_is_nothing_to_get(anna: TestMember) -> None:
    pinned = tls.pinned_context(anna.enrolment.credentials.authority_pem)
    server, client = meet(server_of(anna), asking(pinned, anna.hostname))
    assert isinstance(server, NotAMember)
    assert isinstance(client, NotAMember)


def test_where_joining_is_possible_a_client_may_show_nothing(
    anna: TestMember, bert: TestMember
) -> None:
    pinned = tls.pinned_context(anna.enrolment.credentials.authority_pem)
    server, client = meet(server_of(anna, optional=True), asking(pinned, anna.hostname))
    assert server is None
    assert client == anna.identity.spki
    server, _ = meet(server_of(anna, optional=True), client_of(bert, anna.hostname))
    assert server == bert.identity.spki


def test_joining_first_looks_without_believing(anna: TestMember) -> None:
    server, client = meet(server_of(anna, optional=True), unverified(None))
    assert server is None
    assert client == anna.identity.spki


def test_who_knows_the_authority_from_a_code_notices_an_impostor(
    anna: TestMember, stranger: TestMember
) -> None:
    pinned = tls.pinned_context(anna.enrolment.credentials.authority_pem)
    _, client = meet(server_of(stranger, optional=True), asking(pinned, anna.hostname))
    assert isinstance(client, WrongFleet)


def test_an_expired_certificate_is_refused_from_both_ends(
    anna: TestMember, expired: TestMember
) -> None:
    _, client = meet(server_of(expired), client_of(anna, expired.hostname))
    assert isinstance(client, NotAMember)
    assert "expired" in client.message
    assert "clock" in client.remedy
    server, client = meet(server_of(anna), client_of(expired, anna.hostname))
    assert isinstance(server, NotAMember)
    assert "expired" in server.message
    assert isinstance(client, NotAMember)
    assert "expired" in client.message


def test_a_certificate_from_the_future_is_refused(fleet: TestFleet, anna: TestMember) -> None:
    early = fleet.enrol("early", issued=dt.datetime.now(dt.UTC) + dt.timedelta(days=2))
    _, client = meet(server_of(early), client_of(anna, early.hostname))
    assert isinstance(client, NotAMember)
    assert "not valid yet" in client.message


def test_another_member_at_the_address_is_noticed(anna: TestMember, bert: TestMember) -> None:
    _, client = meet(server_of(anna), client_of(anna, bert.hostname))
    assert isinstance(client, NotAMember)
    assert "another one" in client.message


def test_a_self_made_certificate_is_no_membership(anna: TestMember, bert: TestMember) -> None:
    context = tls.join_client_context()
    context.load_cert_chain(bert.identity.cert_path, bert.identity.key_path)
    server, client = meet(server_of(anna, optional=True), asking(context, anna.hostname))
    assert isinstance(server, WrongFleet)
    assert isinstance(client, WrongFleet)


def test_the_systems_own_roots_count_for_nothing(anna: TestMember) -> None:
    credentials = anna.enrolment.credentials
    for context in (
        tls.server_context(credentials),
        tls.client_context(credentials),
        tls.pinned_context(credentials.authority_pem),
    ):
        assert len(context.get_ca_certs()) == 1
        assert context.minimum_version == context.maximum_version == ssl.TLSVersion.TLSv1_3
    assert tls.server_context(credentials).num_tickets == 0


def test_tls_1_2_is_refused_from_both_ends(anna: TestMember) -> None:
    old_client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old_client.check_hostname, old_client.verify_mode = False, ssl.CERT_NONE
    old_client.maximum_version = ssl.TLSVersion.TLSv1_2
    server, client = meet(server_of(anna), asking(old_client, "x"))
    assert isinstance(server, VersionMismatch)
    assert isinstance(client, VersionMismatch)

    old_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    old_server.maximum_version = ssl.TLSVersion.TLSv1_2
    credentials = anna.enrolment.credentials
    old_server.load_cert_chain(credentials.leaf_path, credentials.key_path)
    server, client = meet(serving(old_server), client_of(anna, anna.hostname))
    assert isinstance(client, VersionMismatch)
    assert isinstance(server, VersionMismatch)


def talking(data: bytes) -> Side:
    def side(sock: socket.socket) -> Outcome:
        sock.sendall(data)
        while sock.recv(4096):
            pass
        return None

    return side


@pytest.mark.parametrize(
    "words", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x00" * 64, b"SSH-2.0-x\r\n", b"\xff" * 5000]
)
def test_whoever_speaks_no_tls_is_told_apart(anna: TestMember, words: bytes) -> None:
    server, _ = meet(server_of(anna), talking(words))
    assert isinstance(server, ProtocolError)
    _, client = meet(talking(words), client_of(anna, anna.hostname))
    assert isinstance(client, ProtocolError)
    for error in (server, client):
        assert error.message.endswith(".")


def test_who_hangs_up_in_the_handshake_is_told_apart(anna: TestMember) -> None:
    _, client = meet(lambda sock: None, client_of(anna, anna.hostname))
    assert isinstance(client, ProtocolError)
    assert "ended the connection" in client.message


def test_silence_and_unknown_failures_have_a_sentence_too() -> None:
    assert isinstance(tls.explain_tls_error(TimeoutError(), "x"), PeerTimeout)
    assert isinstance(tls.explain_tls_error(RuntimeError("?"), "x"), ProtocolError)
    known = NotAMember("as it was")
    assert tls.explain_tls_error(known, "x") is known

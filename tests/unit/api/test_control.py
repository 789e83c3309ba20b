"""Who may say what on the coordinator's control port, over real TLS with real certificates."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import msgspec
import pytest
from yarl import URL

from fleetapp.api.control import Deadlines
from fleetapp.fleet import joincode, tls
from fleetapp.fleet.control import (
    MAX_MESSAGE,
    AuthorityReply,
    Goodbye,
    JoinReply,
    JoinRequest,
    MembershipUpdate,
    Welcome,
)
from fleetapp.fleet.membership import remove, rename, revoke
from fleetapp.hub.hub import LEFT
from fleetapp.types import PROTOCOL_VERSION, FleetView
from tests.support.control_server import (
    Caller,
    ControlServer,
    Speaker,
    as_member,
    as_stranger,
    showing,
    speaking,
)
from tests.support.fleet import TestFleet, TestMember
from tests.support.hubs import hello


@pytest.fixture
def ben(server: ControlServer) -> TestMember:
    return server.home.enrol("ben")


# ------------------------------------------------------------------ who gets in


async def test_a_member_connects_and_is_seen(server: ControlServer, anna: TestMember) -> None:
    async with speaking(server, anna) as line:
        await server.until(lambda: server.online() == {"anna"})
        assert await line.beat()
    await server.until(lambda: server.online() == set())


async def test_the_welcome_carries_the_newest_membership(
    server: ControlServer, anna: TestMember
) -> None:
    async with as_member(server, anna) as caller:
        line = Speaker(caller, await caller.socket())
        await line.say(hello(anna.identity))
        welcome = await line.hear()
        assert isinstance(welcome, Welcome)
        assert welcome.protocol == PROTOCOL_VERSION
        assert welcome.fleet == server.home.fleet.authority.fleet_id
        assert welcome.membership == server.home.trust.signed


@pytest.mark.parametrize(
    "path",
    [
        "/control",
        "/fleet",
        f"/blobs/{'0' * 64}",
        "/api/v1/models",
        "/api/healthz",
        "/",
        "/nothing",
        "/join/../fleet",
        "/join/%2e%2e/fleet",
        "/join%2f..%2ffleet",
        "//join/../fleet",
    ],
)
async def test_a_stranger_reaches_nothing_but_joining(server: ControlServer, path: str) -> None:
    async with as_stranger(server) as caller:
        url = URL(f"{server.base}{path}", encoded=True)
        async with caller.session.get(
            url, ssl=caller._context, server_hostname=server.hostname
        ) as response:
            assert response.status == 403
            body = msgspec.json.decode(await response.read())
    assert body["error"]["code"] == "not_a_member"


async def test_a_stranger_may_see_the_authority_and_join(server: ControlServer) -> None:
    code = server.home.codes.create(hours=1, uses=1).code
    identity = server.home.newcomer("anna")
    async with as_stranger(server) as caller:
        shown = msgspec.json.decode(
            (await caller.call("/join/authority")).body, type=AuthorityReply
        )
        assert shown.hub_device == server.home.me.identity.device_id
        ask = JoinRequest(
            PROTOCOL_VERSION, joincode.decode(code).secret.hex(), identity.csr().decode(), "anna"
        )
        answer = await caller.call("/join/request", "POST", msgspec.json.encode(ask))
    assert answer.status == 200
    assert msgspec.json.decode(answer.body, type=JoinReply).leaf
    assert identity.device_id in server.home.members


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (b"", "bad_request", "malformed"),
        (b"{", "bad_request", "malformed"),
        (b"\xff", "bad_request", "malformed"),
        (b'{"protocol": "x"}', "bad_request", "malformed"),
        (b'{"protocol": 1}', "bad_request", "malformed"),
        (b'{"protocol": 2, "new": []}', "version_mismatch", "protocol 2"),
        (b'{"protocol": 0}', "version_mismatch", "protocol 0"),
        (b'{"protocol": 1, "secret": "00", "csr": "", "name": ""}', "malformed", "request"),
        (b" " * 70_000, "too_large", "larger"),
    ],
)
async def test_a_bad_join_request_is_refused_by_name(
    server: ControlServer, body: bytes, code: str, words: str
) -> None:
    async with as_stranger(server) as caller:
        answer = await caller.call("/join/request", "POST", body)
    assert answer.code == code
    assert words in answer.message
    assert len(server.home.members) == 1


async def test_a_join_request_of_another_version_names_both_sides(server: ControlServer) -> None:
    async with as_stranger(server) as caller:
        answer = await caller.call("/join/request", "POST", b'{"protocol": 7}')
    assert "protocol 7" in answer.message
    assert f"protocol {PROTOCOL_VERSION}" in answer.message


async def test_a_certificate_of_another_fleet_does_not_get_past_the_handshake(
    server: ControlServer, tmp_path: Path
) -> None:
    foreign = TestFleet(tmp_path / "other").enrol("eve")
    assert await _heard(server, showing(server, foreign), "/join/authority") == b""


async def test_an_expired_certificate_does_not_get_past_the_handshake(
    server: ControlServer,
) -> None:
    past = dt.datetime.now(dt.UTC) - dt.timedelta(days=90)
    old = server.home.fleet.enrol("old", issued=past)
    context = tls.client_context(old.enrolment.credentials)
    assert await _heard(server, context, "/fleet") == b""


async def _heard(server: ControlServer, context: ssl.SSLContext, path: str) -> bytes:
    """All that a client hears.

    In TLS 1.3 its handshake is over before the server has seen its certificate: the refusal comes
    with the first read (and asyncio closes without sending the alert that would say why).
    """
    reader, writer = await _open(server, context)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    try:
        return await asyncio.wait_for(reader.read(), 5)
    except (ssl.SSLError, ConnectionError):
        return b""
    finally:
        writer.close()


async def test_a_good_certificate_without_a_place_in_the_list_opens_nothing(
    server: ControlServer,
) -> None:
    # Issued by the right authority, for a key that nobody let in.
    loner = TestFleet.enrol(server.home.fleet, "loner")
    async with as_member(server, loner) as caller:
        for path in ("/fleet", "/api/v1/models", f"/blobs/{'0' * 64}"):
            answer = await caller.call(path)
            assert (answer.status, answer.code) == (403, "not_a_member")
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await caller.socket()
        assert caught.value.status == 403


async def test_plain_http_gets_nothing(server: ControlServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /join/authority HTTP/1.1\r\nHost: a\r\n\r\n")
    assert b"HTTP" not in await asyncio.wait_for(reader.read(100), 5)
    writer.close()


async def test_older_tls_gets_nothing(server: ControlServer) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await _open(server, context)


async def _open(
    server: ControlServer, context: ssl.SSLContext
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(
        "127.0.0.1", server.port, ssl=context, server_hostname=server.hostname
    )


# ------------------------------------------------------------------ who is put out


async def test_a_revoked_member_is_refused_and_its_connection_cut(
    server: ControlServer, anna: TestMember, ben: TestMember
) -> None:
    async with speaking(server, anna) as theirs, speaking(server, ben) as other:
        assert (await theirs.caller.call("/fleet")).status == 200
        server.home.hub.change_membership(lambda m: revoke(m, anna.identity.device_id))
        refusal = await theirs.refusal()
        assert refusal.code == "not_a_member"
        assert (await theirs.caller.call("/fleet")).code == "not_a_member"
        assert isinstance(await other.hear(), MembershipUpdate)
        assert await other.beat()
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await theirs.caller.socket()


async def test_what_a_revoked_member_is_being_answered_is_cut_in_the_middle(
    server: ControlServer, anna: TestMember, ben: TestMember
) -> None:
    shard = server.shard()
    big = max(shard.chunks, key=lambda sha: len(shard.chunks[sha]))
    reading = server.home.hub.models.read_chunk
    begun, go_on = asyncio.Semaphore(0), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(sha256: str) -> bytes:
        # In a worker thread, like the disk it stands for.
        loop.call_soon_threadsafe(begun.release)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(10)
        return reading(sha256)

    server.home.hub.models.read_chunk = slow  # type: ignore[method-assign]
    async with as_member(server, anna) as theirs, as_member(server, ben) as other:
        cut = asyncio.create_task(theirs.call(f"/blobs/{big}"))
        whole = asyncio.create_task(other.call(f"/blobs/{big}"))
        async with asyncio.timeout(5):
            await begun.acquire()
            await begun.acquire()
        server.home.hub.change_membership(lambda m: revoke(m, anna.identity.device_id))
        # The client connects again by itself, as it would for any broken GET, and is told.
        assert (await cut).code == "not_a_member"
        go_on.set()
        assert (await whole).body == shard.chunks[big], "nobody else is disturbed"


async def test_a_renamed_member_keeps_its_connection(
    server: ControlServer, anna: TestMember
) -> None:
    async with speaking(server, anna) as line:
        server.home.hub.change_membership(lambda m: rename(m, anna.identity.device_id, "DESK"))
        assert isinstance(await line.hear(), MembershipUpdate)
        assert await line.beat()


async def test_leaving_is_answered_by_closing_and_removes_the_member(
    server: ControlServer, anna: TestMember
) -> None:
    async with speaking(server, anna) as line:
        await line.say(Goodbye(reason=LEFT))
        while await line.hear() is not None:
            pass
    assert anna.identity.device_id not in server.home.members


async def test_a_goodbye_for_now_is_answered_by_closing_and_removes_nobody(
    server: ControlServer, anna: TestMember
) -> None:
    async with speaking(server, anna) as line:
        await line.say(Goodbye(reason="shutting down"))
        assert await line.hear() is None
    assert anna.identity.device_id in server.home.members


async def test_one_removed_while_it_greets_is_not_attached(
    server: ControlServer, anna: TestMember
) -> None:
    async with as_member(server, anna) as caller:
        line = Speaker(caller, await caller.socket())
        server.home.hub.change_membership(lambda m: remove(m, anna.identity.device_id))
        await line.say(hello(anna.identity))
        assert (await line.refusal()).code == "not_a_member"
    assert server.home.hub.registry.sessions() == ()


# ------------------------------------------------------------------ what may be said


@pytest.mark.parametrize("protocol", [PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1, 999])
async def test_a_hello_of_another_version_is_refused_and_names_both(
    server: ControlServer, anna: TestMember, protocol: int
) -> None:
    async with speaking(server, anna, hello(anna.identity, protocol=protocol)) as line:
        refusal = await line.refusal()
    assert refusal.code == "version_mismatch"
    assert f"anna speaks protocol {protocol} (fleetapp 0.0.1)" in refusal.message
    assert f"the coordinator protocol {PROTOCOL_VERSION}" in refusal.message
    assert refusal.remedy
    assert server.home.hub.registry.sessions() == ()


async def test_a_hello_of_a_version_that_looks_different_is_still_told_apart(
    server: ControlServer, anna: TestMember
) -> None:
    async with as_member(server, anna) as caller:
        line = Speaker(caller, await caller.socket())
        await line.socket.send_str('{"type": "hello", "protocol": 2, "device_id": ["new"]}')
        assert (await line.refusal()).code == "version_mismatch"


async def test_a_hello_with_another_devices_id_is_refused(
    server: ControlServer, anna: TestMember, ben: TestMember
) -> None:
    async with speaking(server, anna, hello(ben.identity)) as line:
        refusal = await line.refusal()
    assert refusal.code == "not_a_member"
    assert "another device's id" in refusal.message


GARBAGE = [
    "",
    "hello",
    "{",
    "null",
    "[]",
    "{}",
    '{"type": "nothing"}',
    '{"type": "heartbeat"}',
    '{"type": "heartbeat", "seq": "one"}',
    '{"type": "welcome"}',
    "[" * 5000,
    '{"type": "goodbye", "reason": "", "new": ' + "[" * 5000,
    '{"type": "heartbeat", "seq": ' + "9" * 400 + "}",
]


@pytest.mark.parametrize("text", GARBAGE)
async def test_garbage_ends_that_connection_only(
    server: ControlServer, anna: TestMember, ben: TestMember, text: str
) -> None:
    async with speaking(server, anna) as bad, speaking(server, ben) as good:
        await bad.socket.send_str(text)
        assert (await bad.refusal()).code == "malformed"
        assert await good.beat()
        await server.until(lambda: server.online() == {"ben"})


@pytest.mark.parametrize("text", GARBAGE)
async def test_garbage_instead_of_a_hello_is_refused(
    server: ControlServer, anna: TestMember, text: str
) -> None:
    async with as_member(server, anna) as caller:
        line = Speaker(caller, await caller.socket())
        await line.socket.send_str(text)
        assert (await line.refusal()).code == "malformed"
    assert server.home.hub.registry.sessions() == ()


async def test_bytes_instead_of_text_end_that_connection_only(
    server: ControlServer, anna: TestMember, ben: TestMember
) -> None:
    async with speaking(server, anna) as bad, speaking(server, ben) as good:
        await bad.socket.send_bytes(b'{"type": "heartbeat"}')
        assert (await bad.refusal()).code == "malformed"
        assert await good.beat()


async def test_a_message_larger_than_allowed_ends_that_connection_only(
    server: ControlServer, anna: TestMember, ben: TestMember
) -> None:
    async with speaking(server, anna) as bad, speaking(server, ben) as good:
        with_too_much = '{"type": "goodbye", "reason": "' + "x" * MAX_MESSAGE + '"}'
        try:
            await bad.socket.send_str(with_too_much)
            assert await bad.hear() is None
        except ConnectionError:
            pass  # hung up on while it was still sending
        assert await good.beat()
        await server.until(lambda: server.online() == {"ben"})


# ------------------------------------------------------------------ who takes too long

QUICK = Deadlines(hello=0.3, silence=0.3, send=0.3, close=0.2)


@pytest.fixture
async def quick(tmp_path: Path) -> AsyncIterator[ControlServer]:
    async with ControlServer(tmp_path, QUICK, idle=0.5) as running:
        yield running


async def test_a_silent_member_is_dropped_and_told(quick: ControlServer) -> None:
    async with speaking(quick, quick.home.enrol("anna")) as line:
        refusal = await line.refusal()
    assert refusal.code == "peer_timeout"
    assert "anna" in refusal.message


async def test_one_that_does_not_greet_is_dropped(quick: ControlServer) -> None:
    async with as_member(quick, quick.home.enrol("anna")) as caller:
        line = Speaker(caller, await caller.socket())
        assert (await line.refusal()).code == "peer_timeout"


async def test_pings_are_no_messages(quick: ControlServer) -> None:
    async with speaking(quick, quick.home.enrol("anna")) as line:

        async def ping() -> None:
            while not line.socket.closed:
                await line.socket.ping()
                await asyncio.sleep(0.05)

        pinging = asyncio.create_task(ping())
        assert (await line.refusal()).code == "peer_timeout"
        pinging.cancel()
        await asyncio.gather(pinging, return_exceptions=True)


async def test_a_message_that_dribbles_in_is_not_waited_for(quick: ControlServer) -> None:
    anna, ben = quick.home.enrol("anna"), quick.home.enrol("ben")
    async with speaking(quick, ben) as good:
        reader, writer = await _open(quick, tls.client_context(anna.enrolment.credentials))
        writer.write(
            b"GET /control HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        assert b"101" in await reader.readuntil(b"\r\n\r\n")
        ended = asyncio.create_task(reader.read())

        async def dribble() -> None:
            # A masked text frame of 120 bytes, one byte at a time, for ever.
            frame = b"\x81\xf8" + b"\0" * 4 + b" " * 120
            for byte in frame:
                writer.write(bytes((byte,)))
                assert await good.beat()
                await asyncio.wait({ended}, timeout=0.05)
                if ended.done():
                    return

        async with asyncio.timeout(10):
            await dribble()
        assert ended.done(), "cut although bytes kept coming"
        writer.close()
        assert await good.beat(), "the others are not disturbed"


@pytest.mark.parametrize("sent", [b"", b"GET /join/auth", b"GET /join/authority HTTP/1.1\r\nX: "])
async def test_a_stranger_that_does_not_finish_its_request_is_hung_up_on(
    quick: ControlServer, sent: bytes
) -> None:
    context = tls.pinned_context(quick.home.fleet.authority.certificate_pem)
    reader, writer = await _open(quick, context)
    writer.write(sent)
    assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()


async def test_a_join_request_whose_body_dribbles_in_is_refused(quick: ControlServer) -> None:
    context = tls.pinned_context(quick.home.fleet.authority.certificate_pem)
    reader, writer = await _open(quick, context)
    writer.write(b"POST /join/request HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    assert b" 502 " in answer.split(b"\r\n")[0]
    writer.close()


async def test_a_member_that_reads_nothing_does_not_hold_up_the_hub(quick: ControlServer) -> None:
    anna = quick.home.enrol("anna")
    reader, writer = await _open(quick, tls.client_context(anna.enrolment.credentials))
    writer.write(
        b"GET /control HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    await reader.readuntil(b"\r\n\r\n")
    greeting = msgspec.json.encode(hello(anna.identity))
    writer.write(b"\x81\xfe" + len(greeting).to_bytes(2) + b"\0" * 4 + greeting)
    await quick.until(lambda: quick.online() == {"anna"})
    transport = writer.transport
    transport.pause_reading()  # type: ignore[attr-defined]
    await quick.until(lambda: quick.online() == set())
    await quick.stop()
    transport.abort()


# ------------------------------------------------------------------ chunks and the rest


async def test_a_chunk_whole_and_from_the_middle(server: ControlServer, anna: TestMember) -> None:
    shard = server.shard()
    sha, data = next(iter(shard.chunks.items()))
    async with as_member(server, anna) as caller:
        whole = await caller.call(f"/blobs/{sha}")
        assert (whole.status, whole.body) == (200, data)
        rest = await caller.call(f"/blobs/{sha}", Range="bytes=3-")
        assert (rest.status, rest.body) == (206, data[3:])
        assert rest.headers["Content-Range"] == f"bytes 3-{len(data) - 1}/{len(data)}"
        last = await caller.call(f"/blobs/{sha}", Range=f"bytes={len(data) - 1}-")
        assert (last.status, last.body) == (206, data[-1:])


@pytest.mark.parametrize(
    "range_header",
    [
        "bytes=999999999-",
        "bytes=-5",
        "bytes=1-2",
        "bytes=a-",
        "lines=1-",
        "5",
        "bytes=" + "9" * 5000 + "-",
    ],
)
async def test_a_range_that_makes_no_sense_is_a_bad_request(
    server: ControlServer, anna: TestMember, range_header: str
) -> None:
    sha = server.shard().hashes[0]
    async with as_member(server, anna) as caller:
        answer = await caller.call(f"/blobs/{sha}", Range=range_header)
    assert (answer.status, answer.code) == (400, "bad_request")


@pytest.mark.parametrize("name", ["0" * 64, "x", "..%2f..%2fstate.json", "0" * 5000])
async def test_a_chunk_that_is_not_there_is_not_found(
    server: ControlServer, anna: TestMember, name: str
) -> None:
    async with as_member(server, anna) as caller:
        answer = await caller.call(f"/blobs/{name}")
    assert (answer.status, answer.code) == (404, "not_found")


async def test_a_chunk_that_is_damaged_on_the_hubs_disk_is_not_handed_out(
    server: ControlServer, anna: TestMember
) -> None:
    shard = server.shard()
    for file in server.folder.glob("*/stage.bin"):
        file.write_bytes(bytes(file.stat().st_size))
    big = max(shard.chunks, key=lambda sha: len(shard.chunks[sha]))
    async with as_member(server, anna) as caller:
        answer = await caller.call(f"/blobs/{big}")
    assert (answer.status, answer.code) == (507, "hash_mismatch")


async def test_a_member_sees_the_fleet_and_the_api(server: ControlServer, anna: TestMember) -> None:
    async with as_member(server, anna) as caller:
        view = msgspec.json.decode((await caller.call("/fleet")).body, type=FleetView)
        assert {n.name for n in view.nodes} == {"hub", "anna"}
        models = await caller.call("/api/v1/models")
        assert models.status == 200
        missing = await caller.call(
            "/api/v1/chat/completions",
            "POST",
            b'{"model": "m", "messages": [{"role": "user", "content": "' + b"x" * 100_000 + b'"}]}',
            **{"Content-Type": "application/json"},
        )
        assert missing.code == "no_capacity", "a long prompt is no join request"


async def test_stopping_ends_open_connections_at_once(
    server: ControlServer, anna: TestMember
) -> None:
    async with speaking(server, anna) as line:
        async with asyncio.timeout(1.5):
            ended = asyncio.create_task(line.hear())
            await server.stop()
            assert await ended is None


async def test_fifty_strangers_at_once_do_not_keep_a_member_out(
    server: ControlServer, anna: TestMember
) -> None:
    context = tls.pinned_context(server.home.fleet.authority.certificate_pem)
    callers = [Caller(server, context) for _ in range(50)]
    try:
        answers = await asyncio.gather(*(c.call("/fleet") for c in callers))
        assert {a.status for a in answers} == {403}
        async with speaking(server, anna) as line:
            assert await line.beat()
    finally:
        await asyncio.gather(*(c.session.close() for c in callers))

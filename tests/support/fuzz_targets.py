"""What takes bytes of strangers, each with good inputs to begin with."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np

from fleetapp.api import schema
from fleetapp.errors import (
    BadJoinCode,
    BadRequest,
    FleetError,
    Malformed,
    ProtocolError,
    TrustError,
    Unsupported,
    UserError,
    VersionMismatch,
)
from fleetapp.fleet import joincode, peer, recovery
from fleetapp.fleet.control import (
    BROKEN_JSON,
    FaultReport,
    FromMember,
    Goodbye,
    HandoverRefused,
    Heartbeat,
    JoinRequest,
    Reissue,
    ReissueRequest,
    Signed,
    StageStatus,
)
from fleetapp.fleet.membership import sign_membership, verify_membership
from fleetapp.types import PROTOCOL_VERSION
from fleetapp.wire import codec, frames
from tests.support.hubs import Line, TestHub, hello


@dataclass(frozen=True)
class Target:
    """Something that takes bytes of strangers."""

    run: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    allowed: tuple[type[BaseException], ...]
    words: tuple[bytes, ...] = ()


def wire() -> Target:
    step = frames.Step(
        epoch=3,
        step=1,
        segments=(frames.Segment(slot=0, generation=1, past_len=0, count=2, sample=True),),
        dtype="f16",
        hidden=4,
    )
    seeds = (
        codec.encode(step, np.zeros((2, 4), np.float16)),
        codec.encode(frames.HelloReply(ok=True, protocol=PROTOCOL_VERSION)),
        codec.encode(frames.Tokens(epoch=3, step=1, tokens=())),
        codec.encode(frames.Fault(3, 1, "anna", "malformed", "x")),
    )
    return Target(
        codec.decode,
        tuple(b"".join(s) for s in seeds),
        (Malformed, VersionMismatch),
        (b"type", b"step", b"segments", b"hidden", b"\xc0", b"\xcf" + b"\xff" * 8,
         b"\xdd\xff\xff\xff\xff"),
    )  # fmt: skip


def joining(home: TestHub) -> Target:
    code = joincode.decode(home.codes.create(hours=1, uses=100_000, approve=True).code)
    csr = home.newcomer("anna").csr().decode()
    good = JoinRequest(PROTOCOL_VERSION, code.secret.hex(), csr, "ANNA-PC")

    def run(data: bytes) -> None:
        try:
            request = msgspec.json.decode(data, type=JoinRequest)
        except BROKEN_JSON:
            return
        home.hub.gate.request(request, f"192.0.2.{random.randrange(250)}")

    seeds = (msgspec.json.encode(good), msgspec.json.encode(msgspec.structs.replace(good, name="")))
    words = (b"-----BEGIN CERTIFICATE REQUEST-----", b"MII", b"\\n", b'"secret"', b'"csr"')
    return Target(run, seeds, (TrustError, UserError, ProtocolError), words)


def reissuing(home: TestHub) -> Target:
    anna = home.enrol("reissuing")
    device, fleet = anna.identity.device_id, home.fleet.authority.fleet_id
    payload = msgspec.json.encode(Reissue(device, fleet, "i", anna.identity.csr().decode()))
    wish = Signed(payload, anna.identity.sign(payload), anna.identity.spki)

    home.hub.clones._tickets[device, "i"] = float("inf")

    def run(data: bytes) -> None:
        # signed anew each time, or nothing would get past the signature
        signed = Signed(data, anna.identity.sign(data), anna.identity.spki)
        home.hub.gate.reissue(ReissueRequest(PROTOCOL_VERSION, signed, "x"))

    words = (b'"kind"', b"fleetapp.reissue.1", b'"csr"')
    return Target(run, (wish.payload,), (TrustError, UserError, ProtocolError), words)


def control(home: TestHub) -> Target:
    member = home.enrol("control")
    decoder = msgspec.json.Decoder(FromMember)
    said = (
        hello(member.identity),
        Heartbeat(1, 2, 3, contribute=True, sent_bytes={"a": 1}),
        StageStatus("a", "ready", port=7, blocks=3),
        FaultReport("a", 1, "runner_failed", "device aaaaaaaaaaaaaaaaaaaa died", "x", True),
        Goodbye("later"),
        HandoverRefused("storage_error", "no"),
    )

    def run(data: bytes) -> None:
        try:
            message = decoder.decode(data)
        except BROKEN_JSON:
            return
        home.hub.received(line.session, message)
        home.hub.view()

    line = Line(home, member)
    return Target(run, tuple(map(msgspec.json.encode, said)), (FleetError,), (b'"type"', b"left"))


def local(_: TestHub) -> Target:
    asked = (
        {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stop": ["a"], "n": 2},
        {"model": "m", "messages": [], "response_format": {"type": "json_object"}},
    )
    words = (b'"temperature"', b'"logit_bias"', b'"stream"', b'"content"', b'"image_url"')
    return Target(
        schema.parse_chat, tuple(json.dumps(a).encode() for a in asked), (BadRequest,), words
    )


def codes(home: TestHub) -> Target:
    seeds = (
        home.codes.create().code.encode(),
        b"FLEET-",
        "\uff26\uff2c\uff25\uff25\uff34".encode(),
    )
    return Target(
        lambda data: joincode.decode(data.decode("utf-8", "surrogateescape")),
        seeds,
        (BadJoinCode,),
    )


def lists(home: TestHub) -> Target:
    key = home.fleet.authority
    good = sign_membership(home.fleet.membership, key).payload

    def run(data: bytes) -> None:
        verify_membership(Signed(data, key.sign(data), key.spki), key.public_key)

    return Target(run, (good,), (TrustError, ProtocolError), (b'"members"', b'"epoch"', b'"spki"'))


def records(_: TestHub) -> Target:
    def run(data: bytes) -> None:
        name, _, rest = data.partition(b"\0")
        pairs = dict(p.partition(b"=")[::2] for p in rest.split(b"\0"))
        peer.parse(name.decode("latin-1"), len(rest), pairs, ("192.0.2.1",))

    good = b"annaannaannaannaanna._fleetapp._tcp.local.\0v=1\0fleet=abcdefgh\0role=member"
    return Target(run, (good,), ())


def recovery_files(home: TestHub) -> Target:
    key = home.fleet.authority
    bundle = recovery.Bundle(
        key.private_key, key.certificate_pem.decode(),
        sign_membership(home.fleet.membership, key), 1.7e9, {},
    )  # fmt: skip
    sealed = recovery.seal(bundle, "correct horse battery")
    return Target(
        lambda data: recovery.unseal(data, "correct horse battery"),
        (sealed,),
        (BadRequest, Unsupported),
        (b"-----BEGIN FLEETAPP RECOVERY-----", b"-----END FLEETAPP RECOVERY-----", b"AAAA"),
    )


TARGETS: dict[str, Callable[[TestHub], Target]] = {
    "wire": lambda _: wire(),
    "joining": joining,
    "reissuing": reissuing,
    "control": control,
    "local": local,
    "codes": codes,
    "lists": lists,
    "records": records,
    "recovery": recovery_files,
}

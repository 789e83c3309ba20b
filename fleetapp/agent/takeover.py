"""Becoming the coordinator on disk: from a recovery file, or from the coordinator before."""

from __future__ import annotations

import contextlib
import secrets
import socket
import sys
import time

import msgspec

from fleetapp.agent.pc import CODES, KEYS, PC, STATE, forget_hub
from fleetapp.agent.thispc import listen_host
from fleetapp.errors import BadRequest, FleetError, Malformed, PortTaken, WrongFleet
from fleetapp.fleet import certificates
from fleetapp.fleet.authority import Authority
from fleetapp.fleet.control import Signed
from fleetapp.fleet.enrolment import Enrolment, FleetInfo
from fleetapp.fleet.membership import (
    TERM,
    Membership,
    hand_over,
    new_member,
    next_term,
    sign_membership,
)
from fleetapp.fleet.recovery import Bundle
from fleetapp.hub.audit import AuditLog
from fleetapp.hub.hub import Hub
from fleetapp.hub.state import HubState
from fleetapp.platform.files import storage_error

AUDIT = "audit.jsonl"
EPOCH_LEAP = 1_000_000
"""How far the chain epochs of the new coordinator begin above those in the bundle, which may be
old: an epoch must never be given out twice."""


def bundle_of(pc: PC, hub: Hub, authority: Authority) -> Bundle:
    """All that makes this PC the coordinator, as it is now. Blocks on the disk.

    Raises:
        StorageError: a file of the hub cannot be read.
    """
    files = {}
    for name in (STATE, CODES, KEYS):
        path = pc.paths.hub / name
        if path.exists():
            files[name] = path.read_bytes()
    return Bundle(
        authority_key=authority.private_key,
        authority=authority.certificate_pem.decode(),
        membership=hub.signed_membership,
        made=time.time(),
        files=files,
        audit_head=hub.audit.verify().head,
    )


def take_over(
    pc: PC, enrolment: Enrolment | None, bundle: Bundle, *, actor: str, revoke_old: bool = False
) -> Signed:
    """Make this PC the coordinator on disk; it acts as one from the next start of its fleet.

    The list it starts from is the newer of the bundle's and its own: who was revoked since the
    bundle was made stays out, if this PC is a member and has heard of it. Blocks on disk and
    keyring: call it in a thread.

    Args:
        pc: this PC, whose fleet must not run unless its own list is not written meanwhile.
        enrolment: its membership; None if it belongs to no fleet.
        bundle: from a recovery file or the coordinator before.
        actor: who has said so, for the audit log.
        revoke_old: shut out who has coordinated before, for a PC that was stolen.

    Returns:
        The list that names this PC as coordinator.

    Raises:
        BadRequest: this PC coordinates the fleet already.
        WrongFleet: the bundle is another fleet's than this PC's.
        ReadOnly, DiskFull, StorageError: it could not be kept; this PC is what it was.
    """
    base = _newest(enrolment, bundle)
    me = base.members.get(pc.identity.device_id)
    if me is not None and "coordinator" in me.roles and Authority.exists(pc.paths):
        raise BadRequest("This PC coordinates that fleet already.")
    state = _state(bundle, base)
    old = [m.name for m in base.members.values() if "coordinator" in m.roles]
    try:
        forget_hub(pc)  # what an attempt that was broken off has left
        authority = Authority.restore(
            bundle.authority_key, bundle.authority.encode(), pc.paths, pc.platform
        )
        pc.platform.write_private(pc.paths.hub / STATE, msgspec.json.encode(state))
        for name in (CODES, KEYS):
            if name in bundle.files:
                pc.platform.write_private(pc.paths.hub / name, bundle.files[name])
        fresh = new_member(pc.identity.public_key, pc.name(), time.time())
        epoch = next_term(base.epoch, secrets.randbelow(TERM // 2))
        signed = sign_membership(hand_over(base, fresh, epoch, revoke_old=revoke_old), authority)
        AuditLog(pc.paths.hub / AUDIT).write(
            actor,
            "took_over",
            device=pc.identity.device_id,
            old=", ".join(old),
            epoch=epoch,
            audit_before=bundle.audit_head,
        )
        _enrol(pc, enrolment, authority, base, signed)
    except BaseException as exc:
        with contextlib.suppress(OSError):
            forget_hub(pc)
        if isinstance(exc, OSError):
            raise storage_error(exc, pc.paths.hub) from exc
        raise
    return signed


def require_ports(pc: PC) -> None:
    """Before anything is given up: the coordinator's ports must be free here. Blocks for a moment.

    Raises:
        PortTaken: one is not.
    """
    settings = pc.settings()
    wanted = (
        (listen_host(pc), settings.control_port, "control_port"),
        (settings.api_host, settings.api_port, "api_port"),
    )
    for host, port, setting in wanted:
        if not port:
            continue
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if sys.platform != "win32":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as exc:
                raise PortTaken(
                    f"Port {port} on {host} is used by another program; nothing was changed.",
                    remedy=f"Stop that program, or choose another port with the setting {setting} "
                    "(0 takes any free one).",
                ) from exc


def _newest(enrolment: Enrolment | None, bundle: Bundle) -> Membership:
    theirs = bundle.opened()
    if enrolment is None:
        return theirs
    if enrolment.info.fleet_id != theirs.fleet_id:
        raise WrongFleet(
            f"This PC belongs to the fleet '{enrolment.info.name}', and that is another one.",
            remedy="Use the file on a PC of its own fleet, or on one that belongs to none.",
        )
    return max(theirs, enrolment.membership, key=lambda m: m.epoch)


def _state(bundle: Bundle, base: Membership) -> HubState:
    try:
        state = msgspec.json.decode(bundle.files.get(STATE, b""), type=HubState)
    except msgspec.MsgspecError:
        # the fleet is worth more than what was wanted of it
        state = HubState(fleet_id=base.fleet_id, name=base.fleet_name, created=bundle.made)
    return msgspec.structs.replace(state, epoch=state.epoch + EPOCH_LEAP, caught_up=base.epoch)


def _enrol(
    pc: PC,
    enrolment: Enrolment | None,
    authority: Authority,
    base: Membership,
    signed: Signed,
) -> None:
    """Last, because it is what makes this PC the coordinator."""
    info = FleetInfo(base.fleet_id, base.fleet_name, pc.identity.device_id)
    if enrolment is None:
        leaf = authority.issue(pc.identity.csr())
        pc.fleet_store.save(info, leaf, authority.certificate_pem, signed)
    else:
        pc.fleet_store.save_info(info)
        pc.fleet_store.save_membership(signed)


def read_bundle(raw: bytes) -> Bundle:
    """A bundle as it came from the coordinator.

    Raises:
        Malformed: it is none, or its parts do not belong together.
    """
    try:
        bundle = msgspec.json.decode(raw, type=Bundle)
        bundle.opened()
        certificates.load_pem(bundle.authority.encode())
    except (msgspec.MsgspecError, RecursionError, FleetError) as exc:
        raise Malformed("What the coordinator handed over makes no sense.") from exc
    return bundle

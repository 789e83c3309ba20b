"""A fleet on disk in a few lines: authority, members with real leaves, signed membership."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509

from fleetapp.fleet import certificates, membership, tls
from fleetapp.fleet.authority import Authority
from fleetapp.fleet.enrolment import Enrolment, FleetInfo, FleetStore
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.secrets import SecretStore
from fleetapp.platform.fake import FakePlatform
from fleetapp.platform.paths import Paths


@dataclass(frozen=True)
class TestMember:
    """One enrolled device."""

    __test__ = False
    identity: Identity
    store: FleetStore
    enrolment: Enrolment

    @property
    def hostname(self) -> str:
        return certificates.hostname_of(self.identity.device_id, self.enrolment.info.fleet_id)


class TestFleet:
    """An authority and the devices enrolled with it, below ``root``."""

    __test__ = False

    def __init__(self, root: Path, name: str = "fleet") -> None:
        self.root = root
        self.platform = FakePlatform()
        paths = Paths(root / "coordinator")
        secret_store = SecretStore(paths.hub, self.platform, {"FLEETAPP_KEYRING": "off"})
        self.authority = Authority.create(paths, self.platform, secret_store)
        self.membership = membership.new(self.authority.fleet_id, name)

    def enrol(self, name: str, *, issued: dt.datetime | None = None) -> TestMember:
        """A new device; ``issued`` in the past makes its leaf an old one."""
        paths = Paths(self.root / name)
        identity = Identity.load_or_create(paths, self.platform)
        leaf = self.authority.issue(identity.csr(), now=issued)
        self.membership = membership.add(
            self.membership, membership.new_member(identity.public_key, name, 0.0)
        )
        store = FleetStore(paths, identity, self.platform)
        info = FleetInfo(self.authority.fleet_id, "fleet", identity.device_id, ("127.0.0.1:1",))
        enrolment = store.save(
            info,
            leaf,
            self.authority.certificate_pem,
            membership.sign_membership(self.membership, self.authority),
        )
        return TestMember(identity, store, enrolment)


async def shown_by(member: TestMember, port: int) -> x509.Certificate:
    """The certificate that a server of this member shows on 127.0.0.1."""
    return await shown_at(member.enrolment.credentials.authority_pem, member.hostname, port)


async def shown_at(authority_pem: bytes, hostname: str, port: int) -> x509.Certificate:
    """The certificate that a server shows on 127.0.0.1.

    Whoever shows none in return is shown it all the same: the server refuses afterwards.
    """
    context = tls.pinned_context(authority_pem)
    async with asyncio.timeout(10):
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname=hostname
        )
    found = writer.get_extra_info("ssl_object")
    assert isinstance(found, ssl.SSLObject)
    der = found.getpeercert(True)
    writer.close()
    assert der is not None
    return x509.load_der_x509_certificate(der)

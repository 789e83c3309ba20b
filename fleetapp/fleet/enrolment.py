"""What makes this PC a member, on disk: leaf, authority, signed membership, where the hub is.

The folder ``identity/fleet`` exists exactly while this PC belongs to a fleet. It is filled under
another name and renamed, so that a crash while joining leaves no half membership; leaving renames
it away before deleting.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec
from cryptography import x509

from fleetapp.errors import BadRequest, Malformed, StorageError, TrustError
from fleetapp.fleet import certificates
from fleetapp.fleet.control import Signed
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.membership import Membership, verify_membership
from fleetapp.fleet.trust import TrustList
from fleetapp.platform import current
from fleetapp.platform.base import Platform
from fleetapp.platform.files import storage_error, write_atomic
from fleetapp.platform.paths import Paths
from fleetapp.types import DeviceId, FleetId

_LEAF, _AUTHORITY, _INFO = "leaf.crt", "authority.crt", "fleet.json"
_MEMBERSHIP = "membership.json"


class FleetInfo(msgspec.Struct, frozen=True):
    """What is remembered of the fleet besides its signed documents."""

    fleet_id: FleetId
    name: str
    hub_device: DeviceId
    """The coordinator; its certificate's name is checked on every connection to it."""
    hub_addresses: tuple[str, ...] = ()
    """``host:port`` where it was reached, best first; a hint like any discovery."""


@dataclass(frozen=True)
class Credentials:
    """All that a TLS context of this member needs. Paths, because OpenSSL reads keys from files."""

    device_id: DeviceId
    fleet_id: FleetId
    key_path: Path
    leaf_path: Path
    authority_pem: bytes


@dataclass(frozen=True)
class Enrolment:
    """This PC's membership as loaded from disk."""

    info: FleetInfo
    credentials: Credentials
    leaf: x509.Certificate
    authority_public: bytes
    """SubjectPublicKeyInfo of the authority, DER."""
    membership: Membership
    signed_membership: Signed

    def trust(self) -> TrustList:
        """A fresh trust list that starts from the stored membership."""
        return TrustList(self.authority_public, self.signed_membership)

    @property
    def renew_at(self) -> float:
        """Wall-clock seconds since 1970 when the leaf has reached its half-life."""
        return certificates.renew_at(self.leaf)


class FleetStore:
    """Reads and writes the membership material of one identity."""

    def __init__(self, paths: Paths, identity: Identity, platform: Platform | None = None) -> None:
        self._folder = paths.fleet
        self._identity = identity
        self._platform = current() if platform is None else platform

    def save(
        self, info: FleetInfo, leaf_pem: bytes, authority_pem: bytes, membership: Signed
    ) -> Enrolment:
        """Become a member. Everything is checked against the authority before it is kept.

        Raises:
            BadRequest: this PC belongs to a fleet already.
            TrustError, Malformed: the material does not belong together.
            ReadOnly, DiskFull, StorageError: nothing was kept.
        """
        if self._folder.exists():
            raise BadRequest(
                "This PC already belongs to a fleet.", remedy="Leave it first: fleetapp fleet leave"
            )
        self._check(info, leaf_pem, authority_pem, membership)
        fresh = self._folder.with_name("fleet.new")
        shutil.rmtree(fresh, ignore_errors=True)
        self._platform.make_private_dir(fresh)
        try:
            write_atomic(fresh / _LEAF, leaf_pem)
            write_atomic(fresh / _AUTHORITY, authority_pem)
            write_atomic(fresh / _INFO, _json(info))
            self._write_membership(fresh, membership)
            try:
                fresh.rename(self._folder)
            except OSError as exc:
                raise storage_error(exc, self._folder) from exc
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        enrolment = self.load()
        if enrolment is None:
            raise StorageError(f"{self._folder} vanished while joining.")
        return enrolment

    def load(self) -> Enrolment | None:
        """The present membership, checked again; ``None`` if this PC belongs to no fleet.

        An expired leaf is no error here: it can be renewed by proving the key.

        Raises:
            StorageError: the folder is damaged or belongs to another identity; it is kept.
        """
        if not self._folder.is_dir():
            return None
        try:
            leaf_pem = (self._folder / _LEAF).read_bytes()
            authority_pem = (self._folder / _AUTHORITY).read_bytes()
            info = msgspec.json.decode((self._folder / _INFO).read_bytes(), type=FleetInfo)
            signed = msgspec.json.decode((self._folder / _MEMBERSHIP).read_bytes(), type=Signed)
            leaf, authority, membership = self._check(info, leaf_pem, authority_pem, signed)
        except (OSError, msgspec.MsgspecError, Malformed, TrustError) as exc:
            raise StorageError(
                f"What makes this PC a member is damaged ({exc}): {self._folder}.",
                remedy="Leave the fleet (fleetapp fleet leave) and join again.",
            ) from exc
        credentials = Credentials(
            self._identity.device_id,
            info.fleet_id,
            self._identity.key_path,
            self._folder / _LEAF,
            authority_pem,
        )
        public = certificates.public_key_of(authority)
        return Enrolment(info, credentials, leaf, public, membership, signed)

    def save_membership(self, signed: Signed) -> None:
        """Keep a newer list; whether it *is* newer and genuine, a TrustList has said before."""
        self._write_membership(self._folder, signed)

    def save_leaf(self, leaf_pem: bytes) -> x509.Certificate:
        """Keep a renewed leaf. New TLS contexts use it; present connections go on.

        Raises:
            WrongFleet, Malformed: not this authority's, or not for this key.
            ReadOnly, DiskFull, StorageError: the old one stays.
        """
        try:
            authority = certificates.load_pem((self._folder / _AUTHORITY).read_bytes())
        except OSError as exc:
            raise storage_error(exc, self._folder) from exc
        leaf = certificates.check_leaf(leaf_pem, authority, self._identity.spki)
        write_atomic(self._folder / _LEAF, leaf_pem)
        return leaf

    def save_info(self, info: FleetInfo) -> None:
        """Keep a new name or new addresses of the hub."""
        write_atomic(self._folder / _INFO, _json(info))

    def remove(self) -> None:
        """Leave: nothing of the fleet stays but the device's own key. Harmless if in none."""
        gone = self._folder.with_name("fleet.old")
        shutil.rmtree(gone, ignore_errors=True)
        try:
            self._folder.rename(gone)
        except FileNotFoundError:
            return
        except OSError as exc:
            raise storage_error(exc, self._folder) from exc
        shutil.rmtree(gone, ignore_errors=True)

    def _check(
        self, info: FleetInfo, leaf_pem: bytes, authority_pem: bytes, signed: Signed
    ) -> tuple[x509.Certificate, x509.Certificate, Membership]:
        authority = certificates.load_pem(authority_pem)
        leaf = certificates.check_leaf(leaf_pem, authority, self._identity.spki)
        membership = verify_membership(signed, certificates.public_key_of(authority))
        if membership.fleet_id != info.fleet_id:
            raise Malformed("The fleet's own record names another fleet than its authority.")
        return leaf, authority, membership

    @staticmethod
    def _write_membership(folder: Path, signed: Signed) -> None:
        # one file for list and signature: a crash between two writes would part them
        write_atomic(folder / _MEMBERSHIP, _json(signed))


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1)

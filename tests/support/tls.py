"""Certificates of a throw-away authority, and contexts and connections made from them."""

from __future__ import annotations

import datetime
import hashlib
import queue
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fleetapp.wire.channel import Authenticate, Connection
from fleetapp.wire.connect import connect
from fleetapp.wire.listener import Handler, Listener

DAY = datetime.timedelta(days=1)


def spki_of(tls: ssl.SSLSocket) -> str:
    der = tls.getpeercert(binary_form=True)
    assert der is not None
    key = x509.load_der_x509_certificate(der).public_key()
    spki = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(spki).hexdigest()


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    signer: ec.EllipticCurvePrivateKey,
    *,
    authority: bool,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .sign(signer, hashes.SHA256())
    )


class TestAuthority:
    """Issues certificates; contexts made from it trust it alone."""

    __test__ = False

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._root = _certificate(name, self._key, self._name, self._key, authority=True)
        self._root_path = folder / f"{name}.crt"
        self._root_path.write_bytes(self._root.public_bytes(serialization.Encoding.PEM))

    def context(self, name: str, *, server: bool) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        leaf = _certificate(name, key, self._name, self._key, authority=False)
        path = self._folder / f"{name}-{'s' if server else 'c'}.pem"
        path.write_bytes(
            leaf.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(path)
        context.load_verify_locations(self._root_path)
        context.verify_mode = ssl.CERT_REQUIRED
        if server:
            context.num_tickets = 0
        return context


@dataclass
class Ends:
    """Both ends of one connection and the listener between them."""

    client: Connection
    server: Connection
    listener: Listener

    def close(self) -> None:
        self.client.close()
        self.server.close()
        self.listener.close()


def listening(
    authority: TestAuthority,
    handler: Handler,
    *,
    port: int = 0,
    authenticate: Authenticate = spki_of,
    **more: Any,
) -> Listener:
    """A listener on 127.0.0.1 that calls itself server.test."""
    return Listener(
        "127.0.0.1",
        port,
        authority.context("server.test", server=True),
        authenticate=authenticate,
        handler=handler,
        **more,
    )


def dial(
    authority: TestAuthority,
    port: int,
    deadline: float = 10,
    *,
    hosts: Sequence[str] = ("127.0.0.1",),
    **more: Any,
) -> Connection:
    """Connect as client.test to server.test."""
    return connect(
        hosts,
        port,
        authority.context("client.test", server=False),
        server_hostname="server.test",
        authenticate=spki_of,
        deadline=deadline,
        **more,
    )


def connected(authority: TestAuthority) -> Ends:
    """A connection over 127.0.0.1, handshake done, no hello exchanged."""
    accepted: queue.Queue[Connection] = queue.Queue()
    listener = listening(authority, accepted.put)
    client = dial(authority, listener.port)
    return Ends(client, accepted.get(timeout=10), listener)

"""TLS contexts of a fleet: version 1.3 only, the fleet's authority as the only root.

Being in the fleet's certificates is not enough: after the handshake every side asks the
:class:`~fleetapp.fleet.trust.TrustList` about :func:`peer_spki`. And in TLS 1.3 a client's
handshake ends before the server has looked at the client's certificate: a refusal arrives with
the first read. Both places should pass their exception through :func:`explain_tls_error`.
"""

from __future__ import annotations

import ssl
from typing import Protocol

from fleetapp.errors import (
    FleetError,
    NotAMember,
    PeerTimeout,
    ProtocolError,
    VersionMismatch,
    WrongFleet,
)
from fleetapp.fleet.certificates import hostname_of
from fleetapp.fleet.enrolment import Credentials
from fleetapp.fleet.keys import spki_of

__all__ = [
    "client_context",
    "explain_tls_error",
    "hostname_of",
    "join_client_context",
    "peer_spki",
    "pinned_context",
    "server_context",
    "show_leaf",
    "spki_of",
]


class HasPeerCertificate(Protocol):
    """An ``ssl.SSLSocket`` or ``ssl.SSLObject`` after its handshake."""

    def getpeercert(self, binary_form: bool = False, /) -> object: ...


def _context(protocol: int) -> ssl.SSLContext:
    # not create_default_context: it would honour SSLKEYLOGFILE and bring the system's roots
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.maximum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def show_leaf(context: ssl.SSLContext, credentials: Credentials) -> None:
    """Let the context's connections from now on show the leaf that is on disk now.

    Present connections go on with theirs. Not while another thread makes connections of it:
    OpenSSL does not guard a context against that.
    """
    context.load_cert_chain(credentials.leaf_path, credentials.key_path)


def _trust(context: ssl.SSLContext, authority_pem: bytes) -> None:
    context.load_verify_locations(cadata=authority_pem.decode("ascii"))


def server_context(credentials: Credentials, *, optional_client: bool = False) -> ssl.SSLContext:
    """For accepting connections from members.

    With ``optional_client`` a peer may also show no certificate at all (joining, renewing,
    :func:`peer_spki` is ``None``); one of another fleet is refused in either case.
    """
    context = _context(ssl.PROTOCOL_TLS_SERVER)
    show_leaf(context, credentials)
    _trust(context, credentials.authority_pem)
    context.verify_mode = ssl.CERT_OPTIONAL if optional_client else ssl.CERT_REQUIRED
    # Without resumption every connection is checked anew, and a client that only writes never
    # has to read a ticket (data connections are one-way after the hello).
    context.num_tickets = 0
    return context


def client_context(credentials: Credentials) -> ssl.SSLContext:
    """For connecting to a member; pass ``server_hostname=hostname_of(device, fleet)``."""
    context = pinned_context(credentials.authority_pem)
    show_leaf(context, credentials)
    return context


def pinned_context(authority_pem: bytes) -> ssl.SSLContext:
    """For a client without a certificate that already knows its authority (joining, renewing)."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT)
    _trust(context, authority_pem)
    return context


def join_client_context() -> ssl.SSLContext:
    """Verifies nothing: only for fetching the authority's certificate, whose hash is then
    compared with the join code (:func:`fleetapp.fleet.certificates.check_authority`). Nothing
    secret may be sent over such a connection.
    """
    context = _context(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def peer_spki(ssl_object: HasPeerCertificate) -> str | None:
    """Hex SPKI hash of the verified peer; ``None`` if it showed no certificate."""
    der = ssl_object.getpeercert(True)
    return spki_of(der) if isinstance(der, bytes) and der else None


# X509_V_ERR_*, from OpenSSL's x509_vfy.h
_NOT_YET_VALID, _EXPIRED, _HOSTNAME = 9, 10, 62
_OTHER_ISSUER = frozenset({2, 7, 18, 19, 20, 21, 24, 30})

_CLOCK = "Check the clocks of both PCs; an expired certificate is renewed when it joins again."
_PLAIN = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "RECORD_LAYER_FAILURE",
          "PACKET_LENGTH_TOO_LONG", "UNEXPECTED_MESSAGE", "NOT_SSL", "BAD_RECORD_TYPE",
          "UNKNOWN_PROTOCOL", "DECODE_ERROR")  # fmt: skip
_OLD = ("UNSUPPORTED_PROTOCOL", "PROTOCOL_VERSION", "VERSION_TOO_LOW", "NO_PROTOCOLS_AVAILABLE")


def explain_tls_error(exc: BaseException, peer: str) -> FleetError:
    """What a failed handshake (or first read) means, in one sentence.

    Args:
        exc: what the ssl module, a socket or asyncio raised.
        peer: the other side as a person knows it: a device, a name or an address.

    Returns:
        WrongFleet, NotAMember, VersionMismatch, PeerTimeout or ProtocolError; never raises.
    """
    if isinstance(exc, FleetError):
        return exc
    if isinstance(exc, ssl.SSLCertVerificationError):
        return _explain_verification(exc, peer)
    if isinstance(exc, TimeoutError):
        return PeerTimeout(f"{peer} did not finish the TLS handshake in time.")
    if isinstance(exc, ssl.SSLError):
        return _explain_alert(exc, peer)
    if isinstance(exc, ConnectionError | EOFError):
        return ProtocolError(
            f"{peer} ended the connection during the TLS handshake.",
            remedy="It may have refused this PC; look at its log.",
        )
    return ProtocolError(f"The TLS connection with {peer} failed ({type(exc).__name__}).")


def _explain_verification(exc: ssl.SSLCertVerificationError, peer: str) -> FleetError:
    code = getattr(exc, "verify_code", 0)
    inside = peer.replace("The ", "the ", 1) if peer.startswith("The ") else peer
    if code in (_NOT_YET_VALID, _EXPIRED):
        when = "has expired" if code == _EXPIRED else "is not valid yet"
        return NotAMember(f"The certificate of {inside} {when}.", remedy=_CLOCK)
    if code == _HOSTNAME:
        return NotAMember(
            f"The PC that answered is not {inside}, but another one.",
            remedy="Check the address, or let it be found anew.",
        )
    if code in _OTHER_ISSUER:
        return WrongFleet(f"{peer} belongs to another fleet.")
    return ProtocolError(f"The certificate of {inside} is refused: {exc.verify_message}.")


_WRONG_FLEET_ALERTS = ("ALERT_UNKNOWN_CA", "ALERT_BAD_CERTIFICATE", "ALERT_DECRYPT_ERROR")
_NO_CERTIFICATE = ("CERTIFICATE_REQUIRED", "PEER_DID_NOT_RETURN_A_CERTIFICATE")
_REFUSED = ("ALERT_CERTIFICATE", "ALERT_UNSUPPORTED_CERTIFICATE", "ALERT_ACCESS_DENIED")


def _explain_alert(exc: ssl.SSLError, peer: str) -> FleetError:
    """OpenSSL tells the two directions apart by the word ALERT: then it was the other side's."""
    reason = (exc.reason or str(exc)).upper()
    answers: tuple[tuple[tuple[str, ...], FleetError], ...] = (
        (
            _WRONG_FLEET_ALERTS,
            WrongFleet(f"{peer} belongs to another fleet and refuses this PC."),
        ),
        (
            ("ALERT_CERTIFICATE_EXPIRED",),
            NotAMember(f"{peer} refuses this PC's certificate as expired.", remedy=_CLOCK),
        ),
        (_NO_CERTIFICATE, NotAMember(f"No certificate of the fleet was shown to or by {peer}.")),
        (_REFUSED, NotAMember(f"{peer} refuses this PC's certificate.")),
        (
            _OLD,
            VersionMismatch(f"{peer} does not speak TLS 1.3, and this PC speaks nothing else."),
        ),
        (
            _PLAIN,
            ProtocolError(
                f"{peer} does not speak TLS.",
                remedy="Check that address and port are the fleet's.",
            ),
        ),
        (("EOF",), ProtocolError(f"{peer} ended the connection during the TLS handshake.")),
    )
    for words, answer in answers:
        if any(word in reason for word in words):
            return answer
    return ProtocolError(f"The TLS connection with {peer} failed ({exc.reason or exc}).")

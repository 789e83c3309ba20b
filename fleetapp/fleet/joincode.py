"""The short text that lets a PC into a fleet: which authority to trust, and a secret.

``FLEET-`` and 43 characters of Crockford base32: 16 bytes of the authority's SPKI hash and 10
bytes of secret (42 characters), then one check character. The check is linear over GF(32): the
sum of every character times its own power of a generator must vanish. Crockford's check modulo 37
finds the same errors but needs five signs (``*~$=U``) that do not survive every chat window.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from fleetapp.errors import BadJoinCode
from fleetapp.fleet.keys import fleet_id_of
from fleetapp.types import FleetId
from fleetapp.types.codetext import CODE_ALPHABET, CODE_LENGTH, CODE_PREFIX, check_of, read_code

PREFIX = CODE_PREFIX
HASH_BYTES = 16
SECRET_BYTES = 10
ALPHABET = CODE_ALPHABET
LENGTH = CODE_LENGTH

_DATA = LENGTH - 1
_PAD_BITS = 5 * _DATA - 8 * (HASH_BYTES + SECRET_BYTES)
_GROUP = 5
_LOW_BITS = 31


@dataclass(frozen=True)
class JoinCode:
    """What a code says."""

    spki_prefix: bytes
    """First 16 bytes of the SHA-256 of the authority's SubjectPublicKeyInfo."""
    secret: bytes = field(repr=False)
    """10 random bytes; the hub keeps only their hash."""

    @property
    def fleet_id(self) -> FleetId:
        """The fleet it is for: 16 bytes of hash hold more than an id shows."""
        return fleet_id_of(self.spki_prefix.hex())


def new(authority_spki: str) -> JoinCode:
    """A code with a fresh secret for the authority named by its hex SPKI hash."""
    return JoinCode(bytes.fromhex(authority_spki)[:HASH_BYTES], secrets.token_bytes(SECRET_BYTES))


def encode(code: JoinCode) -> str:
    """The text to hand out, in groups of five."""
    number = int.from_bytes(code.spki_prefix + code.secret) << _PAD_BITS
    data = [(number >> (5 * i)) & _LOW_BITS for i in reversed(range(_DATA))]
    text = "".join(ALPHABET[v] for v in [*data, check_of(data)])
    return "-".join([PREFIX, *(text[i : i + _GROUP] for i in range(0, LENGTH, _GROUP))])


def decode(text: str) -> JoinCode:
    """Read a code as people type it: case, spaces and dashes do not matter, nor O/0 and I/L/1.

    Raises:
        BadJoinCode: says what is wrong with it; the text itself is never repeated.
    """
    try:
        values = read_code(text)
    except ValueError as exc:
        raise BadJoinCode(str(exc)) from exc
    number = 0
    for value in values:
        number = number << 5 | value
    if number & ((1 << _PAD_BITS) - 1):
        raise BadJoinCode("The join code is mistyped.")
    raw = (number >> _PAD_BITS).to_bytes(HASH_BYTES + SECRET_BYTES)
    return JoinCode(raw[:HASH_BYTES], raw[HASH_BYTES:])

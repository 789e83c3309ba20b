"""The short text that lets a PC into a fleet: which authority to trust, and a secret.

``FLEET-`` and 43 characters of Crockford base32: 16 bytes of the authority's SPKI hash and 10
bytes of secret (42 characters), then one check character. The check is linear over GF(32): the
sum of every character times its own power of a generator must vanish. Crockford's check modulo 37
finds the same errors but needs five signs (``*~$=U``) that do not survive every chat window.
"""

from __future__ import annotations

import secrets
import unicodedata
from dataclasses import dataclass, field

from fleetapp.errors import BadJoinCode
from fleetapp.fleet.keys import fleet_id_of
from fleetapp.types import FleetId

PREFIX = "FLEET"
HASH_BYTES = 16
SECRET_BYTES = 10
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LENGTH = 43
"""Characters after the prefix, dashes not counted."""

_DATA = LENGTH - 1
_PAD_BITS = 5 * _DATA - 8 * (HASH_BYTES + SECRET_BYTES)
_GROUP = 5
_FIELD = 32
# x^5 + x^2 + 1 is primitive over GF(2), so x generates all 31 non-zero elements
_POLYNOMIAL = 0b100101
_VALUE = {c: i for i, c in enumerate(ALPHABET)} | {"O": 0, "I": 1, "L": 1}
_MAX_INPUT = 512


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


def _times_x(value: int) -> int:
    value <<= 1
    return value ^ _POLYNOMIAL if value & _FIELD else value


def _check(data: list[int]) -> int:
    """The value that makes ``sum(value[i] * x**(n-i))`` zero; evaluated by Horner's rule.

    Every position has a non-zero factor, so any single change shows; neighbours have different
    factors, so any exchange of two different neighbours shows, the check character included.
    """
    total = 0
    for value in data:
        total = _times_x(total ^ value)
    return total


def encode(code: JoinCode) -> str:
    """The text to hand out, in groups of five."""
    number = int.from_bytes(code.spki_prefix + code.secret) << _PAD_BITS
    data = [(number >> (5 * i)) & (_FIELD - 1) for i in reversed(range(_DATA))]
    text = "".join(ALPHABET[v] for v in [*data, _check(data)])
    return "-".join([PREFIX, *(text[i : i + _GROUP] for i in range(0, LENGTH, _GROUP))])


def _plain(text: str) -> str:
    """Upper case, without what pasting, chat programs and people add between characters."""
    folded = unicodedata.normalize("NFKC", text).upper()
    # dashes of any kind, white space, and invisible format characters
    return "".join(c for c in folded if unicodedata.category(c) not in ("Pd", "Cf", "Zs", "Cc"))


def decode(text: str) -> JoinCode:
    """Read a code as people type it: case, spaces and dashes do not matter, nor O/0 and I/L/1.

    Raises:
        BadJoinCode: says what is wrong with it; the text itself is never repeated.
    """
    if len(text) > _MAX_INPUT:
        raise BadJoinCode("This is far too long to be a join code.")
    plain = _plain(text)
    body = plain
    if len(plain) != LENGTH:
        if not plain.startswith(PREFIX):
            raise BadJoinCode(f"A join code begins with {PREFIX}-, and this does not.")
        body = plain[len(PREFIX) :]
    if len(body) != LENGTH:
        raise BadJoinCode(
            f"The join code has {len(body)} characters after {PREFIX}-, but {LENGTH} are needed."
        )
    try:
        values = [_VALUE[c] for c in body]
    except KeyError as exc:
        raise BadJoinCode(f"A join code never contains {exc.args[0]!r}.") from exc
    if _check(values[:-1]) != values[-1]:
        raise BadJoinCode("The join code is mistyped: its check character does not match.")
    number = 0
    for value in values[:-1]:
        number = number << 5 | value
    if number & ((1 << _PAD_BITS) - 1):
        raise BadJoinCode("The join code is mistyped.")
    raw = (number >> _PAD_BITS).to_bytes(HASH_BYTES + SECRET_BYTES)
    return JoinCode(raw[:HASH_BYTES], raw[HASH_BYTES:])

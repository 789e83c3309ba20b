"""Reads the one thing of a firmware table that tells two PCs of one disk image apart."""

from __future__ import annotations

import uuid

_HEADER = 4
"""Type, length of the formatted part, handle."""
_SYSTEM, _END = 1, 127
_UUID = slice(8, 24)


def system_uuid(structures: bytes) -> str:
    """UUID of the "System Information" structure (DMTF DSP0134, 7.2), or "" if there is none.

    Args:
        structures: the structure table itself, without the entry point before it.
    """
    at = 0
    while at + _HEADER <= len(structures):
        kind, length = structures[at], structures[at + 1]
        if length < _HEADER or kind == _END:
            return ""
        if kind == _SYSTEM and length >= _UUID.stop:
            raw = structures[at:][_UUID]
            # all zeros: not set; all ones: could be set, but is not
            known = len(raw) == 16 and raw not in (bytes(16), b"\xff" * 16)
            return str(uuid.UUID(bytes_le=raw)) if known else ""
        strings = structures.find(b"\0\0", at + length)
        if strings < 0:
            return ""
        at = strings + 2
    return ""

"""Quantities for people."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def counted(number: int, what: str) -> str:
    """A number with its noun ("1 PC", "2 PCs"), if the plural of that ends in s."""
    return f"1 {what}" if number == 1 else f"{number} {what}s"


def size(count: float) -> str:
    """Bytes, with one decimal."""
    for unit in _UNITS[:-1]:
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} {_UNITS[-1]}"

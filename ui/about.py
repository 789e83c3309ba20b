"""What this copy of the app is made of, as whoever packed it wrote down."""

from __future__ import annotations

from importlib.resources import files


def third_party() -> str:
    """Every part with version and licence; empty where the parts came by a package manager."""
    text = files("resources").joinpath("licenses/THIRD-PARTY.txt")
    try:
        return text.read_text(encoding="utf-8").replace("\r\n", "\n")
    except OSError:
        return ""

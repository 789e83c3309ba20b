"""Ids as they stand in a path, and times as people read them."""

from __future__ import annotations

from datetime import datetime


def in_path(text: str) -> str:
    """An id as one segment of a path."""
    from urllib.parse import quote  # noqa: PLC0415

    return quote(text, safe="")


def when(seconds: float) -> str:
    """Unix seconds as local time."""
    try:
        return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return "?"

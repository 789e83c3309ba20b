"""Sentences about single fields of a request."""

from __future__ import annotations

from fleetapp.errors import BadRequest


def bad(field: str, wrong: str, remedy: str = "") -> BadRequest:
    """The error that says what is wrong with a field."""
    return BadRequest(f"The field '{field}' {wrong}.", remedy=remedy, param=field)


def within(name: str, value: float | None, low: float, high: float, default: float) -> float:
    """A number between bounds, or the default if there is none.

    Raises:
        BadRequest: it is outside.
    """
    if value is None:
        return default
    if not low <= value <= high:
        raise bad(name, f"is {number(value)}, and must be between {low:g} and {high:g}")
    return value


def number(value: float) -> str:
    """A number, fit to be quoted in a sentence."""
    return shown(str(value)) if abs(value) < 2**70 else "out of any range"


def shown(text: str) -> str:
    """Something of the request, fit to be quoted in a sentence."""
    short = text if len(text) <= 40 else text[:40] + "…"
    return "".join(c if c.isprintable() else "�" for c in short)

"""Sentences with a number in them, in the form that the language has for one and for many.

All in one class, because the tool that collects the strings (pyside6-lupdate of 6.11) understands
plurals in ``self.tr`` only and passes over ``translate`` with a number.
"""

from __future__ import annotations

from PySide6.QtCore import QObject


class Counts(QObject):
    """Use ``counts`` below."""

    def seconds_left(self, n: int) -> str:
        return self.tr("about %n s left", "", n)

    def minutes_left(self, n: int) -> str:
        return self.tr("about %n min left", "", n)

    def hours_left(self, n: int) -> str:
        return self.tr("about %n h left", "", n)

    def hours(self, n: int) -> str:
        """A span of time, as in "valid for"."""
        return self.tr("%n hours", "", n)

    def pcs(self, n: int) -> str:
        """As in "valid for"."""
        return self.tr("%n PCs", "", n)

    def served_by(self, n: int) -> str:
        return self.tr("served by %n PCs", "", n)

    def tokens(self, n: int) -> str:
        return self.tr("%Ln tokens", "", n)

    def removed(self, n: int) -> str:
        """What sending an edited question removes."""
        return self.tr(
            "Editing: sending replaces this question and removes the %n messages after it.", "", n
        )


counts = Counts()

"""The fleet's figures and charts in one line."""

from __future__ import annotations

from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from ui import theme
from ui.fleet import words
from ui.fleet.pulse import History, Pulse
from ui.fleet.sparkline import Chart
from ui.widgets.card import Card, text_label

GAP = 3 * theme.GRID


class Figure(QWidget):
    """A number over what it counts."""

    def __init__(self, caption: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._caption = caption
        self.number = theme.heading(text_label(words.NONE), 1.5)
        self.number.setWordWrap(False)
        below = text_label(caption, muted=True)
        below.setWordWrap(False)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.number)
        column.addWidget(below)
        column.addStretch(1)

    def say(self, text: str, hint: str = "") -> None:
        """Show it; screen readers hear number and caption together."""
        self.number.setText(text)
        self.setToolTip(hint)
        self.setAccessibleName(f"{self._caption}: {text}")
        self.setAccessibleDescription(hint)


class PulseBar(Card):
    """Five figures, three charts."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.setAccessibleName(self.tr("Pulse of the fleet"))
        self.nodes = Figure(self.tr("PCs"))
        self.contributing = Figure(self.tr("contributing"))
        self.chains = Figure(self.tr("chains"))
        self.tokens = Figure(self.tr("tokens/s"))
        self.queue = Figure(self.tr("waiting"))
        self.throughput = Chart(self.tr("Tokens/s"), words.number)
        self.latency = Chart(self.tr("Next token"), words.milliseconds)
        self.acceptance = Chart(self.tr("Guesses right"), words.percent)
        self._figures = (self.nodes, self.contributing, self.chains, self.tokens, self.queue)
        self._charts = (self.throughput, self.latency, self.acceptance)
        row = QHBoxLayout()
        row.setSpacing(GAP)
        for figure in self._figures:
            figure.number.setMinimumWidth(8 * theme.GRID)
            row.addWidget(figure)
        for chart in self._charts:
            row.addWidget(chart, 1)
        self.rows.addLayout(row)

    def set_room(self, width: int) -> None:
        """Show as many charts as fit; the figures are always there."""
        margins = self.rows.contentsMargins()
        room = width - margins.left() - margins.right() + GAP
        room -= sum(figure.minimumSizeHint().width() + GAP for figure in self._figures)
        for number, chart in enumerate(self._charts, 1):
            chart.setVisible(room >= number * (chart.minimumWidth() + GAP))

    def show_pulse(self, pulse: Pulse | None, *, stale: bool) -> None:
        """Show the figures; None while nothing is known. Old ones are not shown as if they held."""
        if pulse is None or stale:
            for figure in self._figures:
                figure.say(words.NONE)
            return
        of = self.tr("{n}/{all}")
        self.nodes.say(
            of.format(n=pulse.online, all=pulse.nodes),
            self.tr("{n} of {all} PCs are connected").format(n=pulse.online, all=pulse.nodes),
        )
        self.contributing.say(_count(pulse.contributing), self.tr("Connected PCs that may work"))
        self.chains.say(
            of.format(n=pulse.live, all=pulse.chains),
            self.tr("{n} of {all} chains answer now").format(n=pulse.live, all=pulse.chains),
        )
        self.tokens.say(words.number(pulse.tokens), self.tr("Of all answers together"))
        self.queue.say(
            _count(pulse.waiting),
            self.tr("{running} answers are being written, {waiting} wait").format(
                running=_count(pulse.running), waiting=_count(pulse.waiting)
            ),
        )

    def show_history(self, history: History, pulse: Pulse | None, now: float) -> None:
        """Move the charts on to ``now`` (monotonic seconds)."""
        tokens = None if pulse is None else pulse.tokens
        self.throughput.show_series(history.throughput, tokens, now)
        # at rest the last answer's are worth knowing; without a fleet nothing is
        step = None if pulse is None else pulse.step or history.latency.newest
        self.latency.show_series(history.latency, step, now)
        right = None
        if pulse is not None:
            right = history.acceptance.newest if pulse.acceptance is None else pulse.acceptance
        self.acceptance.show_series(history.acceptance, right, now, top=1.0)


def _count(number: int) -> str:
    return QLocale().toString(number)

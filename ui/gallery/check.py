"""What a machine can see of a screen: clipped texts, overlaps, doubled access keys, no names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QComboBox,
    QGroupBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QMenu,
    QScrollBar,
    QSplitter,
    QSplitterHandle,
    QStackedWidget,
    QTabBar,
    QTabWidget,
    QWidget,
)

from ui.widgets.elided_label import ElidedLabel

SLACK = 2
"""Pixels; borders may lie on each other."""
OVER = "over"
"""Property of a widget that is meant to lie over others."""


def complaints(window: QWidget) -> list[str]:
    """What is wrong with a window as it is on the screen, in words."""
    shown = [w for w in window.findChildren(QWidget) if not w.visibleRegion().isEmpty()]
    return [
        *(line for widget in shown for line in _clipped(widget)),
        *_overlapping(shown),
        *_doubled_keys(window, shown),
        *_nameless(shown),
    ]


def _say(widget: QWidget, text: str = "") -> str:
    name = text or widget.objectName() or widget.accessibleName()
    return f"{type(widget).__name__} '{name[:60]}'"


# texts that are not to be seen whole


def _clipped(widget: QWidget) -> Iterator[str]:
    room = widget.width() + SLACK
    advance = widget.fontMetrics().horizontalAdvance
    text, needs = "", 0
    match widget:
        case ElidedLabel():
            return  # says the rest in its tooltip
        case QLabel():
            text, needs = widget.text(), room + 1 if _label_needs(widget) else 0
        case QAbstractButton():
            text, needs = widget.text(), widget.sizeHint().width()
        case QLineEdit() if not widget.text():
            text = widget.placeholderText()
            needs = advance(text) + 12
        case QComboBox():
            text = widget.currentText()
            needs = advance(text) + 24
        case QTabBar():
            text, needs = widget.tabText(widget.count() - 1), widget.sizeHint().width()
        case QHeaderView():
            yield from _clipped_headers(widget)
    if text and needs > room:
        yield f"{_say(widget, text)} is clipped"


def _label_needs(label: QLabel) -> bool:
    """Whether it needs more room than it has."""
    if label.wordWrap():
        return label.heightForWidth(label.width()) > label.height() + SLACK
    hint = label.sizeHint()
    return hint.width() > label.width() + SLACK or hint.height() > label.height() + SLACK


def _clipped_headers(header: QHeaderView) -> Iterator[str]:
    model = header.model()
    if header.orientation() != Qt.Orientation.Horizontal or model is None:
        return
    for section in range(header.count()):
        if header.isSectionHidden(section):
            continue
        title = str(model.headerData(section, Qt.Orientation.Horizontal))
        needs = header.fontMetrics().horizontalAdvance(title) + 16
        if needs > header.sectionSize(section) + SLACK:
            yield f"{_say(header, title)} is clipped"


# what lies over something else, or beyond the edge


def _overlapping(shown: list[QWidget]) -> Iterator[str]:
    families: dict[QWidget, list[QWidget]] = defaultdict(list)
    for widget in shown:
        parent = widget.parentWidget()
        if parent is not None and not widget.isWindow() and not _frees_itself(widget, parent):
            families[parent].append(widget)
    for parent, children in families.items():
        room = parent.rect().adjusted(-SLACK, -SLACK, SLACK, SLACK)
        scrolls = isinstance(parent.parentWidget(), QAbstractScrollArea)
        for child in children:
            if (
                not scrolls
                and not child.geometry().isEmpty()
                and not room.contains(child.geometry())
            ):
                yield f"{_say(child, _text(child))} reaches beyond {_say(parent)}"
        for one, other in combinations(children, 2):
            both = one.geometry().intersected(other.geometry())
            if both.width() > SLACK and both.height() > SLACK:
                yield f"{_say(one, _text(one))} and {_say(other, _text(other))} overlap"


def _frees_itself(widget: QWidget, parent: QWidget) -> bool:
    """Parts that Qt lays on one another by design."""
    if widget.property(OVER) or isinstance(widget, (QScrollBar, QSplitterHandle)):
        return True
    inner = (
        QAbstractItemView, QAbstractSpinBox, QComboBox, QLineEdit, QSplitter, QStackedWidget,
        QTabBar, QTabWidget, QMenu,
    )  # fmt: skip
    return isinstance(parent, inner) or parent.metaObject().className().startswith("QScrollBar")


def _text(widget: QWidget) -> str:
    return str(widget.property("text") or widget.accessibleName() or "")


# keys and names


def _doubled_keys(window: QWidget, shown: list[QWidget]) -> Iterator[str]:
    texts = [action.text() for action in window.actions() if action.isVisible()]
    if not isinstance(window, QMenu):
        texts = [
            str(w.property("title" if isinstance(w, QGroupBox) else "text"))
            for w in shown
            if isinstance(w, (QAbstractButton, QGroupBox))
            or (isinstance(w, QLabel) and w.buddy() is not None)
        ]
        texts += [w.tabText(i) for w in shown if isinstance(w, QTabBar) for i in range(w.count())]
    holders = defaultdict(set)
    for text in texts:
        if key := re.search(r"(?<!&)&([^&\s])", text):
            holders[key[1].casefold()].add(text)
    for letter, names in holders.items():
        if len(names) > 1:
            yield f"Alt+{letter.upper()} stands for {' and '.join(sorted(names))}"


def _nameless(shown: list[QWidget]) -> Iterator[str]:
    for widget in shown:
        parent = widget.parentWidget()
        inner = isinstance(parent, (QAbstractSpinBox, QComboBox, QAbstractItemView, QTabBar))
        if not widget.focusPolicy() & Qt.FocusPolicy.TabFocus or inner or not widget.isEnabled():
            continue
        interface = QAccessible.queryAccessibleInterface(widget)
        if interface is not None and not interface.text(QAccessible.Text.Name).strip():
            yield f"{_say(widget)} can be reached by Tab and has no name"

"""Colours that the palette of Qt has no role for, and the style of tables and tabs."""

from __future__ import annotations

from PySide6.QtGui import QColor, QGuiApplication, QPalette

from ui import theme

DARKER_THAN = 128
"""Lightness of a window's ground that takes light text."""


def is_dark() -> bool:
    """Whether text is light on a dark ground now."""
    ground = QGuiApplication.palette().color(QPalette.ColorRole.Window)
    return ground.lightness() < DARKER_THAN


def error_colour() -> QColor:
    """For what is wrong; readable on the present ground, a system's high contrast included."""
    return QColor(theme.DARK.error if is_dark() else theme.LIGHT.error)


def colour(role: QPalette.ColorRole) -> QColor:
    """Of the present palette."""
    return QGuiApplication.palette().color(role)


STYLE = """
    QTabWidget::pane { border: none; border-top: 1px solid palette(mid); }
    QTabBar { qproperty-drawBase: 0; }
    QTabBar::tab {
        padding: 8px 16px; border: none; border-bottom: 3px solid transparent;
        color: palette(placeholder-text); background: transparent;
    }
    QTabBar::tab:selected { color: palette(window-text); border-bottom-color: palette(highlight); }
    QTabBar::tab:hover { color: palette(window-text); }
    QTabBar::tab:focus { border: 1px solid palette(highlight);
        border-bottom: 3px solid palette(highlight); padding: 7px 15px 8px 15px; }
    QTableView {
        background: palette(button); alternate-background-color: palette(window);
        border: 1px solid palette(mid); border-radius: 4px; gridline-color: transparent;
        selection-background-color: palette(highlight);
        selection-color: palette(highlighted-text);
    }
    QTableView:focus { border: 2px solid palette(highlight); }
    QTableView::item { padding: 0 5px; }
    QHeaderView { background: palette(button); border: none; }
    QHeaderView::section {
        background: palette(button); color: palette(placeholder-text); border: none;
        border-bottom: 1px solid palette(mid); padding: 6px 8px;
    }
    QTableCornerButton::section { background: palette(button); border: none; }
    QToolButton:disabled { color: palette(placeholder-text); background: palette(window); }
    QSpinBox, QDoubleSpinBox, QComboBox { min-height: 26px; }
    QScrollArea { background: transparent; border: none; }
    QScrollArea > QWidget > QWidget#pane { background: transparent; }
"""
"""By roles of the palette, so that it follows light, dark and high contrast by itself."""

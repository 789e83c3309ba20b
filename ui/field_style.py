"""Style sheets of fields with arrows, and of everything in high contrast.

A field that has a border of its own in a style sheet loses its arrows, so these are our pictures.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ui.theme import Colours


def picture(name: str) -> str:
    """Path of an icon as a style sheet takes it."""
    return str(files("resources") / "icons" / f"{name}.svg").replace("\\", "/")


def _arrows(scheme: str) -> str:
    return f"""
    QComboBox::drop-down {{ border: none; width: 24px; }}
    QComboBox::down-arrow {{ image: url("{picture(f"down-{scheme}")}"); width: 12px; }}
    QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{
        subcontrol-origin: border; border: none; width: 24px; margin: 1px;
    }}
    QAbstractSpinBox::up-button {{ subcontrol-position: top right; }}
    QAbstractSpinBox::down-button {{ subcontrol-position: bottom right; }}
    QAbstractSpinBox::up-arrow {{ image: url("{picture(f"up-{scheme}")}"); width: 10px; }}
    QAbstractSpinBox::down-arrow {{ image: url("{picture(f"down-{scheme}")}"); width: 10px; }}
    """


def fields(scheme: str, c: Colours) -> str:
    """For combo boxes, numbers and longer texts; ``scheme`` is light or dark."""
    return f"""
    QComboBox, QAbstractSpinBox {{
        background: {c.field}; border: 1px solid {c.line}; border-radius: 4px; padding: 5px 8px;
        min-height: 20px;
    }}
    QComboBox:hover, QAbstractSpinBox:hover {{ border-color: {c.accent}; }}
    QComboBox:focus, QAbstractSpinBox:focus {{ border: 2px solid {c.accent}; padding: 4px 7px; }}
    QComboBox:disabled, QAbstractSpinBox:disabled {{ background: {c.window}; color: {c.muted}; }}
    QComboBox QAbstractItemView {{
        background: {c.card}; border: 1px solid {c.line}; padding: 4px; outline: none;
    }}
    QComboBox QAbstractItemView::item {{ min-height: 28px; padding: 0 8px; }}
    QPlainTextEdit[readOnly="true"]#address {{
        background: {c.field}; border: 1px solid {c.line}; border-radius: 4px;
    }}
    QPlainTextEdit#address:focus {{ border: 2px solid {c.accent}; }}
    {_arrows(scheme)}
    """


def high_contrast(scheme: str) -> str:
    """Edges only, in the system's own colours: Fusion derives its edges from the ground, and a
    shade of black on black cannot be seen.

    Args:
        scheme: light or dark, as the system's ground is; only the arrows need to know.
    """
    return f"""
    QFrame#card, QFrame#question, QFrame#code, QMenu {{ border: 1px solid palette(window-text); }}
    QMenu {{ background: palette(window); padding: 4px 0; }}
    QMenu::item {{ padding: 6px 24px 6px 32px; }}
    QMenu::item:selected {{ background: palette(highlight); color: palette(highlighted-text); }}
    QMenu::icon {{ padding-left: 8px; margin-left: 8px; }}
    QMenu::indicator {{ left: 8px; width: 16px; height: 16px; }}
    QMenu::separator {{ height: 1px; background: palette(window-text); margin: 4px 8px; }}
    QLineEdit, QPlainTextEdit#question-input, QPlainTextEdit#address {{
        border: 1px solid palette(text); padding: 5px 8px; background: palette(base);
    }}
    QLineEdit:focus, QPlainTextEdit#question-input:focus, QPlainTextEdit#address:focus {{
        border: 3px solid palette(highlight); padding: 3px 6px;
    }}
    QPlainTextEdit#question-input {{ padding: 6px 4px; }}
    QPlainTextEdit#question-input:focus {{ padding: 4px 2px; }}
    QComboBox, QAbstractSpinBox {{
        border: 1px solid palette(text); padding: 5px 8px; background: palette(base);
    }}
    QComboBox:focus, QAbstractSpinBox:focus {{
        border: 3px solid palette(highlight); padding: 3px 6px;
    }}
    QPushButton, QToolButton {{
        border: 1px solid palette(button-text); padding: 5px 14px; background: palette(button);
        color: palette(button-text); min-height: 20px;
    }}
    QToolButton {{ padding: 4px 8px 3px 8px; }}
    QToolButton::menu-indicator {{ image: none; }}
    QPushButton:focus, QPushButton:default, QToolButton:focus {{
        border: 3px solid palette(highlight); padding: 3px 12px;
    }}
    QToolButton:focus {{ padding: 2px 6px 1px 6px; }}
    QToolButton:checked, QPushButton:pressed, QToolButton:pressed {{
        background: palette(highlight); color: palette(highlighted-text);
    }}
    QPushButton:disabled, QPushButton:default:disabled {{
        border: 1px dashed palette(button-text); padding: 5px 14px;
    }}
    QToolButton:disabled {{ border: 1px dashed palette(button-text); }}
    QCheckBox::indicator, QRadioButton::indicator {{
        width: 14px; height: 14px; border: 1px solid palette(window-text);
        background: palette(base);
    }}
    QRadioButton::indicator {{ border-radius: 7px; }}
    QCheckBox::indicator:focus, QRadioButton::indicator:focus {{
        border: 2px solid palette(highlight);
    }}
    QCheckBox::indicator:checked {{ image: url("{picture(f"check-{scheme}")}"); }}
    QRadioButton::indicator:checked {{ background: palette(highlight); }}
    QProgressBar {{ border: 1px solid palette(window-text); min-height: 8px; max-height: 8px; }}
    QProgressBar::chunk {{ background: palette(highlight); }}
    QScrollBar:vertical {{ background: palette(base); width: 14px; }}
    QScrollBar:horizontal {{ background: palette(base); height: 14px; }}
    QScrollBar::handle {{ background: palette(window-text); margin: 3px; }}
    QScrollBar::handle:vertical {{ min-height: 32px; }}
    QScrollBar::handle:horizontal {{ min-width: 32px; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
    {_arrows(scheme)}
    """

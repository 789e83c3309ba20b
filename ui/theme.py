"""One look for every window: Fusion, light or dark as the system has it, one accent colour.

Where the person has asked the system for high contrast, its own colours stay untouched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QLabel

from ui import field_style

GRID = 8
"""Pixels; margins and gaps are multiples of it."""


@dataclass(frozen=True)
class Colours:
    """All colours of one scheme; text on its ground has a contrast of at least 4.5 to 1."""

    window: str
    card: str
    field: str
    text: str
    muted: str
    line: str
    scroll: str
    """Of a scroll bar's handle; at least 3 to 1."""
    accent: str
    on_accent: str
    error: str


LIGHT = Colours(
    window="#f4f6f9",
    card="#ffffff",
    field="#ffffff",
    text="#1b1f24",
    muted="#56606e",
    line="#d3d9e2",
    scroll="#858f9d",
    accent="#2563eb",
    on_accent="#ffffff",
    error="#b42318",
)
DARK = Colours(
    window="#1d2025",
    card="#272b32",
    field="#1d2025",
    text="#e8eaed",
    muted="#a9b1bd",
    line="#3d444f",
    scroll="#7a8493",
    accent="#7aa7ff",
    on_accent="#10131a",
    error="#ff9d91",
)


@dataclass(frozen=True)
class CodeColours:
    """Kinds of words in a program, on the grounds ``window`` and ``card``; contrast as above."""

    keyword: str
    text: str
    """Strings."""
    comment: str
    number: str
    name: str
    """Functions, classes, tags."""


LIGHT_CODE = CodeColours(
    keyword="#7c2fd0", text="#0a6b3d", comment="#56606e", number="#9a3412", name="#1d4ed8"
)
DARK_CODE = CodeColours(
    keyword="#c4a7ff", text="#8fd6a5", comment="#a9b1bd", number="#f0b27a", name="#8ab8ff"
)


def code_colours() -> CodeColours | None:
    """Those of the present scheme; None for a system's high contrast, which has its own."""
    window = QGuiApplication.palette().color(QPalette.ColorRole.Window).name()
    return {LIGHT.window: LIGHT_CODE, DARK.window: DARK_CODE}.get(window)


class Theme(QObject):
    """Applies the look to the application and follows the system when it changes."""

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self._app = app
        self._choice = "system"
        app.setStyle("Fusion")
        app.styleHints().colorSchemeChanged.connect(self.follow_system)
        app.styleHints().accessibility().contrastPreferenceChanged.connect(self.follow_system)
        self.follow_system()

    @classmethod
    def current(cls) -> Theme | None:
        """The one of this application, if it has one."""
        app = QApplication.instance()
        return app.findChild(cls) if app is not None else None

    def choose(self, choice: str) -> None:
        """Light, dark or as the system, at once; also for what the system draws around windows."""
        self._choice = choice
        schemes = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}
        self._app.styleHints().setColorScheme(schemes.get(choice, Qt.ColorScheme.Unknown))
        self.follow_system()

    def follow_system(self, *_: Any) -> None:
        """Light or dark as the person or else the system has it, or hands off."""
        hints = self._app.styleHints()
        if hints.accessibility().contrastPreference() == Qt.ContrastPreference.HighContrast:
            self.leave_to_system()
            return
        dark = self._choice == "dark" or (
            # where the platform has no schemes, what was chosen is all there is
            self._choice == "system" and hints.colorScheme() == Qt.ColorScheme.Dark
        )
        self.apply(DARK if dark else LIGHT)

    def leave_to_system(self, palette: QPalette | None = None) -> None:
        """Use the system's own colours, or those of a palette that stands for them."""
        palette = palette or QPalette()
        self._app.setPalette(palette)
        dark = self._app.palette().color(QPalette.ColorRole.Window).lightness() < 128
        self._app.setStyleSheet(field_style.high_contrast("dark" if dark else "light"))

    def apply(self, colours: Colours) -> None:
        """Use these colours for everything."""
        self._app.setPalette(_palette(colours))
        self._app.setStyleSheet(_sheet(colours))


def _palette(c: Colours) -> QPalette:
    role = QPalette.ColorRole
    palette = QPalette(QColor(c.card), QColor(c.window))
    for name, colour in {
        role.Window: c.window,
        role.Base: c.field,
        role.AlternateBase: c.card,
        role.Button: c.card,
        role.ToolTipBase: c.card,
        role.WindowText: c.text,
        role.Text: c.text,
        role.ButtonText: c.text,
        role.ToolTipText: c.text,
        role.PlaceholderText: c.muted,
        role.Highlight: c.accent,
        role.HighlightedText: c.on_accent,
        role.Accent: c.accent,
        role.Link: c.accent,
        role.Mid: c.line,
        role.Dark: c.line,
    }.items():
        palette.setColor(name, QColor(colour))
    disabled = QPalette.ColorGroup.Disabled
    for name in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(disabled, name, QColor(c.muted))
    palette.setColor(disabled, role.Highlight, QColor(c.line))
    return palette


def _sheet(c: Colours) -> str:
    scheme = "dark" if c is DARK else "light"
    tick, check = (field_style.picture(f"{name}-{scheme}") for name in ("tick", "check"))
    return f"""
    {field_style.fields(scheme, c)}
    QFrame#card {{ background: {c.card}; border: 1px solid {c.line}; border-radius: 8px; }}
    QLabel[muted="true"] {{ color: {c.muted}; }}
    QMessageBox QLabel#qt_msgbox_informativelabel {{ min-width: {42 * GRID}px; }}
    QLabel[error="true"], QLabel[muted="true"][error="true"] {{ color: {c.error}; }}
    QLineEdit {{
        background: {c.field}; border: 1px solid {c.line}; border-radius: 4px; padding: 5px 8px;
        selection-background-color: {c.accent}; selection-color: {c.on_accent};
    }}
    QLineEdit:focus {{ border: 2px solid {c.accent}; padding: 4px 7px; }}
    QPushButton, QToolButton {{
        background: {c.card}; border: 1px solid {c.line}; border-radius: 4px; padding: 5px 16px;
        min-height: 20px;
    }}
    QToolButton {{ padding: 4px 8px 3px 8px; }}
    QToolButton::menu-indicator {{ image: none; }}
    QPushButton:hover, QToolButton:hover {{ border-color: {c.accent}; }}
    QPushButton:focus, QToolButton:focus {{ border: 2px solid {c.accent}; padding: 4px 15px; }}
    QToolButton:focus {{ padding: 3px 7px 2px 7px; }}
    QPushButton:pressed, QToolButton:pressed {{ background: {c.line}; }}
    QPushButton:default {{
        background: {c.accent}; color: {c.on_accent}; border-color: {c.accent};
    }}
    QPushButton:default:focus {{ border: 2px solid {c.text}; }}
    QPushButton:disabled, QPushButton:default:disabled {{
        background: {c.window}; color: {c.muted}; border-color: {c.line};
    }}
    QToolButton[autoRaise="true"] {{ border-color: transparent; background: transparent; }}
    QToolButton[autoRaise="true"]:hover, QToolButton:checked {{ border-color: {c.accent}; }}
    QToolButton[autoRaise="true"]:focus {{ border-color: {c.accent}; }}
    QToolButton#day:checked {{ background: {c.accent}; color: {c.on_accent}; }}
    QToolButton#day:checked:focus {{ border-color: {c.text}; }}
    QToolButton#day:disabled {{ color: {c.muted}; }}
    QToolButton#day:checked:disabled {{
        background: {c.line}; color: {c.text}; border-color: {c.line};
    }}
    QPlainTextEdit#question-input {{
        background: {c.field}; border: 1px solid {c.line}; border-radius: 4px; padding: 6px 4px;
    }}
    QPlainTextEdit#question-input:focus {{ border: 2px solid {c.accent}; padding: 5px 3px; }}
    QListView#conversations {{ background: transparent; border: none; }}
    QListView#conversations::item {{ border-radius: 4px; }}
    QListView#conversations::item:selected {{ background: {c.accent}; color: {c.on_accent}; }}
    QListView#conversations:focus {{ border: 1px solid {c.accent}; border-radius: 4px; }}
    QListWidget#sections {{ background: transparent; border: none; outline: none; }}
    QListWidget#sections::item {{ padding: 7px 8px; border-radius: 4px; }}
    QListWidget#sections::item:hover {{ background: {c.line}; }}
    QListWidget#sections::item:selected {{ background: {c.accent}; color: {c.on_accent}; }}
    QListWidget#sections:focus {{ border: 1px solid {c.accent}; border-radius: 4px; }}
    QFrame#question {{ background: {c.card}; border: 1px solid {c.line}; border-radius: 8px; }}
    QFrame#code {{ background: {c.window}; border: 1px solid {c.line}; border-radius: 8px; }}
    QScrollBar:vertical {{ background: transparent; width: 12px; }}
    QScrollBar:horizontal {{ background: transparent; height: 12px; }}
    QScrollBar::handle {{ background: {c.scroll}; border-radius: 4px; margin: 2px; }}
    QScrollBar::handle:vertical {{ min-height: 32px; }}
    QScrollBar::handle:horizontal {{ min-width: 32px; }}
    QScrollBar::handle:hover {{ background: {c.muted}; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
    QCheckBox {{ spacing: 8px; }}
    QCheckBox::indicator {{
        width: 16px; height: 16px; border: 1px solid {c.muted}; border-radius: 3px;
        background: {c.field};
    }}
    QCheckBox::indicator:hover, QCheckBox::indicator:focus {{ border-color: {c.accent}; }}
    QCheckBox::indicator:checked {{
        background: {c.accent}; border-color: {c.accent}; image: url("{tick}");
    }}
    QRadioButton {{ spacing: 8px; }}
    QRadioButton::indicator {{
        width: 16px; height: 16px; border: 1px solid {c.muted}; border-radius: 9px;
        background: {c.field};
    }}
    QRadioButton::indicator:hover, QRadioButton::indicator:focus {{ border-color: {c.accent}; }}
    QRadioButton::indicator:checked {{
        width: 8px; height: 8px; border: 5px solid {c.accent}; background: {c.on_accent};
    }}
    QRadioButton:focus {{ color: {c.accent}; }}
    QProgressBar {{
        background: {c.line}; border: none; border-radius: 3px; min-height: 6px; max-height: 6px;
    }}
    QProgressBar::chunk {{ background: {c.accent}; border-radius: 3px; }}
    QMenu {{ background: {c.card}; border: 1px solid {c.line}; padding: 4px 0; }}
    QMenu::item {{ padding: 6px 24px 6px 32px; color: {c.text}; }}
    QMenu::icon {{ padding-left: 8px; margin-left: 8px; }}
    QMenu::indicator {{ left: 8px; width: 16px; height: 16px; }}
    QMenu::indicator:checked {{ image: url("{check}"); }}
    QMenu::item:selected {{ background: {c.accent}; color: {c.on_accent}; }}
    QMenu::item:disabled {{ color: {c.muted}; background: transparent; }}
    QMenu::separator {{ height: 1px; background: {c.line}; margin: 4px 8px; }}
    """


def heading(label: QLabel, factor: float = 1.4) -> QLabel:
    """Make a label a heading, relative to the system's own font size."""
    font = label.font()
    font.setPointSizeF(font.pointSizeF() * factor)
    font.setWeight(QFont.Weight.DemiBold)
    label.setFont(font)
    return label


def padded(field: QAbstractSpinBox) -> None:
    """Room before a number, as other fields have it; style sheets cannot ask for it."""
    field.lineEdit().setTextMargins(GRID, 0, 0, 0)


def muted(label: QLabel) -> QLabel:
    """Make a label less important."""
    label.setProperty("muted", True)
    return label


def mark_error(label: QLabel, *, on: bool) -> None:
    """Colour a label as an error, or not; the style is worked out again only on a change."""
    if bool(label.property("error")) != on:
        label.setProperty("error", on)
        label.style().unpolish(label)
        label.style().polish(label)


def fixed_font() -> QFont:
    """The system's font for codes and addresses."""
    return QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)


def copy(text: str) -> None:
    """Put ``text`` on the clipboard."""
    QGuiApplication.clipboard().setText(text)

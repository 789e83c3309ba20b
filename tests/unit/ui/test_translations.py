"""Every word of the desktop app is translated, and what is shipped is what was translated."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "resources" / "translations"
MARKERS = {"translate", "QT_TRANSLATE_NOOP"}
SHOWS = {
    "QAction", "QCheckBox", "QGroupBox", "QLabel", "QMenu", "QPushButton", "QRadioButton", "Card",
    "addAction", "addButton", "addItem", "addMenu", "addRow", "addTab", "setAccessibleDescription",
    "setAccessibleName", "setInformativeText", "setPlaceholderText", "setPrefix",
    "setSpecialValueText", "setStatusTip", "setSuffix", "setText", "setTitle", "setToolTip",
    "setWhatsThis", "setWindowTitle", "show_text", "showMessage", "text_label",
}  # fmt: skip
"""Calls whose text arguments a person reads."""
NAMES = {"FLEET-…"}
"""The same in every language."""


class Found(NamedTuple):
    context: str
    text: str
    place: str


@cache
def trees() -> list[tuple[Path, ast.Module]]:
    files = sorted((ROOT / "ui").rglob("*.py"))
    return [(file, ast.parse(file.read_text(encoding="utf-8"))) for file in files]


def called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def calls(node: ast.AST, owner: str = "") -> Iterator[tuple[str, ast.Call]]:
    """Every call below ``node``, with the class it stands in."""
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, ast.ClassDef) else owner
        if isinstance(child, ast.Call):
            yield inside, child
        yield from calls(child, inside)


def sources() -> list[Found]:
    """What the code gives to be translated, read from it without Qt's tool."""
    found = []
    for file, tree in trees():
        for owner, call in calls(tree):
            place = f"{file.relative_to(ROOT)}:{call.lineno}"
            if called(call) == "tr":
                assert isinstance(call.args[0], ast.Constant), f"{place}: not a plain text"
                found.append(Found(owner, str(call.args[0].value), place))
            elif called(call) in MARKERS and isinstance(call.args[1], ast.Constant):
                context = call.args[0]
                assert isinstance(context, ast.Constant), f"{place}: no plain context"
                found.append(Found(str(context.value), str(call.args[1].value), place))
    return found


def messages(language: str) -> list[tuple[str, ET.Element]]:
    tree = ET.parse(FOLDER / f"fleetapp_{language}.ts")
    return [
        (context.findtext("name", ""), message)
        for context in tree.getroot().iter("context")
        for message in context.iter("message")
    ]


def translations(message: ET.Element) -> list[str]:
    entry = message.find("translation")
    assert entry is not None
    forms = [form.text or "" for form in entry.iter("numerusform")]
    return forms or [entry.text or ""]


def test_the_german_file_has_every_string_and_no_other() -> None:
    listed = {(context, m.findtext("source")) for context, m in messages("de")}
    missing = [s for s in sources() if (s.context, s.text) not in listed]
    assert not missing, f"run 'make translations' and translate: {missing}"
    assert not listed - {(s.context, s.text) for s in sources()}, "run 'make translations'"


@pytest.mark.parametrize("language", ["de", "en"])
def test_nothing_is_left_untranslated(language: str) -> None:
    for context, message in messages(language):
        entry = message.find("translation")
        assert entry is not None
        assert entry.get("type") is None, (context, message.findtext("source"))
        assert all(translations(message)), (context, message.findtext("source"))


def marks(text: str) -> dict[str, object]:
    """What a translation must keep."""
    return {
        "places": sorted(set(re.findall(r"\{\w*\}|%L?n", text))),
        "access key": len(re.findall(r"&(?!&)\w", text)),
        "more to come": text.endswith("…"),
        "spaces around": (text[:1] == " ", text[-1:] == " "),
        "full stop": text.endswith("."),
        "colon": text.endswith(":"),
    }


@pytest.mark.parametrize("language", ["de", "en"])
def test_a_translation_keeps_values_access_keys_and_punctuation(language: str) -> None:
    for context, message in messages(language):
        source = message.findtext("source", "")
        for translated in translations(message):
            assert marks(translated) == marks(source), (context, translated)


def test_plurals_have_both_files() -> None:
    german = {m.findtext("source") for _, m in messages("de") if m.get("numerus")}
    assert german == {m.findtext("source") for _, m in messages("en")}
    assert {s.text for s in sources() if re.search("%L?n", s.text)} == german


@pytest.mark.parametrize("language", ["de", "en"])
def test_the_shipped_file_is_made_from_the_source(language: str, tmp_path: Path) -> None:
    tool = Path(sys.executable).with_name("pyside6-lrelease")
    program = shutil.which(str(tool)) or shutil.which("pyside6-lrelease")
    assert program, "PySide6 brings lrelease along"
    made = tmp_path / "made.qm"
    command = [program, "-silent", str(FOLDER / f"fleetapp_{language}.ts"), "-qm", str(made)]
    subprocess.run(command, check=True, timeout=60)
    shipped = (FOLDER / f"fleetapp_{language}.qm").read_bytes()
    assert made.read_bytes() == shipped, "run 'make translations'"


def letters(node: ast.expr) -> str:
    """What a person would read of a literal."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return " ".join(letters(part) for part in node.values if isinstance(part, ast.Constant))
    if isinstance(node, ast.IfExp):
        return letters(node.body) + letters(node.orelse)
    return ""


def test_no_text_is_shown_that_cannot_be_translated() -> None:
    found = []
    for file, tree in trees():
        if file.parent.name == "gallery":  # plays the part of the agent and of a person
            continue
        for _, call in calls(tree):
            if called(call) not in SHOWS:
                continue
            words = [*call.args, *(k.value for k in call.keywords if k.arg == "placeholderText")]
            found += [
                f"{file.relative_to(ROOT)}:{call.lineno}: {letters(word)!r}"
                for word in words
                if re.search(r"[^\W\d_]{2}", letters(word)) and letters(word) not in NAMES
            ]
    assert not found

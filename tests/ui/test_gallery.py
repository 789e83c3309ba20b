"""Every screen in every state: nothing clipped, nothing on top of another, and always the same."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from tests.support.record_gallery import FOLDER, settings
from ui.gallery.check import complaints

ROOT = Path(__file__).resolve().parents[2]
DEADLINE = 150
"""Seconds; a run takes a tenth of it."""
SOME = "chat-answer,pc-preparing,dialog-join-refused,menu-contributing,tray-icons"


def gallery(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: Qt reads the scale when it starts."""
    command = [sys.executable, "-m", "ui.app", "--gallery", str(folder), *options]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE, check=False
    )


@pytest.mark.parametrize(
    ("language", "scale"),
    [
        ("de", "2"),  # the longest words in the least room
        pytest.param("de", "1", marks=pytest.mark.slow),
        pytest.param("en", "1", marks=pytest.mark.slow),
        pytest.param("en", "2", marks=pytest.mark.slow),
    ],
)
def test_nothing_is_clipped_overlaps_or_lacks_a_name(
    language: str, scale: str, tmp_path: Path
) -> None:
    done = gallery(
        tmp_path, "--check", "--scheme", "light", "--language", language, "--scale", scale
    )
    assert done.stdout == ""
    assert done.returncode == 0, done.stderr


def test_the_same_state_gives_the_same_picture(tmp_path: Path) -> None:
    for run in ("one", "other"):
        done = gallery(tmp_path / run, "--only", SOME)
        assert done.returncode == 0, done.stdout + done.stderr
    one, other = (
        {p.relative_to(tmp_path / run): p.read_bytes() for p in (tmp_path / run).rglob("*.png")}
        for run in ("one", "other")
    )
    assert len(one) == 3 * len(SOME.split(","))
    assert [str(p) for p in one if one[p] != other.get(p)] == []


def test_a_scene_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    assert gallery(tmp_path, "--only", "nothing-of-the-kind").returncode == 2


def shown(qtbot: QtBot, *widgets: QWidget, width: int = 300) -> QWidget:
    window = QWidget()
    column = QVBoxLayout(window)
    for widget in widgets:
        column.addWidget(widget)
    qtbot.addWidget(window)
    window.resize(width, 200)
    window.show()
    return window


def test_the_check_finds_a_label_without_room(qtbot: QtBot) -> None:
    label = QLabel("A long sentence that needs more than forty pixels.")
    label.setFixedWidth(40)
    assert "is clipped" in " ".join(complaints(shown(qtbot, label)))


def test_the_check_finds_a_paragraph_without_room(qtbot: QtBot) -> None:
    label = QLabel("Many words that take several lines here. " * 5, wordWrap=True)
    label.setFixedHeight(15)
    assert "is clipped" in " ".join(complaints(shown(qtbot, label)))


def test_the_check_finds_what_lies_on_something_else(qtbot: QtBot) -> None:
    window = shown(qtbot, QPushButton("One"))
    intruder = QLabel("Two", window)
    intruder.setGeometry(window.findChild(QPushButton).geometry())
    intruder.show()
    assert any("overlap" in line for line in complaints(window))


def test_the_check_finds_what_reaches_beyond_its_window(qtbot: QtBot) -> None:
    window = shown(qtbot, QPushButton("One"))
    window.layout().setEnabled(False)
    window.findChild(QPushButton).move(250, 10)
    assert any("reaches beyond" in line for line in complaints(window))


def test_the_check_finds_keys_given_twice_and_fields_without_a_name(qtbot: QtBot) -> None:
    field = QLineEdit()
    window = shown(qtbot, QPushButton("&Send"), QPushButton("&Stop"), field)
    found = complaints(window)
    assert "Alt+S stands for &Send and &Stop" in found
    assert "QLineEdit '' can be reached by Tab and has no name" in found
    field.setAccessibleName("Name")
    assert len(complaints(window)) == 1


def test_the_check_is_content_with_what_is_well(qtbot: QtBot) -> None:
    label = QLabel("A short one")
    label.setTextFormat(Qt.TextFormat.PlainText)
    assert complaints(shown(qtbot, label, QPushButton("&Good"))) == []


def test_every_picture_of_the_docs_is_drawn_by_the_gallery() -> None:
    script = (ROOT / ".ci" / "pictures").read_text(encoding="utf-8")
    drawn = {f"{name}.png" for name in re.findall(r"^draw \S+ \S+ (\S+)", script, re.MULTILINE)}
    there = {path.name for path in (ROOT / "docs" / "images").iterdir()}
    # those of the first run are of a walk with a real agent, see test_first_run_real.py
    # and that of the installed Windows app is of its proof under Wine
    others = ("first-run-", "chat-windows")
    assert drawn == {name for name in there if not name.startswith(others)}


def test_the_recorded_settings_are_those_of_today() -> None:
    for language in ("en", "de"):
        file = FOLDER / f"settings_{language}.json"
        now = msgspec.json.encode(settings(language))
        assert msgspec.json.decode(file.read_bytes()) == msgspec.json.decode(now), (
            "run 'python -m tests.support.record_gallery'"
        )

"""Prose of any depth stays on the screen."""

from __future__ import annotations

import time

import pytest
from PySide6.QtGui import QTextBlock
from PySide6.QtWidgets import QApplication

from ui.chat.blocks import split
from ui.chat.prose import MOST_LEVELS, SafeDocument, markdown_document

NARROW = 300


def documents(text: str, app: QApplication) -> list[SafeDocument]:
    made = [markdown_document(b.text, app.palette(), app.font()) for b in split(text)]
    for document in made:
        document.setTextWidth(NARROW)
    return made


def levels(document: SafeDocument) -> list[int]:
    """How far each of its lines is indented as a part of a list; 0 outside of any."""
    found = []
    block: QTextBlock = document.begin()
    while block.isValid():
        items = block.textList()
        found.append(items.format().indent() if items else 0)
        block = block.next()
    return found


@pytest.mark.parametrize(("step", "mark"), [("  ", "-"), ("    ", "*"), ("   ", "1."), ("\t", "+")])
def test_lists_three_hundred_deep_are_shown_item_by_item(
    qapp: QApplication, step: str, mark: str
) -> None:
    text = "\n".join(f"{step * n}{mark} item {n}" for n in range(300))
    begun = time.monotonic()
    made = documents(text, qapp)
    assert time.monotonic() - begun < 2
    found = [level for document in made for level in levels(document)]
    assert len(found) == 300
    assert min(found) >= 1, "each is an item, not code"
    assert max(found) <= MOST_LEVELS
    shown = "\n".join(document.toPlainText() for document in made).split("\n")
    assert [line.strip() for line in shown] == [f"item {n}" for n in range(300)]
    assert max(document.idealWidth() for document in made) <= NARROW


@pytest.mark.parametrize("mark", ["- ", "1. ", "> - ", "* > 2) "])
def test_a_line_that_opens_hundreds_of_lists_is_cut_short(qapp: QApplication, mark: str) -> None:
    begun = time.monotonic()
    (made,) = documents(f"{mark * 500}the end", qapp)
    assert time.monotonic() - begun < 2
    assert max(levels(made)) <= MOST_LEVELS
    assert made.toPlainText().endswith("the end")


def test_what_is_not_deep_is_left_as_it_is(qapp: QApplication) -> None:
    (made,) = documents("- one\n  - two\n    - three\n      1. four", qapp)
    assert levels(made) == [1, 2, 3, 4]
    rule = "- " * 20
    (made,) = documents(f"above\n\n{rule}\n\nbelow", qapp)[1:2]
    assert "-" not in made.toPlainText(), "a line across, not text"

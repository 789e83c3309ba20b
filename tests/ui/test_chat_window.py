"""What the chat window shows and does, by keyboard where a person would use it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QLocale, QSettings, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QListView,
    QPlainTextEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

from fleetapp.errors import AgentNotRunning, ChainBroken
from tests.support.fake_chat_api import (
    FakeChatApi,
    closing,
    comment,
    failing,
    opening,
    piece,
    saying,
)
from tests.support.fake_local_api import joined_status
from ui import theme
from ui.chat.block_widgets import CodeBlock, ProseBlock
from ui.chat.chats import Chats
from ui.chat.composer import Composer
from ui.chat.message_view import MessageView
from ui.chat.store import FILE, ConversationStore
from ui.chat.values import NEW
from ui.chat.window import ChatWindow
from ui.client import AgentClient
from ui.desktop import Desktop
from ui.language import Language
from ui.session import AgentSession
from ui.theme import DARK, LIGHT, Theme
from ui.view import AgentView

CODE = "Look:\n\n```python\ndef f(x):\n    return x + 1  # one more\n```\n\nand `inline`."


def views(window: ChatWindow) -> list[MessageView]:
    """On the screen, from top to bottom."""
    found = [v for v in window.thread_view.findChildren(MessageView) if v.isVisible()]
    return sorted(found, key=lambda view: view.y())


def shown(window: ChatWindow) -> str:
    """All text that can be read in the thread."""
    parts = []
    for view in views(window):
        parts += [view.widgets[index].plain_text() for index in sorted(view.widgets)]
        parts += [label.text() for label in view.findChildren(QLabel) if label.isVisible()]
    return "\n".join(parts)


def idle(qtbot: QtBot, window: ChatWindow) -> None:
    qtbot.waitUntil(lambda: not window.model.busy, timeout=8000)


def ask(qtbot: QtBot, window: ChatWindow, text: str) -> None:
    """Type and send, and wait for the answer."""
    window.composer.text.setFocus()
    qtbot.keyClicks(window.composer.text, text)
    qtbot.keyClick(window.composer.text, Qt.Key.Key_Return)
    idle(qtbot, window)


def press(window: ChatWindow, keys: str) -> None:
    """A shortcut, to whatever has the focus."""
    QTest.keySequence(window.focusWidget() or window, keys)


@pytest.fixture(autouse=True)
def active(qtbot: QtBot, request: pytest.FixtureRequest) -> None:
    """Shortcuts go to the active window only."""
    if "window" in request.fixturenames:
        window: ChatWindow = request.getfixturevalue("window")
        window.activateWindow()
        qtbot.waitUntil(window.isActiveWindow)


def test_asking_by_keyboard(qtbot: QtBot, window: ChatWindow, api: FakeChatApi) -> None:
    assert window.stack.currentWidget() is window.empty
    assert not window.composer.send.isEnabled()
    ask(qtbot, window, "Capital of France?")
    assert window.composer.current_text() == ""
    assert window.composer.text.hasFocus()
    assert window.windowTitle().startswith("Capital of France?")
    text = shown(window)
    assert "Capital of France?" in text
    assert "Paris." in text
    assert (
        "31.5 tokens/s · first token after 0.21 s · 42 tokens · served by DESK-1, José 測試, DESK-3"
        in text
    )
    assert window.sidebar.list.rowCount() == 1


def test_shift_return_breaks_the_line_and_nothing_empty_is_sent(
    qtbot: QtBot, window: ChatWindow, api: FakeChatApi
) -> None:
    field = window.composer.text
    qtbot.keyClicks(field, "  ")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert api.questions == []
    qtbot.keyClicks(field, "a")
    qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(field, "b")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    idle(qtbot, window)
    assert api.questions[0]["messages"][0]["content"] == "a\nb"


def test_escape_stops_and_nothing_is_sent_meanwhile(
    qtbot: QtBot, window: ChatWindow, api: FakeChatApi
) -> None:
    api.replies = [api.gated("The first half", "never")]
    qtbot.keyClicks(window.composer.text, "q")
    qtbot.keyClick(window.composer.text, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "The first half" in shown(window))
    assert window.composer.stop.isVisible()
    assert not window.composer.send.isVisible()
    qtbot.keyClicks(window.composer.text, "too early")
    qtbot.keyClick(window.composer.text, Qt.Key.Key_Return)
    assert len(api.questions) == 1
    press(window, "Esc")
    assert not window.model.busy
    text = shown(window)
    assert "The first half" in text
    assert "Stopped." in text
    assert window.composer.send.isVisible()
    assert window.composer.current_text() == "too early"


def test_the_queue_the_reading_and_the_pause_are_said(
    qtbot: QtBot, window: ChatWindow, api: FakeChatApi
) -> None:
    def reply(_body: Any) -> Iterator[bytes]:
        yield comment("queued 3")
        api.gate.wait(10)
        yield opening()
        yield piece("one ")
        api.held.wait(10)
        yield piece("two")
        yield closing()

    api.replies = [reply]
    qtbot.keyClicks(window.composer.text, "q")
    qtbot.keyClick(window.composer.text, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "Waiting: number 3 in the queue." in shown(window))
    api.held.clear()
    api.gate.set()
    qtbot.waitUntil(lambda: "Writing…" in shown(window))
    qtbot.waitUntil(lambda: "The answer has paused" in shown(window), timeout=6000)
    api.held.set()
    idle(qtbot, window)
    text = shown(window)
    assert "The answer paused and went on after" in text
    assert "The answer has paused" not in text


def test_a_failure_is_in_the_thread_with_retry(
    qtbot: QtBot, window: ChatWindow, api: FakeChatApi
) -> None:
    def reply(_body: Any) -> Iterator[bytes]:
        yield opening()
        yield piece("half of it")
        yield failing(ChainBroken("DESK-3 left.", remedy="Try again."))

    api.replies = [reply, saying("All of it.")]
    ask(qtbot, window, "q")
    text = shown(window)
    assert "half of it" in text
    assert "DESK-3 left. Try again." in text
    retry = views(window)[-1]._footer.retry
    retry.setFocus()
    qtbot.keyClick(retry, Qt.Key.Key_Space)
    idle(qtbot, window)
    text = shown(window)
    assert "All of it." in text
    assert "DESK-3 left" not in text
    assert "half" not in text


def test_looking_elsewhere_while_an_answer_comes(
    qtbot: QtBot, window: ChatWindow, api: FakeChatApi
) -> None:
    api.replies = [api.gated("slow ", "answer"), saying("quick answer")]
    qtbot.keyClicks(window.composer.text, "first")
    qtbot.keyClick(window.composer.text, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "slow" in shown(window))
    first = window.current
    press(window, "Ctrl+N")
    assert window.current == NEW
    assert not window.composer.stop.isVisible()
    qtbot.keyClicks(window.composer.text, "second")
    qtbot.keyClick(window.composer.text, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "quick answer" in shown(window))
    assert "slow" not in shown(window)
    window.show_conversation(first)
    assert window.composer.stop.isVisible()
    api.gate.set()
    idle(qtbot, window)
    assert "slow answer" in shown(window)
    assert "quick" not in shown(window)


def test_regenerate_replaces_the_last_answer(
    qtbot: QtBot, window: ChatWindow, api: FakeChatApi
) -> None:
    api.replies = [saying("old"), saying("new")]
    ask(qtbot, window, "q")
    again = views(window)[-1]._footer.again
    assert again.isVisible()
    qtbot.mouseClick(again, Qt.MouseButton.LeftButton)
    idle(qtbot, window)
    assert [m.text for m in window.model.messages(window.current)] == ["q", "new"]
    assert "old" not in shown(window)


def test_editing_says_what_is_removed(qtbot: QtBot, window: ChatWindow, api: FakeChatApi) -> None:
    ask(qtbot, window, "first")
    ask(qtbot, window, "second")
    qtbot.keyClicks(window.composer.text, "a draft")
    first = views(window)[0]
    qtbot.mouseClick(first.edit, Qt.MouseButton.LeftButton)
    assert window.composer.current_text() == "first"
    labels = [label.text() for label in window.composer.banner.findChildren(QLabel)]
    assert labels == [
        "Editing: sending replaces this question and removes the 3 messages after it."
    ]
    press(window, "Esc")
    assert window.composer.current_text() == "a draft"
    assert not window.composer.banner.isVisible()
    assert len(window.model.messages(window.current)) == 4
    qtbot.mouseClick(views(window)[0].edit, Qt.MouseButton.LeftButton)
    qtbot.keyClicks(window.composer.text, " again")
    qtbot.keyClick(window.composer.text, Qt.Key.Key_Return)
    idle(qtbot, window)
    assert [m.text for m in window.model.messages(window.current)] == ["first again", "Paris."]
    assert window.composer.current_text() == "a draft"


def test_copying_a_message_code_and_the_last_answer(
    qtbot: QtBot, window: ChatWindow, api: FakeChatApi
) -> None:
    api.replies = [saying(CODE)]
    ask(qtbot, window, "q")
    clipboard = QApplication.clipboard()
    (code,) = window.thread_view.findChildren(CodeBlock)
    qtbot.mouseClick(code.copy, Qt.MouseButton.LeftButton)
    assert clipboard.text() == "def f(x):\n    return x + 1  # one more"
    assert code.copy.text() == "Copied"
    qtbot.mouseClick(views(window)[0].copy, Qt.MouseButton.LeftButton)
    assert clipboard.text() == "q"
    press(window, "Ctrl+Shift+C")
    assert clipboard.text() == CODE


def test_code_is_coloured_in_both_schemes_and_left_alone_in_high_contrast(
    qtbot: QtBot, qapp: QApplication, window: ChatWindow, api: FakeChatApi
) -> None:
    theme = Theme(qapp)
    api.replies = [saying(CODE)]
    ask(qtbot, window, "q")

    def colours() -> set[str]:
        (code,) = window.thread_view.findChildren(CodeBlock)
        block, found = code.edit.document().begin(), set()
        while block.isValid():
            for part in block.layout().formats():
                if part.format.foreground().style() != Qt.BrushStyle.NoBrush:
                    found.add(part.format.foreground().color().name())
            block = block.next()
        return found

    seen = []
    for scheme in (LIGHT, DARK):
        theme.apply(scheme)
        qtbot.waitUntil(lambda: len(colours()) >= 4 and colours() not in seen)
        seen.append(colours())
    assert seen[0].isdisjoint(seen[1])
    qapp.setStyleSheet("")
    qapp.setPalette(qapp.style().standardPalette())
    qtbot.waitUntil(lambda: colours() == set())
    theme.apply(LIGHT)


def test_search_finds_words_in_answers_and_opens_the_chat(
    qtbot: QtBot, window: ChatWindow, api: FakeChatApi
) -> None:
    for answer in ("The needle is here.", "Only hay."):
        api.replies = [saying(answer)]
        press(window, "Ctrl+N")
        ask(qtbot, window, "question")
    press(window, "Ctrl+K")
    assert window.sidebar.search.hasFocus()
    qtbot.keyClicks(window.sidebar.search, "NEEDLE")
    qtbot.waitUntil(lambda: window.sidebar.list.rowCount() == 1)
    qtbot.keyClick(window.sidebar.search, Qt.Key.Key_Return)
    assert "The needle is here." in shown(window)
    qtbot.keyClicks(window.sidebar.search, "x")
    qtbot.waitUntil(lambda: window.sidebar.list.rowCount() == 0)
    assert window.sidebar.nothing.text() == "No chat has these words."


def test_finding_words_in_a_long_chat(qtbot: QtBot, window: ChatWindow, api: FakeChatApi) -> None:
    made = window.model.store.create("long", window.model.options(NEW))
    for number in range(300):
        text = "**needle** in here" if number in (20, 250) else f"hay {number}"
        window.model.store.add(made.id, "assistant", text, model="tiny")
    window.show_conversation(made.id)
    press(window, "Ctrl+F")
    qtbot.keyClicks(window.find_bar.field, "Needle")
    assert window.find_bar.count.text() == "Message 2 of 2"
    assert "needle in here" in shown(window)
    qtbot.keyClick(window.find_bar.field, Qt.Key.Key_Return)
    assert window.find_bar.count.text() == "Message 1 of 2"
    assert "hay 21" in shown(window)
    marked = [
        block
        for block in window.thread_view.findChildren(ProseBlock)
        if block.isVisible() and block.extraSelections()
    ]
    assert [block.plain_text() for block in marked] == ["needle in here"]
    press(window, "Esc")
    assert not window.find_bar.isVisible()
    assert not any(block.extraSelections() for block in marked)


def test_words_stay_marked_while_the_answer_grows(
    qtbot: QtBot, qapp: QApplication, window: ChatWindow, api: FakeChatApi
) -> None:
    api.replies = [api.gated("a needle", " and another needle")]
    qtbot.keyClicks(window.composer.text, "q")
    qtbot.keyClick(window.composer.text, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "a needle" in shown(window))
    press(window, "Ctrl+F")
    qtbot.keyClicks(window.find_bar.field, "needle")

    def marks() -> int:
        return sum(len(b.extraSelections()) for b in window.thread_view.findChildren(ProseBlock))

    assert marks() == 1
    api.gate.set()
    idle(qtbot, window)
    qtbot.waitUntil(lambda: marks() == 2)
    theme = Theme(qapp)
    for scheme in (DARK, LIGHT):
        theme.apply(scheme)
        QApplication.processEvents()
        assert marks() == 2
    press(window, "Esc")
    assert marks() == 0


def test_options_of_a_chat(qtbot: QtBot, window: ChatWindow, api: FakeChatApi) -> None:
    press(window, "Ctrl+.")
    assert window.options.isVisible()
    assert window.options.system.hasFocus()
    qtbot.keyClicks(window.options.system, "Be brief.")
    window.options.temperature.setValue(0.7)
    window.options.length.setValue(128)
    press(window, "Ctrl+.")
    assert not window.options.isVisible()
    ask(qtbot, window, "q")
    asked = api.questions[0]
    assert asked["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (asked["temperature"], asked["max_tokens"]) == (0.7, 128)
    press(window, "Ctrl+N")
    assert window.options.system.toPlainText() == ""
    assert window.options.temperature.value() == 0.7


def test_the_model_picker(qtbot: QtBot, window: ChatWindow, api: FakeChatApi) -> None:
    picker = window.picker
    assert [picker.itemText(i) for i in range(picker.count())] == ["tiny", "large (not ready)"]
    assert "DESK-1, José 測試, DESK-3" in picker.toolTip()
    picker.setCurrentIndex(1)
    picker.activated.emit(1)
    ask(qtbot, window, "q")
    assert api.questions[0]["model"] == "large"
    api.models = []
    window.model.refresh_models()
    qtbot.waitUntil(lambda: not window.model.models)
    assert picker.currentText() == "large (not served now)"


def test_drafts_and_the_open_chat_survive_a_restart(
    qtbot: QtBot, qapp: QApplication, home: Path, chats: Chats, api: FakeChatApi
) -> None:
    window = chats.window()
    qtbot.keyClicks(window.composer.text, "for a new chat")
    qtbot.waitUntil(lambda: chats.model.store.draft(NEW) == "for a new chat")
    window.composer.set_text("")
    ask(qtbot, window, "q")
    current = window.current
    qtbot.keyClicks(window.composer.text, "not sent yet")
    chats.stop()
    settings = QSettings(str(home / "ui.ini"), QSettings.Format.IniFormat)
    again = Chats(AgentClient(home, qapp), home, settings)
    reopened = again.window()
    reopened.show()
    assert reopened.current == current
    assert reopened.composer.current_text() == "not sent yet"
    reopened.start_new()
    assert reopened.composer.current_text() == ""
    again.stop()
    chats.model.store = ConversationStore(home)


def test_renaming_deleting_and_exporting(
    qtbot: QtBot, window: ChatWindow, api: FakeChatApi, tmp_path: Path
) -> None:
    ask(qtbot, window, "q")
    press(window, "F2")
    editor = window.sidebar.view.findChild(QLineEdit)
    assert editor is not None
    editor.selectAll()
    qtbot.keyClicks(editor, "Capitals")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.model.store.conversations()[0].title == "Capitals")
    window.saving.export(window.current, tmp_path / "x.md")
    assert (tmp_path / "x.md").read_text().startswith("# Capitals\n")
    window.saving.export(window.current, tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_bytes())["title"] == "Capitals"
    window.saving.copy_history(tmp_path / FILE)
    copy = ConversationStore(tmp_path)
    assert [c.title for c in copy.conversations()] == ["Capitals"]
    copy.close()
    window.saving.export(window.current, tmp_path / "no folder" / "x.md")
    assert "could not be written" in window.notice.label.text()
    window.ask_to_delete()
    question = window.question
    assert question is not None
    assert question.defaultButton().text() == "&Keep"
    delete = next(b for b in question.buttons() if b is not question.defaultButton())
    qtbot.mouseClick(delete, Qt.MouseButton.LeftButton)
    assert window.model.store.conversations() == []
    assert window.current == NEW
    assert window.stack.currentWidget() is window.empty


def test_somebody_who_reads_further_up_stays_there_while_the_answer_grows(
    qtbot: QtBot, window: ChatWindow, api: FakeChatApi
) -> None:
    api.replies = [saying("A paragraph.\n\n" * 60), api.gated("more\n\n" * 30, "and more\n\n" * 30)]
    ask(qtbot, window, "first")
    bar = window.thread_view.verticalScrollBar()
    assert bar.value() == bar.maximum() > 0
    qtbot.keyClicks(window.composer.text, "second")
    qtbot.keyClick(window.composer.text, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.model.messages(window.current)[-1].text.count("more") == 30)
    qtbot.waitUntil(lambda: bar.value() == bar.maximum())
    window.thread_view.setFocus()
    qtbot.keyClick(window.thread_view, Qt.Key.Key_Home)
    assert bar.value() == 0
    assert window.thread_view.newest.isVisible()
    before = bar.maximum()
    api.gate.set()
    idle(qtbot, window)
    qtbot.waitUntil(lambda: bar.maximum() > before)
    assert bar.value() == 0
    qtbot.mouseClick(window.thread_view.newest, Qt.MouseButton.LeftButton)
    assert bar.value() == bar.maximum()
    assert not window.thread_view.newest.isVisible()
    qtbot.keyClick(window.thread_view, Qt.Key.Key_PageUp)
    assert bar.value() < bar.maximum()


def test_a_window_of_another_width_leaves_neither_gaps_nor_text_that_is_cut(
    qtbot: QtBot, chats: Chats, window: ChatWindow, api: FakeChatApi
) -> None:
    api.replies = [saying("some words that wrap " * 12)]
    ask(qtbot, window, "q")
    heights = []
    for width in (640, 960, 1300):
        other = chats.new_window()
        other.resize(width, 720)
        other.thread_view.resize(width // 2, 300)  # as laid out before it is shown
        other.show_conversation(window.current)
        other.show()
        QApplication.processEvents()
        blocks = [b for b in other.thread_view.findChildren(ProseBlock) if b.isVisible()]
        assert len(blocks) == 2
        for block in blocks:
            assert block.height() == int(block.document().size().height() + 0.99)
            assert block.document().idealWidth() <= block.width()
        heights.append(blocks[1].height())
        other.close()
    assert heights[0] > heights[1] >= heights[2]


def test_two_windows_show_the_same_answer(qtbot: QtBot, chats: Chats, api: FakeChatApi) -> None:
    api.replies = [api.gated("one ", "two")]
    window = chats.window()
    qtbot.keyClicks(window.composer.text, "q")
    qtbot.keyClick(window.composer.text, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "one" in shown(window))
    other = chats.new_window()
    other.resize(700, 500)
    other.show()
    assert other.current == window.current
    qtbot.waitUntil(lambda: "one" in shown(other))
    window.close()
    api.gate.set()
    idle(qtbot, other)
    qtbot.waitUntil(lambda: "one two" in shown(other))
    assert chats.windows == [other]
    third = chats.new_window()
    third.show()
    other.model.delete(other.current)
    assert (other.current, third.current) == (NEW, NEW)


def test_two_windows_with_an_answer_each(qtbot: QtBot, chats: Chats, api: FakeChatApi) -> None:
    api.replies = [
        api.gated("left begins", ", left ends"),
        api.gated("right begins", ", right ends"),
    ]
    window = chats.window()
    other = chats.new_window()
    other.show()
    for each, begun in ((window, "left"), (other, "right")):
        each.start_new()
        each.composer.set_text(f"{begun}?")
        each.composer.submit()
        qtbot.waitUntil(lambda each=each, begun=begun: f"{begun} begins" in shown(each))  # type: ignore[misc]
    assert window.current != other.current
    api.gate.set()
    idle(qtbot, window)
    qtbot.waitUntil(lambda: "left begins, left ends" in shown(window))
    qtbot.waitUntil(lambda: "right begins, right ends" in shown(other))
    assert "right" not in shown(window)
    assert "left" not in shown(other)


def test_deleting_the_chat_that_is_being_answered_in_two_windows(
    qtbot: QtBot, chats: Chats, api: FakeChatApi
) -> None:
    api.replies = [api.gated("gone ", "for ever"), saying("of the next")]
    window = chats.window()
    window.composer.set_text("delete me")
    window.composer.submit()
    qtbot.waitUntil(lambda: "gone" in shown(window))
    other = chats.new_window()
    other.show()
    qtbot.waitUntil(lambda: "gone" in shown(other))
    window.ask_to_delete()
    assert window.question is not None
    next(b for b in window.question.buttons() if b is not window.question.defaultButton()).click()
    assert (window.current, other.current) == (NEW, NEW)
    other.composer.set_text("next")
    other.composer.submit()
    api.gate.set()
    qtbot.waitUntil(lambda: api.left + api.ended == 2, timeout=8000)
    idle(qtbot, other)
    assert "of the next" in shown(other)
    for each in (window, other):
        assert "gone" not in shown(each)
        assert "for ever" not in shown(each)
    assert [c.title for c in chats.model.store.conversations()] == ["next"]


def test_regenerating_twice_quickly_shows_one_answer(
    qtbot: QtBot, window: ChatWindow, api: FakeChatApi
) -> None:
    api.replies = [saying("old"), api.gated("second ", "x"), saying("third")]
    ask(qtbot, window, "q")
    for _ in range(2):
        # the button is the old answer's; a quick second click still reaches it
        views(window)[-1]._footer.again.clicked.emit()
    api.gate.set()
    idle(qtbot, window)
    assert [m.role for m in window.model.messages(window.current)] == ["user", "assistant"]
    assert window.model.messages(window.current)[-1].status == "complete"
    assert len(views(window)) == 2
    assert "old" not in shown(window)
    assert ("second x" in shown(window)) != ("third" in shown(window))


def test_a_damaged_history_is_said(
    qtbot: QtBot, qapp: QApplication, home: Path, api: FakeChatApi
) -> None:
    (home / FILE).write_bytes(b"this is no database" * 1000)
    settings = QSettings(str(home / "ui.ini"), QSettings.Format.IniFormat)
    chats = Chats(AgentClient(home, qapp), home, settings)
    window = chats.window()
    window.show()
    assert "was damaged" in window.notice.label.text()
    assert "chats.damaged-" in window.notice.label.text()
    chats.stop()


@pytest.mark.parametrize("direction", ["LeftToRight", "RightToLeft"])
def test_every_control_has_a_name_a_place_and_can_be_reached_by_keyboard(
    qtbot: QtBot, window: ChatWindow, api: FakeChatApi, direction: str
) -> None:
    window.setLayoutDirection(Qt.LayoutDirection[direction])
    api.replies = [saying(CODE + "\n\n[a link](https://example.org)")]
    ask(qtbot, window, "q")
    window.options_button.click()
    press(window, "Ctrl+F")
    window.resize(640, 900)
    QApplication.processEvents()
    kinds = (QAbstractButton, QLineEdit, QPlainTextEdit, QComboBox, QAbstractSpinBox, QListView)
    controls = {
        control
        for kind in kinds
        for control in window.findChildren(kind)
        if control.isVisible()
        and control.objectName() not in ("qt_spinbox_lineedit", "qt_toolbar_ext_button")
        and not isinstance(control.parentWidget(), (QLineEdit, QAbstractSpinBox))
    }
    assert len(controls) > 15
    for control in controls:
        interface = QAccessible.queryAccessibleInterface(control)
        assert interface.text(QAccessible.Text.Name), control
        if control.isEnabled():
            assert control.focusPolicy() & Qt.FocusPolicy.TabFocus, control
        inside = control.mapTo(window, control.rect().topLeft())
        # none is cut off at the sides; the thread scrolls up and down
        assert inside.x() >= 0, control
        assert inside.x() + control.width() <= window.width(), control
    reached: set[QWidget] = set()
    window.composer.text.setFocus()
    for _ in range(120):
        QTest.keyClick(window.focusWidget(), Qt.Key.Key_Tab)
        if (focused := window.focusWidget()) is not None:
            reached.add(focused)
    missed = {c for c in controls if c.isEnabled() and c.isVisible()} - reached
    assert not missed


def test_the_tray_menu_opens_the_chat(
    qtbot: QtBot, qapp: QApplication, home: Path, desktop: Desktop
) -> None:
    assert desktop.chats is None
    desktop.actions.chat.trigger()
    assert desktop.chats is not None
    window = desktop.chats.window()
    assert window.isVisible()
    desktop.actions.chat.trigger()
    assert desktop.chats.windows == [window]
    window.close()
    assert desktop.chats.windows == []
    desktop.actions.chat.trigger()
    assert desktop.chats.window().isVisible()


def test_why_nothing_can_be_asked_is_said_until_it_can(
    qtbot: QtBot, chats: Chats, window: ChatWindow, api: FakeChatApi
) -> None:
    qtbot.keyClicks(window.composer.text, "not sent yet")
    chats.show_agent(AgentView("connected", joined_status()))
    assert not window.agent_line.isVisible()
    chats.show_agent(AgentView("starting"))
    assert window.agent_line.text() == "The agent on this PC is starting."
    another = chats.new_window()
    another.show()
    assert another.agent_line.isVisible(), "a window that is opened meanwhile says it, too"
    gone = AgentNotRunning("It could not be kept running.", remedy="Try again from the menu.")
    chats.show_agent(AgentView("stopped", problem=gone))
    assert window.agent_line.text() == str(gone)
    unreachable = joined_status(state="connecting", reason="DESK-1 does not answer.")
    chats.show_agent(AgentView("connected", unreachable))
    assert window.agent_line.text() == "DESK-1 does not answer."
    qtbot.waitUntil(lambda: not chats.model._asking_models)
    asked = len([path for _, path, _ in api.requests if path == "/v1/models"])
    chats.show_agent(AgentView("connected", joined_status()))
    assert not window.agent_line.isVisible()
    assert not another.agent_line.isVisible()
    # the fleet may serve something else by now
    qtbot.waitUntil(
        lambda: len([path for _, path, _ in api.requests if path == "/v1/models"]) > asked
    )
    assert window.composer.current_text() == "not sent yet"


def test_quitting_while_an_answer_comes_asks_and_keeps_the_text(
    qtbot: QtBot, qapp: QApplication, home: Path, api: FakeChatApi
) -> None:
    api.replies = [api.gated("The first half", "never")]
    desktop = Desktop(AgentSession(home, ["no-such-program"]), home)
    desktop.session.keeper.abandon()
    desktop.session.start()
    qtbot.waitUntil(lambda: desktop.session.view.link == "connected")
    desktop.show_chat()
    assert desktop.chats is not None
    model = desktop.chats.model
    qtbot.waitUntil(lambda: bool(model.models))
    conversation = model.ask(NEW, "q")
    qtbot.waitUntil(lambda: model.messages(conversation)[-1].text == "The first half")
    desktop.quit()
    question = desktop.question
    assert question is not None
    assert question.text() == "An answer to you is being written."
    leave = next(b for b in question.buttons() if b is not question.defaultButton())
    with qtbot.waitSignal(desktop.ended, timeout=25_000):
        qtbot.mouseClick(leave, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(api.quit_asked.is_set)
        api.stop()
        desktop.session._ending_pid = 0  # the fake is not a process of its own
    assert desktop.chats is None
    kept = ConversationStore(home)
    message = kept.messages(conversation)[-1]
    assert (message.text, message.status) == ("The first half", "interrupted")
    kept.close()
    desktop.stop()


def test_a_history_that_cannot_be_written_still_chats(
    qtbot: QtBot, qapp: QApplication, home: Path, api: FakeChatApi
) -> None:
    gone = home / "gone"
    gone.mkdir()
    for name in ("agent.json", "api-token"):
        shutil.copy(home / name, gone / name)
    (gone / FILE).mkdir()  # nothing can be opened or renamed over
    settings = QSettings(str(gone / "ui.ini"), QSettings.Format.IniFormat)
    chats = Chats(AgentClient(gone, qapp), gone, settings)
    window = chats.window()
    window.show()
    qtbot.waitUntil(lambda: bool(chats.model.models))
    assert "not kept" in window.notice.label.text()
    ask(qtbot, window, "q")
    assert "Paris." in shown(window)
    chats.stop()


@pytest.mark.parametrize("language", ["en", "de"])
def test_what_the_empty_field_says_fits_into_a_narrow_window(
    qtbot: QtBot, qapp: QApplication, language: str
) -> None:
    spoken = Language(qapp)
    spoken.use(language, QLocale(language))
    try:
        composer = Composer()
        qtbot.addWidget(composer)
        composer.show()

        def fits() -> bool:
            field = composer.text
            room = field.viewport().width() - 2 * field.document().documentMargin()
            said = field.fontMetrics().horizontalAdvance(field.placeholderText())
            return bool(field.placeholderText()) and said <= room

        composer.resize(560 - 22 * theme.GRID - 3 * theme.GRID, 60)  # beside the narrowest list
        assert fits()
        short = composer.text.placeholderText()
        composer.resize(1000, 60)
        assert fits()
        assert len(composer.text.placeholderText()) > len(short) + 20, "with room it names the keys"
        assert composer.text.toolTip() in composer.text.placeholderText()
    finally:
        spoken.drop()
        QLocale.setDefault(QLocale.c())

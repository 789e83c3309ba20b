"""Whatever a model writes is shown, and does nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QColor, QImage, QTextDocument
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from tests.support.fake_chat_api import FakeChatApi, saying
from ui.chat.block_widgets import CodeBlock, ProseBlock
from ui.chat.message_view import MessageView
from ui.chat.prose import SafeDocument
from ui.chat.values import NEW
from ui.chat.window import ChatWindow

FAMILY = "👩\u200d👩\u200d👧"


@pytest.fixture(autouse=True)
def asked_for(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every resource that a document asks for."""
    asked: list[str] = []
    load = SafeDocument.loadResource

    def watched(self: SafeDocument, kind: int, name: QUrl | str) -> object:
        asked.append(str(name))
        return load(self, kind, name)

    monkeypatch.setattr(SafeDocument, "loadResource", watched)
    return asked


def show(qtbot: QtBot, window: ChatWindow, text: str, role: str = "assistant") -> MessageView:
    """As if a model had written ``text``."""
    store = window.model.store
    made = store.create("x", window.model.options(NEW))
    store.add(made.id, role, text, model="tiny")  # type: ignore[arg-type]
    window.show_conversation(made.id)
    window.grab()  # paints everything
    (view,) = [v for v in window.thread_view.findChildren(MessageView) if v.isVisible()]
    return view


def readable(view: MessageView) -> str:
    return "\n".join(view.widgets[i].plain_text() for i in sorted(view.widgets))


def alive(qtbot: QtBot, window: ChatWindow) -> None:
    """It still takes a key and answers a question."""
    window.composer.set_text("still there?")
    window.composer.submit()
    qtbot.waitUntil(lambda: not window.model.busy)
    assert window.model.messages(window.current)[-1].text == "Paris."


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<b>bold</b> and <h1>large</h1>",
        "<img src='http://127.0.0.1:{port}/a.png'>",
        "<div>\n<style>* {{ background: url(http://127.0.0.1:{port}/b.png) }}</style>\n</div>",
        "# <a href='javascript:alert(1)'>x</a>",
        "| <i>a</i> | b |\n|---|---|\n| <u>c</u> | d |",
        "- <iframe src='http://127.0.0.1:{port}/c'></iframe>",
        "&lt;b&gt;",
        "<!-- comment -->",
        "<?php x ?>",
        "<![CDATA[x]]>",
        "<link rel=stylesheet href=http://127.0.0.1:{port}/d.css>",
    ],
)
def test_raw_html_is_text(
    qtbot: QtBot, window: ChatWindow, api: FakeChatApi, asked_for: list[str], text: str
) -> None:
    assert api._server is not None
    text = text.format(port=api._server.server_address[1])
    view = show(qtbot, window, text)
    for mark in (
        "<script>",
        "<b>",
        "<img",
        "<style>",
        "<a href",
        "<i>",
        "<iframe",
        "<!--",
        "<link",
    ):
        if mark in text:
            assert mark in readable(view)
    for block in view.findChildren(ProseBlock):
        document: QTextDocument = block.document()
        assert "<script" not in document.toHtml()
        assert "<iframe" not in document.toHtml()
    assert asked_for == []
    alive(qtbot, window)
    assert {path for _, path, _ in api.requests} == {"/v1/models", "/v1/chat/completions"}


@pytest.mark.parametrize("where", ["http", "file", "path", "share", "data", "reference", "linked"])
def test_no_picture_is_ever_loaded(
    qtbot: QtBot,
    window: ChatWindow,
    api: FakeChatApi,
    asked_for: list[str],
    tmp_path: Path,
    where: str,
) -> None:
    picture = tmp_path / "red.png"
    image = QImage(64, 64, QImage.Format.Format_RGB32)
    image.fill(QColor("#ff0000"))
    assert image.save(str(picture))
    assert api._server is not None
    address = {
        "http": f"http://127.0.0.1:{api._server.server_address[1]}/red.png",
        "file": QUrl.fromLocalFile(str(picture)).toString(),
        "path": str(picture),
        "share": "//attacker.invalid/share/red.png",
        "data": "data:image/png;base64,iVBORw0KGgo=",
        "reference": str(picture),
        "linked": str(picture),
    }[where]
    text = {
        "reference": f"![a cat][r]\n\n[r]: {address}",
        "linked": f"[![a cat]({address})](https://example.org)",
    }.get(where, f"![a cat]({address})")
    view = show(qtbot, window, text)
    if where != "reference":  # a definition in another block is not followed
        assert "[Picture, not loaded: a cat]" in readable(view)
    for block in view.findChildren(ProseBlock):
        assert "<img" not in block.document().toHtml()
    grabbed = view.grab().toImage()
    red = QColor("#ff0000").rgb()
    assert not any(
        grabbed.pixel(x, y) == red
        for x in range(0, grabbed.width(), 4)
        for y in range(0, grabbed.height(), 4)
    )
    assert asked_for == []
    alive(qtbot, window)
    assert {path for _, path, _ in api.requests} == {"/v1/models", "/v1/chat/completions"}


def test_a_web_link_is_opened_only_after_a_look(qtbot: QtBot, window: ChatWindow) -> None:
    opened: list[QUrl] = []
    window.open_url = opened.append
    view = show(qtbot, window, "[example.org](https://www.xn--80ak6aa92e.com/pay?x=1#y)")
    (block,) = view.findChildren(ProseBlock)
    block.anchorClicked.emit(QUrl("https://www.xn--80ak6aa92e.com/pay?x=1#y"))
    dialog = window.dialog
    assert dialog is not None
    labels = [label.text() for label in dialog.findChildren(QLabel)]
    assert "www.xn--80ak6aa92e.com" in labels
    assert dialog.field.toPlainText() == "https://www.xn--80ak6aa92e.com/pay?x=1#y"
    assert opened == []
    dialog.reject()
    assert window.dialog is None
    assert opened == []
    window.look_at_link("https://example.org/")
    assert window.dialog is not None
    window.dialog.go.click()
    assert opened == [QUrl("https://example.org/")]
    assert readable(view) == "example.org", "the page did not replace the answer"


def test_letters_that_only_look_the_same_are_told_apart(qtbot: QtBot, window: ChatWindow) -> None:
    window.look_at_link("https://аррӏе.com/")  # noqa: RUF001 - Cyrillic on purpose
    dialog = window.dialog
    assert dialog is not None
    assert dialog.field.toPlainText().isascii()
    assert "xn--" in dialog.field.toPlainText()


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JAVASCRIPT:alert(1)",
        "file:///etc/passwd",
        "data:text/html,<script>alert(1)</script>",
        "ms-settings:",
        "//attacker.invalid/share",
        "mailto:a@b.c",
        "x",
        "",
    ],
)
def test_other_links_are_refused(qtbot: QtBot, window: ChatWindow, address: str) -> None:
    opened: list[QUrl] = []
    window.open_url = opened.append
    view = show(qtbot, window, f"[press me]({address})")
    (block,) = view.findChildren(ProseBlock)
    block.anchorClicked.emit(QUrl(address))
    dialog = window.dialog
    assert dialog is not None
    assert not dialog.allowed
    assert not hasattr(dialog, "go")
    dialog.accept()
    assert opened == []
    alive(qtbot, window)


@pytest.mark.parametrize(
    "place", ["prose", "code", "question", "list", "entity", "inline", "table", "heading", "fence"]
)
def test_reordering_and_hidden_characters_can_be_seen(
    qtbot: QtBot, window: ChatWindow, place: str
) -> None:
    trick = "access\u202e\u2066 check\u2069\u200b"
    text = {
        "prose": trick,
        "question": trick,
        "list": f"- **{trick}**",
        "code": f"```python\nif {trick}:\n```",
        "inline": f"Type `{trick}`.",
        "table": f"| a | {trick} |\n|---|---|\n| b | c |",
        "heading": f"# {trick}",
        "fence": f"```{trick}\nx = 1\n```",
        "entity": "access&#x202e;&#8294; check&#x2069;&#8203;",
    }[place]
    view = show(qtbot, window, text, "user" if place == "question" else "assistant")
    labels = " ".join(label.text() for label in view.findChildren(QLabel) if label.isVisible())
    assert trick not in readable(view) + labels
    if place != "fence":  # of what stands there only the first word counts
        assert "access[U+202E][U+2066] check[U+2069][U+200B]" in readable(view)
    alive(qtbot, window)


def test_emoji_that_are_joined_stay_joined(qtbot: QtBot, window: ChatWindow) -> None:
    view = show(qtbot, window, FAMILY * 50 + "日本 می\u200cخواهم")  # noqa: RUF001 - Persian
    assert readable(view) == FAMILY * 50 + "日本 می\u200cخواهم"  # noqa: RUF001
    chain = "\u200d".join(["👩"] * 50)
    assert readable(show(qtbot, window, chain)) == chain
    alive(qtbot, window)


HOSTILE = {
    "html": "<b>x</b> <img src='http://127.0.0.1:{port}/a'>\n\n<script>alert(1)</script>",
    "link": "[press me](javascript:alert(1)) and [me](http://127.0.0.1:{port}/b)",
    "picture": "![a cat](http://127.0.0.1:{port}/c.png) behind",
    "open fence": "See:\n\n```python\nx = 1\n\n<b>y</b>\n``",
    "tricks": "access\u202e\u2066 check\u2069\u200b",
    "emoji": "\u200d".join(["👩"] * 50),
    "table": "| a | <i>b</i> |\n|---|---|\n| ![x](http://127.0.0.1:{port}/d) | [y](data:z) |\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("size", [1, 7])
def test_what_comes_in_pieces_does_no_more_than_what_comes_at_once(
    qtbot: QtBot, window: ChatWindow, api: FakeChatApi, asked_for: list[str], kind: str, size: int
) -> None:
    assert api._server is not None
    text = HOSTILE[kind].replace("{port}", str(api._server.server_address[1]))
    at_once = readable(show(qtbot, window, text))
    window.start_new()
    # slowly enough that halves of everything are drawn
    api.replies = [saying(text, size, 0.03), saying("Paris.")]
    window.composer.set_text("go")
    window.composer.submit()
    qtbot.waitUntil(lambda: not window.model.busy, timeout=20_000)
    window.grab()
    answer = [v for v in window.thread_view.findChildren(MessageView) if v.isVisible()][-1]
    assert answer.message.text == text
    assert readable(answer) == at_once
    assert window.thread_view.draws > 1
    assert asked_for == []
    alive(qtbot, window)
    assert {path for _, path, _ in api.requests} == {"/v1/models", "/v1/chat/completions"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 1_000_000, id="a line of a megabyte"),
        pytest.param("```\n" + "x" * 1_000_000, id="code without an end or a line break"),
    ],
)
def test_a_megabyte_that_comes_in_pieces(
    qtbot: QtBot, window: ChatWindow, api: FakeChatApi, text: str
) -> None:
    api.replies = [saying(text, 8000, 0.005), saying("Paris.")]
    window.composer.set_text("go")
    window.composer.submit()
    longest = 0.0
    while window.model.busy:
        begun = time.thread_time()
        QApplication.processEvents()
        longest = max(longest, time.thread_time() - begun)
        time.sleep(0.001)
    assert window.model.messages(window.current)[-1].text == text
    print(f"longest turn {longest:.3f} s")
    assert longest < 1.0, "the window answers"
    alive(qtbot, window)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 1_000_000, id="a line of a megabyte"),
        pytest.param("word " * 200_000, id="a paragraph of a megabyte"),
        pytest.param("```\n" + "x" * 1_000_000, id="code without an end or a line break"),
        pytest.param("```python\n" + "x = 1\n" * 50_000, id="50,000 lines of code"),
        pytest.param("[" * 50_000, id="brackets"),
        pytest.param("*a" * 50_000, id="stars"),
        pytest.param("> " * 20_000 + "x", id="quotes in quotes"),
        pytest.param("- " * 5_000 + "x", id="lists in lists"),
        pytest.param("\n".join(" " * 2 * n + "- x" for n in range(200)), id="a staircase"),
        pytest.param("|a" * 2000 + "\n" + "|-" * 2000 + "\n" + "|a" * 2000, id="a wide table"),
        pytest.param("\u0301" * 20_000, id="accents on nothing"),
        pytest.param("\n" * 100_000, id="line breaks"),
        pytest.param("```\n" * 5001, id="fences"),
        pytest.param("\x00\x01\x1b[31m\ufffe\uffff", id="controls"),
        pytest.param("a\ud800b", id="half a character"),
    ],
)
def test_endless_and_twisted_text(qtbot: QtBot, window: ChatWindow, text: str) -> None:
    if "\ud800" in text:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    view = show(qtbot, window, text)
    window.thread_view.verticalScrollBar().setValue(0)
    window.grab()
    # only what can be seen is there, however much there is
    assert len(view.findChildren(ProseBlock)) + len(view.findChildren(CodeBlock)) < 150
    alive(qtbot, window)


def test_an_unclosed_fence_is_code(qtbot: QtBot, window: ChatWindow) -> None:
    view = show(qtbot, window, "See:\n\n```python\nx = 1\n\n<b>y</b>")
    (code,) = view.findChildren(CodeBlock)
    assert code.plain_text() == "x = 1\n\n<b>y</b>"


def test_a_question_is_shown_as_typed(qtbot: QtBot, window: ChatWindow) -> None:
    typed = "**not bold** <b>x</b> `y`\n\n# no heading\n  two spaces"
    assert readable(show(qtbot, window, typed, "user")) == typed


def test_names_from_the_fleet_are_text(qtbot: QtBot, window: ChatWindow, api: FakeChatApi) -> None:
    api.models = [{"id": "<img src=x>\u202e", "fleet": {"ready": True, "devices": ["<b>x</b>"]}}]
    window.model.refresh_models()
    qtbot.waitUntil(lambda: "img" in window.picker.currentText())
    assert window.picker.currentText() == "<img src=x>[U+202E]"
    alive(qtbot, window)


def test_the_guard_of_these_tests_sees_what_is_asked_for(asked_for: list[str]) -> None:
    document = SafeDocument()
    document.setHtml("<img src='http://127.0.0.1/x.png'>")
    document.setTextWidth(100)
    document.size()
    assert len(asked_for) >= 1

"""Nothing hides in a text, and only web addresses can be opened."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.chat.safe_text import cut_long_lines, one_line, openable, suspects, visible

FAMILY = "👩\u200d👩\u200d👧"
ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("user\u202e txt.exe", "user[U+202E] txt.exe"),
        ("a\u2066b\u2069", "a[U+2066]b[U+2069]"),
        ("pass\u200bword", "pass[U+200B]word"),
        ("a\u200db", "a[U+200D]b"),
        ("\ufeffx\x00y\x1bz", "[U+FEFF]x[U+0000]y[U+001B]z"),
        ("\U000e0041", "[U+E0041]"),
        ("a\u2028b\r\nc\rd", "a\nb\nc\nd"),
    ],
)
def test_hidden_characters_are_shown_by_their_number(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "tab\tand\nline",
        FAMILY,
        FAMILY * 50,
        ENGLAND,
        "\u0645\u06cc\u200c\u062e\u0648",
        "שלום",
        "日本",
        "é",
    ],
)
def test_what_scripts_and_emoji_need_stays(text: str) -> None:
    assert visible(text) == text


@given(st.text())
def test_places_and_text_agree(text: str) -> None:
    text = text.replace("\r", "").replace("\u2028", "").replace("\u2029", "").replace("\x85", "")
    shown, at = "", 0
    for start, end, instead in suspects(text):
        shown += text[at:start] + instead
        at = end
    assert shown + text[at:] == visible(text)


@given(st.text(), st.integers(4, 50))
def test_long_lines_are_cut_and_nothing_else(text: str, limit: int) -> None:
    cut = cut_long_lines(text, limit)
    assert cut.replace("\n", "") == text.replace("\n", "")
    assert all(len(line) <= 3 * limit for line in cut.split("\n"))


def test_a_line_is_cut_at_a_space_and_not_inside_an_emoji() -> None:
    assert cut_long_lines("aaaa bbbb cccc", 10) == "aaaa bbbb \ncccc"
    assert FAMILY in cut_long_lines("x" * 8 + FAMILY + "y" * 20, 10).replace("x", "").split("\n")[0]


def test_a_title_is_one_line() -> None:
    assert one_line(" a\n\tb\u202e ") == "a b[U+202E]"


@pytest.mark.parametrize(
    "address", ["https://example.org", "http://127.0.0.1:80/x?y#z", "HTTP://a"]
)
def test_web_addresses_can_be_opened(address: str) -> None:
    assert openable(address)


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\nscript:x",
        "data:text/html,<script>", "file:///etc/passwd", "//share/x", "\\\\share\\x", "C:\\x.exe",
        "vbscript:x", "ms-msdt:/id", "mailto:a@b.c", "ftp://a", "relative/x", "#top", "", "http:",
        "http://", "https:///x", "http://[bad", "http://a:99999999", "about:blank", "x://y",
    ],
)  # fmt: skip
def test_nothing_else_can(address: str) -> None:
    assert not openable(address)

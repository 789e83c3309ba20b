"""Markdown becomes blocks while it grows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.chat.blocks import LARGEST, LARGEST_CODE, Block, BlockSplitter, split

LINES = st.sampled_from(
    [
        "", " ", "text", "more *text* here", "# head", "- item", "  - inner", "1. one", "   para",
        "```", "```python", "~~~", "````", "   ```js", "    code", "| a | b |", "|---|---|",
        "| 1 | 2 |", "> quote", "`a` ``` b", "---", "\tx", "é 日本", "``", "a" * 300,
    ]
)  # fmt: skip
TEXTS = st.lists(LINES, max_size=30).map("\n".join)


@given(TEXTS, st.data())
def test_how_a_text_is_cut_into_pieces_makes_no_difference(text: str, data: st.DataObject) -> None:
    splitter = BlockSplitter()
    seen: list[Block] = []
    start = 0
    while start < len(text):
        size = data.draw(st.integers(1, 40))
        first = splitter.feed(text[start : start + size])
        start += size
        # whoever draws only what is said to have changed shows everything there is
        assert seen[:first] == splitter.blocks[:first]
        seen = list(splitter.blocks)
        assert all(block.closed for block in seen[:-1])
    first = splitter.finish()
    assert seen[:first] == splitter.blocks[:first]
    assert splitter.blocks == split(text)


@given(TEXTS)
def test_no_word_is_lost(text: str) -> None:
    shown = " ".join(block.language + " " + block.text for block in split(text))
    for word in ("text", "item", "inner", "quote", "日本"):
        assert shown.count(word) == text.count(word)


def test_fences_prose_and_language() -> None:
    blocks = split("Look:\n\n```Python title=x\na = 1\n\nb\n```\nDone.")
    assert [(b.kind, b.language, b.text) for b in blocks] == [
        ("prose", "", "Look:"),
        ("code", "python", "a = 1\n\nb"),
        ("prose", "", "Done."),
    ]


def test_code_within_a_list_is_code_and_what_follows_is_no_indented_code() -> None:
    blocks = split("1. Do\n   ```sh\n   ls\n     -l\n   ```\n   then\n2. Next")
    assert [(b.kind, b.text) for b in blocks] == [
        ("prose", "1. Do"),
        ("code", "ls\n  -l"),
        ("prose", "then\n2. Next"),
    ]


def test_a_longer_fence_holds_a_shorter_one() -> None:
    assert [b.text for b in split("````\n```\nx\n```\n````")] == ["```\nx\n```"]


@pytest.mark.parametrize("text", ["```py\nx = 1", "```py\nx = 1\n``"])
def test_an_unclosed_fence_is_code_to_the_end(text: str) -> None:
    (block,) = split(text)
    assert block.kind == "code"
    assert block.text.startswith("x = 1")


def test_a_closing_fence_that_is_still_coming_is_not_shown_as_code() -> None:
    splitter = BlockSplitter()
    splitter.feed("```\nx\n``")
    assert splitter.blocks[-1].text == "x"
    splitter.feed("` y")
    assert splitter.blocks[-1].text == "x\n``` y"


def test_a_list_with_blank_lines_stays_one_list() -> None:
    assert [b.text for b in split("- a\n\n- b\n\n  more\n\nend")] == ["- a\n\n- b\n\n  more", "end"]


@pytest.mark.parametrize("line", ["word " * 200_000, "x" * 1_000_000])
def test_an_endless_line_comes_in_pieces(line: str) -> None:
    blocks = split(line)
    assert max(len(b.text) for b in blocks) <= LARGEST
    assert "".join(b.text for b in blocks) == line


def test_an_endless_table_keeps_its_head() -> None:
    blocks = split("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 3000)
    assert len(blocks) > 1
    assert all(b.text.startswith("| a | b |\n|---|---|\n| 1") for b in blocks)


def test_endless_code_is_cut_and_stays_code() -> None:
    blocks = split("```c\n" + "int x;\n" * 20_000 + "```")
    assert {(b.kind, b.language) for b in blocks if b.text} == {("code", "c")}
    assert max(len(b.text) for b in blocks) <= LARGEST_CODE + 10

import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console

from fleetapp.cli.view import MarkdownView, _Tail, safe_markdown, split_finished

BLOCKS = st.sampled_from(
    [
        "# Title",
        "text *and* more",
        "- a\n- b",
        "1. x\n\n2. y",
        "```py\ncode\n\nmore\n```",
        "> quote",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "<div>\nraw\n</div>",
        "---",
        "    indented",
        "```\nopen",
        "[ref]: http://x",
        "Title\n---",
        "日本 👩‍👩‍👧",
    ]
)


def shown(text: str, width: int = 60) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(safe_markdown(text))
    return out.getvalue()


@example(blocks=["# Title", "1. x\n\n2. y"], cuts=[1, 3, 12])
@given(blocks=st.lists(BLOCKS, max_size=6), cuts=st.lists(st.integers(1, 12), max_size=60))
@settings(max_examples=150, deadline=None)
def test_streaming_shows_what_the_whole_shows(blocks: list[str], cuts: list[int]) -> None:
    text = "\n\n".join(blocks)
    done, tail, at = "", "", 0
    for cut in [*cuts, len(text)]:
        tail += text[at : at + cut]
        at += cut
        finished, tail = split_finished(tail)
        done += finished
    assert done + tail == text
    assert kinds(done) + kinds(tail) == kinds(text)


def kinds(text: str) -> list[str]:
    return [token.type for token in safe_markdown(text).parsed]


def test_blocks_are_given_up_only_when_they_cannot_change() -> None:
    assert split_finished("a paragraph\n\nthat") == ("a paragraph\n\n", "that")
    assert split_finished("```\na\n\nb") == ("", "```\na\n\nb")
    assert split_finished("- a\n\n- b\n") == ("", "- a\n\n- b\n")
    assert split_finished("1. a\n\n2") == ("", "1. a\n\n2")
    assert split_finished("# A\n\n1. a\n\n2") == ("# A\n\n", "1. a\n\n2")
    assert split_finished("1. a\n\nno\n") == ("1. a\n\n", "no\n")


def test_html_is_shown_and_not_left_out() -> None:
    assert "<b>bold</b>" in shown("a <b>bold</b> word")
    assert "<script>alert(1)</script>" in shown("<script>alert(1)</script>")


def test_addresses_are_visible_and_no_terminal_link_hides_them() -> None:
    out = io.StringIO()
    Console(file=out, width=80, force_terminal=True).print(safe_markdown("[bank](http://evil.x)"))
    assert "http://evil.x" in out.getvalue()
    assert "\x1b]8" not in out.getvalue()


def streamed(pieces: list[str], height: int = 10) -> str:
    out = io.StringIO()
    console = Console(file=out, width=60, height=height, force_terminal=True, color_system=None)
    with MarkdownView(console) as view:
        for piece in pieces:
            view.add(piece)
    return out.getvalue()


def test_every_block_is_printed_and_escapes_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    text = "# One\n\ntwo \x1b[31mred\x9b\n\n- three\n- four\n\n```\nfive\n```\n"
    seen = streamed([text[i : i + 4] for i in range(0, len(text), 4)])
    for word in ("One", "two ␛[31mred�", "three", "four", "five"):
        assert word in seen
    assert "\x1b[31m" not in seen
    assert seen.endswith("\n")


def test_a_block_taller_than_the_screen_is_whole_in_the_end() -> None:
    lines = [f"line {i}\n" for i in range(100)]
    seen = streamed(["```\n", *lines, "```"])
    final = seen[seen.rindex("line 0 ") :]
    assert all(f"line {i}" in final for i in range(100))


def test_the_cursor_waits_on_a_line_of_its_own() -> None:
    """The terminal echoes Ctrl+C where the cursor is; in the last column it would wrap."""
    console = Console(file=io.StringIO(), width=10, height=20, force_terminal=True)
    full, last = console.render_lines(_Tail("ten column"), pad=False)
    assert sum(segment.cell_length for segment in full) == 10
    assert last == []

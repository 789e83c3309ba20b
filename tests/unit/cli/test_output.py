import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.cli import output


@given(text=st.text(st.characters()))
def test_nothing_that_steers_a_terminal_gets_through(text: str) -> None:
    shown = output.clean(text)
    assert all(c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs") for c in shown)
    assert not set(shown) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068")
    shown.encode("utf-8")


@given(text=st.text(), at=st.integers(0, 50))
def test_pieces_are_cleaned_like_the_whole(text: str, at: int) -> None:
    assert output.clean(text[:at]) + output.clean(text[at:]) == output.clean(text)


@given(text=st.text())
def test_one_line_is_one_line(text: str) -> None:
    assert len(output.one_line(text).split("\n")) == 1


@pytest.mark.parametrize(
    "harmless", ["plain", "日本 👩‍👩‍👧", "a\tb\nc", "é ü", "שלום", "\u200f\u200e"]
)
def test_what_is_harmless_stays(harmless: str) -> None:
    assert output.clean(harmless) == harmless


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**40 * 3, "3.0 TiB")]
)
def test_sizes(count: int, text: str) -> None:
    assert output.size(count) == text

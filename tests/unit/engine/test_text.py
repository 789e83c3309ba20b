"""Streaming text and stop strings over byte-level detokenizers of both kinds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fleetapp.engine.detokenize import StreamDecoder
from fleetapp.engine.text import StopMatcher
from fleetapp.errors import BadRequest
from tests.support.fake_text import decode_bytes, decode_bytes_replacing

Decode = Callable[[list[int]], str]

SPECIAL = 256

texts = st.lists(
    st.one_of(
        st.characters(codec="utf-8"), st.sampled_from(["👩‍👩‍👧", "日", "é", "\ufffd", " ", "\n"])
    ),
    max_size=40,
).map("".join)
ids_of_text = texts.map(lambda t: list(t.encode()))
any_ids = st.lists(st.integers(0, SPECIAL + 3), max_size=120)


def cleaning(decode: Decode) -> Decode:
    """As Hugging Face's clean_up_tokenization_spaces does."""

    def clean(ids: list[int]) -> str:
        text = decode(ids)
        for old in (" .", " ?", " !", " ,"):
            text = text.replace(old, old[1])
        text = text.replace(" ' ", "'")
        for old in (" n't", " 'm", " 's", " 've", " 're"):
            text = text.replace(old, old[1:])
        return text

    return clean


def strips_leading_space(ids: list[int]) -> str:
    """As SentencePiece does: one space at the beginning of a text is not part of it."""
    return decode_bytes(ids).removeprefix(" ")


def pieces(decode: Decode, ids: list[int], **kwargs: bool) -> list[str]:
    decoder = StreamDecoder(decode, **kwargs)
    shown = [decoder.push(i) for i in ids]
    shown.append(decoder.flush())
    assert decoder.flush() == ""
    return shown


@pytest.mark.parametrize("decode", [decode_bytes, decode_bytes_replacing])
def test_half_a_character_is_never_shown(decode: Decode) -> None:
    shown = pieces(decode, list("👩‍👩‍👧 日本".encode()))
    assert "".join(shown) == "👩‍👩‍👧 日本"
    assert "\ufffd" not in "".join(shown)
    assert [p for p in shown if p] == list("👩‍👩‍👧 日本")


@pytest.mark.parametrize("decode", [decode_bytes, decode_bytes_replacing, strips_leading_space])
@given(ids=ids_of_text, copies=st.integers(1, 8))
@example(ids=[32, 32, 32, 97], copies=1)
@example(ids=list("x \ufffd\ufffd\ufffd\ufffd\ufffd y".encode()), copies=3)
def test_what_was_streamed_equals_the_full_decode(
    decode: Decode, ids: list[int], copies: int
) -> None:
    ids = ids * copies
    assert "".join(pieces(decode, ids)) == decode(ids)


@given(ids=any_ids, copies=st.integers(1, 5))
def test_invalid_bytes_and_special_tokens_change_nothing_of_that(
    ids: list[int], copies: int
) -> None:
    ids = ids * copies
    assert "".join(pieces(decode_bytes, ids)) == decode_bytes(ids)


@given(
    words=st.lists(
        st.sampled_from(
            ["do", " n't", " n", "'t", " '", " 's", " 'v", "e", " ,", " .", " ", "a b"]
        ),
        max_size=80,
    )
)
def test_spaces_that_a_detokenizer_removes_are_not_shown_first(words: list[str]) -> None:
    text = "".join(words)
    vocabulary = sorted(set(words))
    ids = [vocabulary.index(w) for w in words]
    decode = cleaning(lambda ids: "".join(vocabulary[i] for i in ids).encode().decode())
    if " ' " in text:
        return  # its rules then undo one another, and no stream can know
    assert "".join(pieces(decode, ids, cleans_up=True)) == decode(ids)


def test_a_written_replacement_character_is_shown_with_what_follows_or_at_the_end() -> None:
    shown = pieces(decode_bytes_replacing, list("a\ufffdb\ufffd".encode()))
    assert "".join(shown[:-1]) == "a\ufffdb"
    assert shown[-1] == "\ufffd"


def test_an_endless_row_of_replacement_characters_is_not_held_for_ever() -> None:
    decoder = StreamDecoder(decode_bytes_replacing)
    shown = "".join(decoder.push(i) for i in "\ufffd".encode() * 50)
    assert len(shown) >= 47


@pytest.mark.parametrize("text", ["word ", "  \n", "日", "\ufffd"])
def test_the_work_per_token_does_not_grow_with_the_answer(text: str) -> None:
    longest = 0

    def decode(ids: list[int]) -> str:
        nonlocal longest
        longest = max(longest, len(ids))
        return decode_bytes(ids)

    decoder = StreamDecoder(decode)
    shown = "".join([decoder.push(i) for i in text.encode() * 2000]) + decoder.flush()
    assert shown == text * 2000
    assert longest <= 256


def test_tokens_without_any_text_do_not_make_the_work_grow() -> None:
    sizes: list[int] = []

    def decode(ids: list[int]) -> str:
        sizes.append(len(ids))
        return decode_bytes(ids)

    decoder = StreamDecoder(decode)
    for _ in range(2000):
        assert decoder.push(SPECIAL) == ""
    assert max(sizes) <= 256


# -- stop strings ------------------------------------------------------------------------------


def matched(stops: tuple[str, ...], chunks: list[str]) -> tuple[list[str], bool]:
    matcher = StopMatcher(stops)
    shown = [matcher.push(c) for c in chunks]
    shown.append(matcher.flush())
    assert matcher.flush() == ""
    return shown, matcher.stopped


def test_a_stop_string_over_three_tokens_is_held_back_and_cut() -> None:
    shown, stopped = matched(("\n\nUser:",), ["Paris.", "\n", "\nUs", "er: more"])
    assert shown == ["Paris.", "", "", "", ""]
    assert stopped


def test_one_that_never_completes_is_shown_after_all() -> None:
    shown, stopped = matched(("\n\nUser:",), ["Paris.\n", "\nUs", "ually"])
    assert shown == ["Paris.", "", "\n\nUsually", ""]
    assert not stopped


def test_what_is_held_when_the_end_comes_is_flushed() -> None:
    assert matched(("\n\nUser:",), ["Paris.\n\nUse"]) == (["Paris.", "\n\nUse"], False)


def test_the_longest_possible_prefix_is_held_not_more() -> None:
    shown, _ = matched(("aab",), ["xaaa"])
    assert shown == ["xa", "aa"]


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(BadRequest):
        StopMatcher(("a", ""))


def first_end(text: str, stops: tuple[str, ...]) -> int | None:
    """Where the text is cut: before the longest of the stop strings completed first."""
    for end in range(1, len(text) + 1):
        lengths = [len(s) for s in stops if text[:end].endswith(s)]
        if lengths:
            return end - max(lengths)
    return None


@given(
    st.lists(st.text("ab\n", min_size=1, max_size=5), max_size=3).map(tuple),
    st.lists(st.text("ab\nc", max_size=4), max_size=20),
)
def test_however_the_text_is_cut_the_same_is_shown(
    stops: tuple[str, ...], chunks: list[str]
) -> None:
    text = "".join(chunks)
    cut = first_end(text, stops)
    shown, stopped = matched(stops, chunks)
    assert stopped == (cut is not None)
    assert "".join(shown) == (text if cut is None else text[:cut])


@given(
    st.lists(st.text("ab", min_size=1, max_size=5), min_size=1, max_size=3).map(tuple),
    st.lists(st.text("abc", min_size=1, max_size=3), max_size=20),
)
def test_nothing_is_held_that_could_not_become_a_stop_string(
    stops: tuple[str, ...], chunks: list[str]
) -> None:
    matcher = StopMatcher(stops)
    so_far = shown = ""
    for chunk in chunks:
        so_far += chunk
        shown += matcher.push(chunk)
        if matcher.stopped:
            return
        held = so_far[len(shown) :]
        assert so_far.startswith(shown)
        assert held == "" or any(s.startswith(held) for s in stops)

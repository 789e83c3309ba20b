"""Text out of a table equals the detokenizer's, whatever the model writes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fleetapp.engine.detokenize import WAYS, Table, TableDecoder, learn
from tests.support.fake_text import VOCABULARY, decode_bytes_replacing

BYTES = tuple(bytes([i]) for i in range(256))
HALF_SURROGATE, TOO_LARGE = b"\xed\xa0\x80", b"\xf4\x90\x80\x80"


def validated(ids: list[int]) -> str:
    """OpenVINO's UTF8Validate, seen: lenient about surrogates, else invalid bytes are left out."""
    data, text, at = bytes(i for i in ids if i < 256), "", 0
    while at < len(data):
        first = data[at]
        size = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
        char = data[at : at + size]
        lowest = {1: 0, 2: 0xC280, 3: 0xE0A080, 4: 0xF0908080}[size]
        sound = first not in range(0x80, 0xC2) and first <= 0xF4 and len(char) == size
        sound = sound and all(0x80 <= b < 0xC0 for b in char[1:])
        if sound and int.from_bytes(char, "big") >= lowest:
            text += char.decode("utf-8", "replace")
            at += size
        else:
            at += 1
    return text


def streamed(table: Table, ids: list[int]) -> str:
    decoder = TableDecoder(table)
    return "".join([decoder.push(i) for i in ids]) + decoder.flush()


ids_of_bytes = st.lists(
    st.one_of(
        st.integers(0, 300).map(lambda i: [i]),
        st.sampled_from("aé日👩 \ufffd").map(lambda c: list(c.encode())),
        st.sampled_from([HALF_SURROGATE, TOO_LARGE, b"\xe0\x80\x80", b"\xe6\x97"]).map(list),
    ),
    max_size=20,
).map(lambda parts: [i for part in parts for i in part])


@given(ids_of_bytes)
@example([*HALF_SURROGATE, *TOO_LARGE, *b"\xed\xed\xa0\x80", *b"\xf4\x90\x80"])
def test_a_detokenizer_that_leaves_invalid_bytes_out_is_learnt(ids: list[int]) -> None:
    table = learn(validated, VOCABULARY, [list("día".encode())])
    assert table is not None
    assert table.way == WAYS[0]
    assert streamed(table, ids) == validated(ids)


@given(st.lists(st.binary(max_size=5), max_size=12))
def test_how_bytes_are_cut_into_tokens_does_not_matter(parts: list[bytes]) -> None:
    for way in WAYS:
        whole = Table((b"".join(parts),), way, strips=False)
        pieces = Table(tuple(parts), way, strips=False)
        assert pieces.decode(range(len(parts))) == whole.decode([0])


def test_one_space_at_the_beginning_can_be_left_out() -> None:
    def strips(ids: list[int]) -> str:
        return validated(ids).removeprefix(" ")

    table = learn(strips, VOCABULARY, [list(b"  two")])
    assert table is not None
    assert table.decode(b"  two") == " two"


@pytest.mark.parametrize("odd", [str.upper, str.strip, lambda text: text.replace(" .", ".")])
def test_a_detokenizer_that_does_more_is_not_believed(odd) -> None:
    assert learn(lambda ids: odd(validated(ids)), VOCABULARY, [list(b" what . is this ")]) is None


def test_characters_are_shown_when_their_last_byte_is_there() -> None:
    decoder = TableDecoder(Table(BYTES, WAYS[0], strips=False))
    assert [decoder.push(b) for b in "日a".encode()] == ["", "", "日", "a"]
    assert decoder.push(0xE6) == ""
    assert decoder.flush() == ""
    with pytest.raises(RuntimeError):
        decoder.push(0)


def test_a_replacing_detokenizer_is_learnt_if_it_can_be() -> None:
    table = learn(decode_bytes_replacing, VOCABULARY, [list(b"abc")])
    if table is not None:
        assert table.decode([0x61, 0xE6, 0x97]) == decode_bytes_replacing([0x61, 0xE6, 0x97])

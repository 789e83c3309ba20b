import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.errors import BadJoinCode
from fleetapp.fleet import joincode
from fleetapp.fleet.joincode import ALPHABET, LENGTH, JoinCode, decode, encode
from fleetapp.fleet.keys import fleet_id_of

codes = st.builds(
    JoinCode, st.binary(min_size=16, max_size=16), st.binary(min_size=10, max_size=10)
)
positions = st.integers(0, LENGTH - 1)


def body(code: JoinCode) -> str:
    return encode(code).removeprefix("FLEET-").replace("-", "")


@given(codes)
def test_what_is_encoded_is_decoded(code: JoinCode) -> None:
    text = encode(code)
    assert decode(text) == code
    assert text.startswith("FLEET-")
    assert len(body(code)) == LENGTH


@given(codes, positions, st.sampled_from(ALPHABET))
def test_any_single_wrong_character_is_noticed(code: JoinCode, at: int, wrong: str) -> None:
    text = body(code)
    if text[at] != wrong:
        with pytest.raises(BadJoinCode):
            decode("FLEET-" + text[:at] + wrong + text[at + 1 :])


@given(codes, st.integers(0, LENGTH - 2))
def test_any_exchange_of_neighbours_is_noticed(code: JoinCode, at: int) -> None:
    text = body(code)
    if text[at] != text[at + 1]:
        swapped = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
        with pytest.raises(BadJoinCode):
            decode("FLEET-" + swapped)


@given(codes, positions)
def test_a_lost_or_doubled_character_is_noticed(code: JoinCode, at: int) -> None:
    text = body(code)
    for wrong in (text[:at] + text[at + 1 :], text[:at] + text[at] + text[at:]):
        with pytest.raises(BadJoinCode):
            decode("FLEET-" + wrong)


@given(codes, st.randoms(use_true_random=False))
def test_case_spaces_dashes_and_look_alikes_do_not_matter(code: JoinCode, random) -> None:
    look_alikes = {"0": "0oO", "1": "1iIlL"}
    noise = ["", "", " ", "-", "\u2013", "\u00ad", "\u200b", "\n", "\u00a0", "\t"]
    mixed = "".join(
        random.choice(look_alikes.get(c, c + c.lower())) + random.choice(noise) for c in body(code)
    )
    assert decode("fleet" + random.choice(noise) + mixed) == code
    assert decode(mixed) == code


@given(st.text(max_size=80))
def test_any_other_text_is_refused_in_words_and_never_repeated(text: str) -> None:
    with pytest.raises(BadJoinCode) as caught:
        decode(text)
    assert caught.value.message.endswith(".")
    assert len(text) < 4 or text not in caught.value.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "begins with FLEET-"),
        ("FLEET-ABC", "3 characters"),
        ("FLEET-" + "U" * LENGTH, "'U'"),
        ("FLEET-" + "0" * 42 + "1", "check character"),
        ("x" * 10_000, "too long"),
    ],
)
def test_the_reason_is_named(text: str, said: str) -> None:
    with pytest.raises(BadJoinCode, match=said):
        decode(text)


def test_a_code_names_its_fleet_and_hides_its_secret_from_logs() -> None:
    spki = "ab" * 32
    code = joincode.new(spki)
    assert code.fleet_id == fleet_id_of(spki)
    assert bytes.fromhex(spki).startswith(code.spki_prefix)
    assert code.secret.hex() not in repr(code)
    assert repr(code.secret) not in repr(code)
    assert joincode.new(spki).secret != code.secret

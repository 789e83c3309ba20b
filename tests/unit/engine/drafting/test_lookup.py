from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from fleetapp.engine.drafting.lookup import Index, Lookup


def after(tokens: list[int], most: int = 5) -> tuple[int, ...]:
    index = Index(tokens)
    while not index.catch_up():
        pass
    return index.propose(most)


def test_what_followed_the_same_words_is_proposed() -> None:
    assert after([1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3], 4) == (4, 5, 6, 7)


def test_the_latest_occurrence_of_words_counts() -> None:
    assert after([1, 2, 50, 9, 1, 2, 60, 9, 1, 2], 1) == (60,)


def test_three_equal_words_count_more_than_two_later_ones() -> None:
    assert after([7, 1, 2, 50, 8, 1, 2, 60, 7, 1, 2], 1) == (50,)


def test_a_match_is_followed_and_grows() -> None:
    index = Index([1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5])
    index.catch_up()
    assert index.matched == 5
    index.extend([6, 7])
    index.catch_up()
    assert (index.matched, index.propose(1)) == (7, (8,))
    index.extend([99])
    index.catch_up()
    assert (index.matched, index.propose(3)) == (0, ())


def test_a_repetition_goes_on_for_ever() -> None:
    assert after([5, 1, 2, 3, 1, 2, 3], 8) == (1, 2, 3, 1, 2, 3, 1, 2)
    assert after([4, 4, 4], 5) == (4, 4, 4, 4, 4)


def test_new_words_give_no_proposal() -> None:
    assert after([1, 2, 3, 4, 5]) == ()
    assert after([]) == ()
    assert after([1]) == ()


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(1, 10), st.data())
def test_a_proposal_is_what_an_earlier_copy_of_the_end_was_followed_by(
    tokens: list[int], most: int, data: st.DataObject
) -> None:
    """However the text arrived: whole or in pieces."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(tokens)), max_size=4)))
    index = Index()
    for a, b in zip([0, *cuts], [*cuts, len(tokens)], strict=True):
        index.extend(tokens[a:b])
        index.catch_up()
    proposed = index.propose(most)
    assert proposed == after(tokens, most)
    pairs = {tuple(tokens[i : i + 2]) for i in range(len(tokens) - 2)}
    assert bool(proposed) == (len(tokens) > 2 and tuple(tokens[-2:]) in pairs)
    if proposed:
        assert len(proposed) == most
        end = tokens[-index.matched :]
        whole = [*tokens, *proposed]
        starts = [
            i
            for i in range(len(tokens) - index.matched)
            if tokens[i : i + index.matched] == end
            and all(whole[i + index.matched + j] == proposed[j] for j in range(most))
        ]
        assert starts


def test_the_work_per_token_does_not_grow_with_the_text() -> None:
    def seconds(length: int) -> float:
        index = Index([i * 7919 % 50021 for i in range(length)])
        while not index.catch_up():
            pass
        best = 1.0
        for round_ in range(5):
            began = time.perf_counter()
            for i in range(200):
                index.extend([i * 31 % 97 + round_])
                index.catch_up()
                index.propose(10)
            best = min(best, time.perf_counter() - began)
        return best

    assert seconds(200_000) < 5 * seconds(500)


def test_a_huge_prompt_is_indexed_piece_by_piece() -> None:
    lookup = Lookup()
    lookup.open("a", [1, 2, 3] * 3000)
    assert lookup.offer("a", 3) is None
    while lookup.idle(1.0):
        pass
    offer = lookup.offer("a", 3)
    assert offer is not None
    assert (offer.most, offer.grade) == (3, "lookup 12+")
    assert lookup.draft({"a": 2, "nobody": 1}) == {"a": (1, 2)}
    lookup.extend("nobody", [1])
    lookup.close("a")
    lookup.close("a")
    assert lookup.offer("a", 3) is None

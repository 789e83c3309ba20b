"""A draft model follows what was chosen, whatever it had drafted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetapp.engine.drafting.model import DraftModel, check_vocabulary
from fleetapp.errors import Unsupported
from fleetapp.models.manifest import Architecture
from tests.support.fake_executor import LAYERS, VOCAB, FakeExecutor, reference


def whole(**more: int) -> FakeExecutor:
    return FakeExecutor(0, LAYERS, **{"blocks": 400, "max_context": 512, **more})


def test_it_drafts_what_its_model_would_say() -> None:
    drafter = DraftModel(whole())
    drafter.open("a", list(b"Hello"))
    drafter.open("b", list(b"another text"))
    assert drafter.draft({"a": 4, "b": 2}) == {
        "a": tuple(reference(list(b"Hello"), 4)),
        "b": tuple(reference(list(b"another text"), 2)),
    }


def test_sequences_are_drafted_in_one_inference_a_round() -> None:
    executor = whole()
    drafter = DraftModel(executor)
    for name in "abc":
        drafter.open(name, list(name.encode()) * 3)
    before = executor.calls
    drafter.draft({"a": 5, "b": 5, "c": 3})
    assert executor.calls - before == 5


@settings(max_examples=60, deadline=None)
@given(
    prompt=st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=200),
    turns=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 7), st.integers(0, 3)), max_size=12),
)
def test_after_any_pattern_of_right_and_wrong_drafts_it_goes_on_from_the_text(
    prompt: list[int], turns: list[tuple[int, int, int]]
) -> None:
    """Each turn: drafts wanted, drafts that turn out right, work done ahead meanwhile."""
    drafter = DraftModel(whole())
    drafter.open("a", prompt)
    text = list(prompt)
    for want, right, ahead in turns:
        offer = drafter.offer("a", want)
        drafts: tuple[int, ...] = ()
        if want and offer is not None:
            for _ in range(10):
                drafts = drafter.draft({"a": want}).get("a", ())
                if drafts:
                    break
            assert list(drafts) == reference(text, want)
        for _ in range(ahead):
            drafter.idle(1e9)
        kept = list(drafts[:right])
        wrong = reference(text + kept, 1)[0]
        chosen = [*kept, wrong if right % 2 else (wrong + 1) % VOCAB]
        text += chosen
        drafter.extend("a", chosen)
    drafter.close("a")


def test_work_ahead_is_free_when_all_drafts_and_the_guess_after_them_are_right() -> None:
    executor = whole()
    drafter = DraftModel(executor)
    drafter.open("a", [1, 2, 3])
    drafter.offer("a", 3)
    drafter.draft({"a": 3})
    while drafter.idle(1e9):
        pass
    text = reference([1, 2, 3], 7)
    drafter.extend("a", text[:4])
    assert drafter.seconds(["a"], 3) == 0.0
    before = executor.calls
    assert drafter.draft({"a": 3}) == {"a": tuple(text[4:7])}
    assert executor.calls == before


def test_nothing_is_done_ahead_that_nobody_wants_or_that_takes_too_long() -> None:
    drafter = DraftModel(whole())
    drafter.open("a", [1, 2, 3])
    assert not drafter.idle(1e9)
    drafter.draft({"a": 2})
    assert not drafter.idle(0.0)
    drafter.offer("a", 3)
    assert not drafter.idle(1e9)


def test_a_long_prompt_is_computed_in_pieces_before_anything_is_drafted() -> None:
    executor = whole()
    drafter = DraftModel(executor)
    drafter.open("a", [7] * 200)
    drafter.open("b", [8] * 5)
    alone = drafter.seconds(["b"], 1)
    assert drafter.seconds(["a"], 1) > alone
    assert set(drafter.draft({"a": 2, "b": 2})) == {"b"}
    for _ in range(2):
        assert drafter.draft({"a": 2}) == {}
    assert drafter.draft({"a": 2}) == {"a": tuple(reference([7] * 200, 2))}


def test_without_room_it_makes_no_offer_and_leaves_no_block_behind() -> None:
    executor = whole(blocks=10, block_size=8, max_context=80)
    drafter = DraftModel(executor)
    drafter.open("a", [1] * 60)
    drafter.open("b", [2] * 60)
    assert drafter.draft({"a": 2})
    assert drafter.draft({"b": 2}) == {}
    assert drafter.offer("b", 2) is None
    drafter.close("a")
    drafter.close("b")
    assert executor.free_blocks == 10


def test_an_offer_ends_with_its_context() -> None:
    drafter = DraftModel(whole(max_context=64))
    drafter.open("a", [1] * 62)
    offer = drafter.offer("a", 5)
    assert offer is not None
    assert offer.most == 2
    assert len(drafter.draft({"a": 2})["a"]) == 2
    drafter.extend("a", [5, 6])
    assert drafter.offer("a", 5) is None


def test_slots_are_taken_again() -> None:
    executor = whole()
    drafter = DraftModel(executor, slots=1)
    for name in ("a", "b", "c"):
        drafter.open(name, [3])
        assert drafter.offer(name, 1) is not None
        assert drafter.draft({name: 1})
        drafter.open("other", [4])
        assert drafter.offer("other", 1) is None
        drafter.close(name)
    assert executor.free_blocks == 400


def architecture(vocab: int, digest: str) -> Architecture:
    return Architecture(
        family="llama",
        layers=2,
        hidden_size=8,
        vocab_size=vocab,
        kv_heads=(1, 1),
        head_sizes=(8, 8),
        context_length=64,
        eos_ids=(0,),
        bos_id=None,
        chat_template=None,
        vocab_digest=digest,
    )


def test_only_the_same_vocabulary_will_do() -> None:
    check_vocabulary(architecture(10, "d"), architecture(10, "d"))
    for other in (architecture(11, "d"), architecture(10, "e"), architecture(10, "")):
        with pytest.raises(Unsupported) as error:
            check_vocabulary(architecture(10, "d"), other)
        assert "lookup" in error.value.remedy


def test_a_part_of_a_model_cannot_draft() -> None:
    with pytest.raises(Unsupported):
        DraftModel(FakeExecutor(0, 3))

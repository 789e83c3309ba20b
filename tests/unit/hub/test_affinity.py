"""A conversation goes where its history is, unless that place is much busier."""

from hypothesis import given
from hypothesis import strategies as st

from fleetapp.engine.pipe import ChatMessage, Generate
from fleetapp.hub.affinity import SLACK, Affinity, names
from fleetapp.types import SamplingParams


def chat(*turns: str) -> Generate:
    messages = tuple(
        ChatMessage("user" if i % 2 == 0 else "assistant", t) for i, t in enumerate(turns)
    )
    return Generate("r", SamplingParams(), messages=messages)


def test_a_later_turn_shares_the_names_of_the_turns_before() -> None:
    first, later = names(chat("a", "b", "c")), names(chat("a", "b", "c", "d", "e"))
    assert later[:3] == first
    assert names(chat("a", "x", "c"))[0] == first[0]
    assert names(chat("a", "x", "c"))[1:] != first[1:]


def test_borders_between_messages_count() -> None:
    assert names(chat("ab", "c"))[-1] != names(chat("a", "bc"))[-1]


def test_raw_prompts_and_token_ids_are_named_by_stretches() -> None:
    long = Generate("r", SamplingParams(), prompt="x" * 3000)
    longer = Generate("r", SamplingParams(), prompt="x" * 3000 + "y" * 3000)
    assert names(longer)[:2] == names(long)[:2]
    ids = Generate("r", SamplingParams(), token_ids=tuple(range(3000)))
    assert len(names(ids)) == 3


def test_the_longest_known_beginning_decides() -> None:
    places = ("one", "two")
    memory: Affinity[str] = Affinity()
    memory.note(names(chat("system")), "one")
    memory.note(names(chat("system", "b", "c")), "two")
    load = {"one": 0, "two": 1}.__getitem__
    assert memory.choose(names(chat("system", "b", "c", "d", "e")), places, load) == "two"
    assert memory.choose(names(chat("other")), places, load) == "one"


def test_a_much_busier_place_is_not_preferred() -> None:
    memory: Affinity[str] = Affinity()
    memory.note(names(chat("a")), "two")
    assert (
        memory.choose(names(chat("a")), ("one", "two"), {"one": 0, "two": SLACK}.__getitem__)
        == "two"
    )
    busy = {"one": 0, "two": SLACK + 1}
    assert memory.choose(names(chat("a")), ("one", "two"), busy.__getitem__) == "one"


def test_a_place_that_is_gone_is_not_chosen() -> None:
    memory: Affinity[str] = Affinity()
    memory.note(names(chat("a")), "gone")
    assert memory.choose(names(chat("a")), ("here",), lambda _: 9) == "here"


@given(st.lists(st.tuples(st.integers(0, 50), st.sampled_from("xyz")), max_size=200))
def test_it_remembers_no_more_than_it_may(notes: list[tuple[int, str]]) -> None:
    memory: Affinity[str] = Affinity(remembered=10)
    for number, place in notes:
        memory.note(names(chat(str(number))), place)
    assert len(memory._places) <= 10
    if notes:
        number, place = notes[-1]
        assert memory.choose(names(chat(str(number))), tuple("xyz"), lambda _: 0) == place

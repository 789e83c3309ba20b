"""What was shown of an answer depends on the ids that were named, and on nothing else."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from fleetapp.engine.answer import Answer
from fleetapp.engine.detokenize import StreamDecoder, Table, TableDecoder, TextStream
from fleetapp.engine.logprobs import Reporter
from fleetapp.engine.pipe import Delta, Generate
from fleetapp.engine.scheduler import Chosen
from fleetapp.engine.text import StopMatcher
from fleetapp.engine.vocabulary import Vocabulary
from fleetapp.types import SamplingParams

WORDS = (
    b"a", b"b", b"ab", b" ", b"\n", b"\n\n", b"\nU", b"User:", b"x\n", b"", b"\xe6\x97\xa5",
    b"\xe6", b"\x97", b"\xa5", b"\xa5\xe6", b"\x97\xa5a", b"\xf0\x9f", b"\x98\x80", b"\xff",
    b"\x80\n", b"<end>",
)  # fmt: skip
VOCABULARY = Vocabulary(WORDS, frozenset({len(WORDS) - 1}))
STOPS = ("\n\nUser:", "aab", "b\n", "日a", "\n\n\n")


def _decode(how: str) -> Callable[[list[int]], str]:
    return lambda ids: b"".join(map(VOCABULARY.text, ids)).decode("utf-8", how)


DECODERS: dict[str, Callable[[], TextStream]] = {
    "left out": lambda: StreamDecoder(_decode("ignore")),
    "replaced": lambda: StreamDecoder(_decode("replace")),
    "table": lambda: TableDecoder(
        Table(tuple(map(VOCABULARY.text, range(len(WORDS)))), "fleetapp.replaced", strips=False)
    ),
}


def fresh(decoder: str, stops: tuple[str, ...], *, logprobs: bool) -> Answer:
    request = Generate("a", SamplingParams(stop=stops), prompt="x")
    answer = Answer(1, request, DECODERS[decoder](), StopMatcher(stops), 0.0, 60.0)
    answer.reporter = Reporter(VOCABULARY) if logprobs else None
    return answer


def commit(answer: Answer, token: int, index: int) -> None:
    answer.commit(Chosen("a", token, index, -0.5 * index), float(index), silent=False)


@settings(max_examples=250, deadline=None)
@given(
    decoder=st.sampled_from(sorted(DECODERS)),
    stops=st.lists(st.sampled_from(STOPS), max_size=2, unique=True).map(tuple),
    logprobs=st.booleans(),
    tokens=st.lists(st.integers(0, len(WORDS) - 1), min_size=1, max_size=40),
    pauses=st.sets(st.integers(0, 39)),
    data=st.data(),
)
def test_a_stream_joins_wherever_it_is_cut(
    decoder: str,
    stops: tuple[str, ...],
    logprobs: bool,
    tokens: list[int],
    pauses: set[int],
    data: st.DataObject,
) -> None:
    """One head says some of it, whenever it finds time; another goes on from what was named."""
    whole = fresh(decoder, stops, logprobs=logprobs)
    for i, token in enumerate(tokens):
        commit(whole, token, i)
    everything = whole.last_words()
    assert everything is not None

    first = fresh(decoder, stops, logprobs=logprobs)
    sent: list[Delta] = []
    for i, token in enumerate(tokens):
        commit(first, token, i)
        if i in pauses or (stops and not first.stops.stopped):
            sent += [d for d in [first.say()] if d is not None]
    cut = data.draw(st.integers(0, len(sent)))
    said = [i for d in sent[:cut] for i in d.token_ids]

    second = fresh(decoder, stops, logprobs=logprobs)
    for token in said:
        second.recall(token, silent=False)
    for i, token in enumerate(tokens[len(said) :], len(said)):
        commit(second, token, i)
    rest = second.last_words()
    joined = [*sent[:cut], *([rest] if rest is not None else [])]
    assert "".join(d.text for d in joined) == everything.text
    assert tuple(i for d in joined for i in d.token_ids) == everything.token_ids
    assert [r for d in joined for r in d.logprobs] == list(everything.logprobs)


def test_what_a_stop_string_swallows_in_the_end_is_not_reported_before() -> None:
    """ "aaab" and a stop of "aab": when the first letter is safe two tokens are still in doubt."""
    answer = fresh("table", ("aab",), logprobs=True)
    deltas = []
    for i, token in enumerate([0, 0, 0, 1]):
        commit(answer, token, i)
        deltas.append(answer.say())
    deltas.append(answer.last_words())
    shown = [d for d in deltas if d is not None]
    assert answer.stops.stopped
    assert "".join(d.text for d in shown) == "a"
    assert [i for d in shown for i in d.token_ids] == [0, 0, 0, 1]
    assert [r.token for d in shown for r in d.logprobs] == [0]

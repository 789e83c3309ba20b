"""Grammars over a vocabulary of single bytes, and some longer tokens."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetapp.engine.grammar import GrammarHost, Matching, check
from fleetapp.engine.sampling import Context, NoGrammars, verify
from fleetapp.engine.vocabulary import Vocabulary
from fleetapp.errors import BadRequest, FleetError, Unsupported
from fleetapp.types import Grammar, SamplingParams

EOS = frozenset({256, 257})
LONGER = [b'{"', b'": ', b'", "', b"true", b"12", b"ab", b'"}', " é".encode(), b"\xc3"]
VOCABULARY = Vocabulary(
    (*(bytes([i]) for i in range(256)), b"<end>", b"<stop>", b"<other>", *LONGER),
    frozenset({256, 257, 258}),
)
V = 280
"""Some logits have no token, as in padded models."""
HOST = GrammarHost(lambda: VOCABULARY, EOS, V)

names = st.sampled_from(["a", "b", "name", "é"])
values = st.recursive(
    st.one_of(
        st.just({"type": "boolean"}),
        st.just({"type": "null"}),
        st.just({"type": "integer", "minimum": 0, "maximum": 120}),
        st.just({"enum": ["x", "yes", "é", 7]}),
        st.just({"type": "string", "maxLength": 4}),
        st.just({"type": "string", "pattern": "^[a-c]{1,3}$"}),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.integers(0, 3)).map(
            lambda t: {"type": "array", "items": t[0], "maxItems": t[1]}
        ),
        st.dictionaries(names, inner, min_size=1, max_size=3).map(
            lambda p: {
                "type": "object",
                "properties": p,
                "required": sorted(p),
                "additionalProperties": False,
            }
        ),
    ),
    max_leaves=4,
)


def write(grammar: Grammar, seed: int, limit: int = 2000) -> list[int]:
    """What a model without any sense writes: random logits, until an end-of-sequence token."""
    params = SamplingParams(temperature=1.0, seed=seed, grammar=grammar)
    context = Context(params, (1, 2), 0, HOST(grammar))
    rng = np.random.default_rng(seed)
    answer: list[int] = []
    while len(answer) < limit:
        row = rng.standard_normal((1, V)).astype(np.float32)
        (choice,) = verify(row, (), context, 2 + len(answer))
        answer.append(choice.token)
        if choice.token in EOS:
            return answer
    raise AssertionError("it never ends")


def text_of(answer: list[int]) -> str:
    return b"".join(VOCABULARY.text(t) for t in answer).decode()


def fits(value: object, schema: dict) -> bool:
    """Whether a value follows one of the schemas above."""
    match schema:
        case {"enum": allowed}:
            return value in allowed
        case {"type": "array"}:
            assert isinstance(value, list)
            return len(value) <= schema["maxItems"] and all(fits(v, schema["items"]) for v in value)
        case {"type": "object"}:
            assert isinstance(value, dict)
            properties = schema["properties"]
            return value.keys() == properties.keys() and all(
                fits(v, properties[k]) for k, v in value.items()
            )
        case {"type": "string", "pattern": pattern}:
            return re.search(pattern, value) is not None
        case {"type": "string"}:
            return isinstance(value, str) and len(value) <= 4
        case {"type": "integer"}:
            return type(value) is int and 0 <= value <= 120
        case {"type": "boolean"}:
            return isinstance(value, bool)
        case _:
            return value is None


@given(values, st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_whatever_the_model_likes_the_answer_follows_the_schema(schema: dict, seed: int) -> None:
    grammar = Grammar("json_schema", json.dumps(schema))
    check(grammar)
    assert fits(json.loads(text_of(write(grammar, seed))), schema)


@pytest.mark.parametrize(
    "pattern",
    [
        r"[0-9]{3}-[a-f]{2,4}",
        r"(yes|no|vielleicht)!?",
        r"a/b\n?c",
        r"[é日]{2}",
        r"x*",
        r"^ab$",
        "a\nb",
        "c|",
    ],
)
def test_whatever_the_model_likes_the_answer_matches_the_pattern(pattern: str) -> None:
    grammar = Grammar("regex", pattern)
    check(grammar)
    for seed in range(20):
        assert re.fullmatch(pattern, text_of(write(grammar, seed)))


@given(values, st.integers(0, 2**32), st.data())
@settings(max_examples=60, deadline=None)
def test_drafts_change_nothing_under_a_grammar(schema: dict, seed: int, data) -> None:
    grammar = Grammar("json_schema", json.dumps(schema))
    answer = write(grammar, seed)
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.standard_normal(V).astype(np.float32) for _ in range(len(answer) + 8)])
    params = SamplingParams(temperature=1.0, seed=seed, grammar=grammar)
    context = Context(params, (1, 2), 0, HOST(grammar))
    got: list[int] = []
    while len(got) < len(answer):
        k = data.draw(st.integers(0, 6))
        drafts = answer[len(got) : len(got) + k]
        if drafts and data.draw(st.booleans()):
            wrong = data.draw(st.integers(0, len(drafts) - 1))
            drafts[wrong] = data.draw(st.integers(0, V - 1))
        logits = rows[len(got) : len(got) + len(drafts) + 1]
        got += [c.token for c in verify(logits, drafts, context, 2 + len(got))]
    assert got[: len(answer)] == answer
    # preempted somewhere: opened anew with what has been said, and computed again
    cut = data.draw(st.integers(0, len(answer) - 1))
    again = Context(params, (1, 2, *answer[:cut]), cut, HOST(grammar))
    (choice,) = verify(rows[cut : cut + 1], (), again, 2 + cut)
    assert choice.token == answer[cut]
    # rewound over the end
    (choice,) = verify(rows[cut : cut + 1], (), context, 2 + cut)
    assert choice.token == answer[cut]


def test_after_the_end_nothing_but_the_end_follows() -> None:
    grammar = Grammar("regex", "a")
    context = Context(SamplingParams(grammar=grammar), (1,), 0, HOST(grammar))
    rows = np.zeros((4, V), np.float32)
    tokens = [verify(rows[:1], (), context, 1 + i)[0].token for i in range(4)]
    assert tokens == [ord("a"), 256, 256, 256]
    # several at once, rewound to before the end
    assert [c.token for c in verify(rows, (ord("a"), 256, 256), context, 1)] == tokens


def test_json_takes_little_white_space() -> None:
    grammar = Grammar("json_schema", '{"type": "array", "items": {"type": "null"}}')
    matching = HOST(grammar)
    spaces = np.full(V, -9, np.float32)
    spaces[[32, 10, 13, 9]] = 9
    said = []
    for _ in range(60):
        row = matching.mask(spaces)
        token = int(row.argmax())
        said.append(token)
        matching.push(token)
        if token in EOS:
            break
    assert said[-1] in EOS
    assert json.loads(text_of(said)) == []


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("json_schema", "nope", "not valid JSON"),
        ("json_schema", "[1]", "not a JSON object"),
        ("json_schema", '{"type": "strin"}', "strin"),
        ("json_schema", '{"type": "string", "pattern": "["}', "unclosed"),
        ("json_schema", '{"$ref": "#/nowhere"}', "nowhere"),
        ("json_schema", '{"not": {}}', "not"),
        ("json_schema", '{"minLength": 5, "maxLength": 2, "type": "string"}', "minLength"),
        ("json_schema", '{"x": ' * 3000 + "1" + "}" * 3000, "JSON"),
        ("json_schema", json.dumps({"description": "a" * 300_000}), "longer than"),
        ("regex", "[", "unclosed"),
        ("regex", "(?=x)a", "look-around"),
        ("regex", "(" * 5000 + ")" * 5000, "cannot be followed"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_the_reason(kind, text, reason) -> None:
    with pytest.raises(BadRequest, match=reason) as caught:
        check(Grammar(kind, text))
    assert len(caught.value.message) < 500
    assert "at 2(" not in caught.value.message
    assert "JSON schema" in caught.value.message or "regular expression" in caught.value.message


def test_a_grammar_that_fails_while_running_names_itself() -> None:
    matching = HOST(Grammar("regex", "ab"))
    matching.mask(np.zeros(V, np.float32))
    with pytest.raises(FleetError, match="grammar"):
        matching.push(ord("z"))


def test_what_was_said_before_is_followed_on_use_and_not_when_the_slot_opens() -> None:
    wrong, right = HOST(Grammar("regex", "ab")), HOST(Grammar("regex", "ab"))
    wrong.push(ord("z"))
    right.push(ord("a"))
    with pytest.raises(FleetError, match="grammar"):
        wrong.mask(np.zeros(V, np.float32))
    assert np.flatnonzero(np.isfinite(right.mask(np.zeros(V, np.float32)))).tolist() == [ord("b")]


def test_what_is_wrong_is_raised_on_use_and_not_when_the_slot_opens() -> None:
    matching = HOST(Grammar("regex", "["))
    assert isinstance(matching, Matching)
    with pytest.raises(BadRequest, match="unclosed"):
        matching.mask(np.zeros(V, np.float32))
    with pytest.raises(Unsupported):
        NoGrammars().mask(np.zeros(V, np.float32))

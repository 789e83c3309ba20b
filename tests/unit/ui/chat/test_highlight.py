"""Words of a program get their kinds."""

from __future__ import annotations

import pytest

from ui.chat.highlight import LONGEST, spans


def test_words_of_python() -> None:
    code = "def f(x):  # é\n    return 'a' + 1\n"
    found = {code[start : start + length]: word for start, length, word in spans(code, "python")}
    assert found["def"] == found["return"] == "keyword"
    assert found["f"] == "name"
    assert found["# é"] == "comment"
    assert found["1"] == "number"


@pytest.mark.parametrize(
    "language", ["python", "json", "c++", "bash", "html", "diff", "sql", "rust"]
)
def test_spans_come_in_order_and_inside_the_code(language: str) -> None:
    code = "<a b='c'>\n+ x = {\"y\": [1, 2]} // z\n- select * from t;\n\n\tfn main() {}"
    end = 0
    for start, length, _ in spans(code, language):
        assert start >= end
        end = start + length
    assert end <= len(code)


@pytest.mark.parametrize("language", ["", "no such language", "text", "../x", "a" * 30])
def test_an_unknown_language_has_no_colours(language: str) -> None:
    assert list(spans("x = 1", language)) == []


def test_endless_code_has_no_colours() -> None:
    assert list(spans("x = 1\n" * LONGEST, "python")) == []

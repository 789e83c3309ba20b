import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.api.sse import EventParser

LINE = st.text(st.characters(blacklist_characters="\r\n", codec="utf-8"), max_size=20)


@given(events=st.lists(LINE, max_size=6), cuts=st.lists(st.integers(1, 9), max_size=40))
def test_events_do_not_depend_on_how_the_bytes_arrive(events: list[str], cuts: list[int]) -> None:
    raw = b"".join(f": comment\n\ndata: {e}\r\n\n".encode() for e in events)
    parser, got, at = EventParser(), [], 0
    for cut in [*cuts, len(raw)]:
        got += parser.feed(raw[at : at + cut])
        at += cut
    assert got == events


def test_several_data_lines_are_one_event() -> None:
    parser = EventParser()
    assert list(parser.feed(b"event: x\ndata: a\ndata:b\nid: 5\n\n")) == ["a\nb"]


def test_a_line_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="longer"):
        list(EventParser(limit=10).feed(b"data: " + b"x" * 20))

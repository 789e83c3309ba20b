"""Rows, what needs attention, and the pulse of a fleet: all without a window."""

from __future__ import annotations

import itertools
import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from PySide6.QtCore import QAbstractItemModel, QPersistentModelIndex, Qt

from fleetapp.types import ChainLoad, FleetView, LayerRange, NodeView
from tests.support.fake_fleet_api import DAY, FLEET, chain, device, fleet_view, many, node, part
from ui.fleet import words
from ui.fleet.attention import concerns
from ui.fleet.commands import BY_NAME, COMMANDS, Rights, possible, request
from ui.fleet.nodes_model import NodesModel
from ui.fleet.pulse import SPAN, History, Pulse, Series, pulse_of
from ui.fleet.rows import COLUMNS, Office, Row, natural, office_of, rows_of, same

NOW = 1_800_000_000.0
ADMIN = Rights(administers=True, coordinates=True)
INDEX = {column.key: i for i, column in enumerate(COLUMNS)}


def fleet(*nodes: NodeView, **changes: object) -> FleetView:
    return fleet_view(**{"nodes": nodes, "chains": (), "warnings": (), **changes})


def shown(model: NodesModel, key: str = "name") -> list[str]:
    column = INDEX[key]
    return [model.index(row, column).data() for row in range(model.rowCount())]


def model_of(view: FleetView) -> NodesModel:
    model = NodesModel()
    model.update(rows_of(view), office_of(view, NOW))
    return model


# ---------------------------------------------------------------------- rows


def test_a_pc_that_works_in_two_chains_has_the_tokens_of_both() -> None:
    view = fleet_view(chains=(chain(), chain(chain="c2", load=ChainLoad(8.6))))
    by_device = {r.node.device_id: r for r in rows_of(view)}
    assert by_device[device(1)].rate == pytest.approx(70.0)
    assert len(by_device[device(1)].work) == 2
    assert by_device[device(5)].rate is None, "a copy held ready makes nothing"
    assert len(by_device[device(5)].work) == 2


def test_only_what_can_be_seen_makes_a_row_different() -> None:
    row = Row(node(1, last_seen=0.1))
    assert same(row, Row(replace(row.node, last_seen=2.9)))
    assert not same(row, Row(replace(row.node, last_seen=40.0)))
    assert not same(row, Row(replace(row.node, temperature=53.0)))
    assert not same(row, Row(row.node, rate=1.0))


@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: c.key)
def test_every_column_says_something_and_sorts_whatever_is_known(column: object) -> None:
    view = fleet_view()
    rows = rows_of(view)
    office = office_of(view, NOW)
    assert all(isinstance(column.text(r, office), str) for r in rows)  # type: ignore[attr-defined]
    sorted(rows, key=lambda r: column.order(r, office))  # type: ignore[attr-defined]


def test_names_sort_as_people_count() -> None:
    names = ["desk-10", "DESK-2", "Desk-1", "büro", "2", "10", "a"]
    assert sorted(names, key=natural) == ["2", "10", "a", "büro", "Desk-1", "DESK-2", "desk-10"]


@given(st.lists(st.text(max_size=12), max_size=8))
def test_any_names_can_be_sorted(names: list[str]) -> None:
    sorted(names, key=natural)


@pytest.mark.parametrize(
    ("about", "phases", "said"),
    [
        (node(1), (), "Ready to work"),
        (node(1), ("ready",), "Standing by"),
        (node(1), ("ready", "linked"), "Working"),
        (node(1), ("downloading",), "Getting ready"),
        (node(1), ("failed", "linked"), "Could not load its part"),
        (node(1, drained=True), ("linked",), "Drained by an admin"),
        (node(1, reason="draining"), ("linked",), "Finishing, then pausing"),
        (node(1, contribute=False, reason="on_battery"), (), "Not working · on battery"),
        (node(1, contribute=False, reason="of_tomorrow"), (), "Not working · of tomorrow"),
        (node(1, state="suspected"), ("linked",), "Does not answer"),
    ],
)  # fmt: skip
def test_the_state_is_said_with_its_reason(
    about: NodeView, phases: tuple[Any, ...], said: str
) -> None:
    work = tuple(part(1, 0, 1, LayerRange(0, 1), phase=p) for p in phases)
    assert words.state(about, work) == said


# ---------------------------------------------------------------------- the table


def test_the_table_is_sorted_and_turned_around() -> None:
    model = model_of(fleet(node(10), node(2), node(1, name="desk-1")))
    assert shown(model) == ["desk-1", "DESK-02", "DESK-10"]
    model.sort(0, Qt.SortOrder.DescendingOrder)
    assert shown(model) == ["DESK-10", "DESK-02", "desk-1"]


def test_equal_ones_stay_in_the_order_of_names() -> None:
    model = model_of(fleet(node(3), node(1), node(2, temperature=90.0)))
    model.sort(INDEX["temperature"])
    assert shown(model) == ["DESK-01", "DESK-03", "DESK-02"]


def test_a_filter_wants_all_words_wherever_they_are() -> None:
    model = model_of(fleet_view())
    model.filter("gpu smollm2")
    assert set(shown(model)) == {"DESK-01 (coordinator)", "DESK-02", "Büro 日本 3",
                                 "DESK-05 (admin)"}  # fmt: skip
    model.filter("BÜRO")
    assert shown(model) == ["Büro 日本 3"]
    model.filter("no such thing")
    assert model.rowCount() == 0
    assert model.total == 11
    model.filter("  ")
    assert model.rowCount() == 11


def test_only_rows_that_changed_are_told() -> None:
    before, after = many(100, live=5, beat=0), many(100, live=5, beat=1)
    model = model_of(before)
    told: list[tuple[int, int]] = []
    model.dataChanged.connect(lambda a, b: told.append((a.row(), b.row())))
    moved = itertools.count()
    model.layoutChanged.connect(lambda *_: next(moved))
    model.update(rows_of(before), office_of(before, NOW))
    assert told == []
    model.update(rows_of(after), office_of(after, NOW))
    assert told == [(0, 4)], "neighbours in one signal"
    assert next(moved) == 0


def test_what_is_chosen_stays_chosen_whatever_happens() -> None:
    """Random fleets, orders and filters: a persistent index stays on its PC or becomes invalid."""
    rng = random.Random(7)
    for _ in range(60):
        nodes = [node(i) for i in range(rng.randrange(1, 12))]
        model = model_of(fleet(*nodes))
        held = {
            model.nodes([model.index(r, 0)])[0].device_id: QPersistentModelIndex(model.index(r, 3))
            for r in range(model.rowCount())
        }
        left = rng.sample(nodes, rng.randrange(0, len(nodes) + 1))
        left += [node(i) for i in range(20, 20 + rng.randrange(3))]
        rng.shuffle(left)
        left = [replace(n, temperature=rng.random() * 90) for n in left]
        model.sort(rng.randrange(len(COLUMNS)), rng.choice(list(Qt.SortOrder)))
        model.filter(rng.choice(["", "1", "DESK"]))
        view = fleet(*left)
        model.update(rows_of(view), office_of(view, NOW))
        _same_places(model, held)


def _same_places(model: NodesModel, held: dict[str, QPersistentModelIndex]) -> None:
    for device_id, index in held.items():
        row = model.row_of(device_id)
        assert index.isValid() == (row >= 0)
        if row >= 0:
            assert (index.row(), index.column()) == (row, 3)
            assert model.nodes([index])[0].device_id == device_id


def test_qt_finds_no_fault_with_the_model(qtmodeltester: object) -> None:
    model: QAbstractItemModel = model_of(fleet_view())
    qtmodeltester.check(model)  # type: ignore[attr-defined]


def test_a_name_cannot_become_a_formula() -> None:
    view = fleet(node(1, name="=HYPERLINK(1)"), node(2, name='say "hi", all'))
    lines = model_of(view).csv().splitlines()
    assert lines[0].startswith("PC,State,")
    assert any(line.startswith("'=HYPERLINK(1),") for line in lines)
    assert any(line.startswith('"say ""hi"", all",') for line in lines)


# ---------------------------------------------------------------------- attention


def test_what_needs_attention_comes_in_the_order_of_urgency() -> None:
    view = fleet_view()
    found = concerns(view, office_of(view, time.time()))
    said = [c.text for c in found]
    assert [c.urgency for c in found[:4]] == ["question", "error", "error", "error"]
    assert found[0].device_id == device(11)
    assert device(11) in found[0].detail, "the id to compare"
    for wanted in ("copy of the other", "DESK-09 could not load layers 18-35", "certificate of",
                   "DESK-08 runs another version", "DESK-06 does not answer", "DESK-08 is drained",
                   "DESK-07 is offline"):  # fmt: skip
        assert any(wanted in text for text in said), wanted


def test_a_hundred_laptops_that_went_home_are_one_piece_of_news() -> None:
    view = fleet(*(node(i, state="offline") for i in range(1, 101)))
    found = concerns(view, Office("0.3.0", NOW))
    assert len(found) == 1
    assert "100 PCs are offline: DESK-01, DESK-02, DESK-03, DESK-04 and 96 more" in found[0].text


def test_a_quiet_fleet_needs_nothing() -> None:
    view = fleet(node(1, role="coordinator", certificate_ends=NOW + 20 * DAY))
    assert concerns(view, office_of(view, NOW)) == []


def test_a_broken_chain_is_said() -> None:
    view = fleet(node(1), chains=(chain(state="broken", reason="DESK-02 left.", assignments=()),))
    assert "smollm2-135m-instruct is not served: DESK-02 left." in [
        c.text for c in concerns(view, Office("0.3.0", NOW))
    ]


# ---------------------------------------------------------------------- pulse


def test_the_pulse_counts_members_and_weighs_chains_by_their_tokens() -> None:
    slow = chain(chain="c2", load=ChainLoad(20.0, 0.2, acceptance=None), running=1, waiting=0)
    rest = chain(chain="c3", load=ChainLoad(0.0, 9.0), state="broken", running=0, waiting=2)
    fast = chain(load=ChainLoad(60.0, 0.04, acceptance=0.5))
    pulse = pulse_of(fleet_view(chains=(fast, slow, rest)))
    assert (pulse.nodes, pulse.online, pulse.contributing) == (9, 7, 6)
    assert (pulse.live, pulse.chains, pulse.tokens) == (2, 3, 80.0)
    assert (pulse.running, pulse.waiting) == (5, 3)
    assert pulse.step == pytest.approx(0.08)
    assert pulse.acceptance == 0.5
    assert pulse_of(FleetView(FLEET, "", (), ())) == Pulse()


def test_charts_forget_what_is_older_than_they_show() -> None:
    series = Series()
    for second in range(1000):
        series.add(float(second), None if second > 990 else float(second))
    assert series.points[0][0] == 999 - SPAN
    assert series.newest == 990.0
    history = History()
    history.add(0.0, None)
    history.add(1.0, Pulse(tokens=3.0, step=0.1))
    assert list(history.throughput.points) == [(0.0, None), (1.0, 3.0)]
    assert history.acceptance.newest is None


# ---------------------------------------------------------------------- commands


@pytest.mark.parametrize(
    ("about", "can"),
    [
        (node(1, state="pending"), {"approve", "decline"}),
        (node(1), {"rename", "drain", "admin", "evict", "revoke"}),
        (node(1, state="offline", drained=True), {"rename", "undrain", "admin", "evict", "revoke"}),
        (node(1, role="admin"), {"rename", "drain", "member", "evict", "revoke"}),
        (node(1, role="coordinator"), {"rename", "drain"}),
        (node(1, state="revoked"), {"reinstate"}),
    ],
    ids=["pending", "member", "drained", "admin", "coordinator", "revoked"],
)
def test_only_what_makes_sense_is_offered_and_only_to_admins(
    about: NodeView, can: set[str]
) -> None:
    assert {c.name for c in COMMANDS if possible(c, [about], ADMIN)} == can
    assert not any(possible(c, [about], Rights()) for c in COMMANDS)


def test_several_pcs_at_once_get_what_fits_all_and_never_an_approval() -> None:
    two = [node(1), node(2, drained=True)]
    assert {c.name for c in COMMANDS if possible(c, two, ADMIN)} == {"admin", "evict", "revoke"}
    waiting = [node(1, state="pending"), node(2, state="pending")]
    assert {c.name for c in COMMANDS if possible(c, waiting, ADMIN)} == {"decline"}


def test_what_does_harm_asks_first_and_says_what_happens() -> None:
    for name in ("approve", "admin", "evict", "revoke"):
        command = BY_NAME[name]
        assert command.question()
        assert len(command.consequence()) > 60
        assert command.yes()


def test_requests_name_the_whole_device_id() -> None:
    about = node(1)
    assert request("drain", about) == ("/local/v1/fleet/drain", {"device_id": device(1)})
    assert request("admin", about)[1] == {"device_id": device(1), "role": "admin"}
    assert request("rename", about, "x")[1] == {"device_id": device(1), "name": "x"}

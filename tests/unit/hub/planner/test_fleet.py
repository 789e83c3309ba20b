"""Plans of whole fleets, and what they say."""

from __future__ import annotations

import pytest
from msgspec import structs

from fleetapp.errors import BadRequest, NotFound
from fleetapp.hub.planner.change import refreshed, worth_changing
from fleetapp.hub.planner.edits import AddNode, Inputs, RemoveNode, SetUsers, UseModel, what_if
from fleetapp.hub.planner.fleet import plan_fleet
from fleetapp.hub.planner.inputs import Demand, Device, Link, Node, Wish
from fleetapp.hub.planner.plan import FleetPlan, ModelPlan
from fleetapp.types import DeviceId
from tests.support.fleets import GIB, links, model, node, office, profile


def plan(nodes: list[Node], wish: Wish, hops: list[Link] | None = None) -> ModelPlan:
    return plan_fleet(nodes, links(nodes) if hops is None else hops, [wish]).models[0]


def wish(users: int = 1, stages: int = 0, **more: int) -> Wish:
    return Wish(model(), Demand(users=users, context=512, stages=stages, **more))


def held(found: ModelPlan) -> list[list[str]]:
    return [[s.name for s in chain.stages] for chain in found.chains]


def test_one_user_and_room_on_one_pc_needs_one_pc() -> None:
    found = plan([node("ANNA-PC", coordinator=True), node("BEN-PC")], wish(1))
    assert held(found) == [["ANNA-PC"]]
    assert found.text.startswith("Fits on ANNA-PC alone; splitting would be 1.1 times slower")


def test_a_name_is_written_as_its_owner_writes_it_also_where_a_sentence_begins() -> None:
    found = plan([node("pc-1"), node("pc-2")], wish(1, stages=2))
    first = found.chains[0].stages[0].name
    assert f"{first} layers 0-" in found.text
    assert "Pc-" not in found.text


def test_many_users_and_room_on_each_give_replicas() -> None:
    found = plan([node("A"), node("B"), node("C")], wish(6))
    assert sorted(held(found)) == [["A"], ["B"], ["C"]]
    assert [c.users for c in found.chains] == [2, 2, 2]
    assert "so three replicas." in found.text


def test_what_fits_nowhere_alone_is_split() -> None:
    found = plan([node("A", 7), node("B", 7)], wish(2))
    assert sorted(held(found)[0]) == ["A", "B"]
    assert "the largest device gives 7.0 GiB" in found.text
    for stage in found.chains[0].stages:
        assert stage.memory <= 7 * GIB


def test_a_mixture_uses_the_strong_one_alone_and_the_weak_ones_together() -> None:
    found = plan([node("BIG", 16), node("S1", 7), node("S2", 7)], wish(6))
    assert sorted(map(sorted, held(found))) == [["BIG"], ["S1", "S2"]]


def test_a_node_behind_a_slow_link_gets_no_layer() -> None:
    nodes = [node("A", 7), node("B", 7), node("FAR", 7)]
    hops = [
        structs.replace(k, rtt=0.3, bandwidth=1e5) if "far" in (k.source, k.target) else k
        for k in links(nodes)
    ]
    found = plan(nodes, wish(1), hops)
    assert sorted(held(found)[0]) == ["A", "B"]
    assert "FAR gets no layer" in found.text


def test_a_node_that_must_not_head_is_a_later_stage() -> None:
    nodes = [node("A", 7, can_head=False, layer=0.0001), node("B", 7)]
    assert held(plan(nodes, wish(2))) == [["B", "A"]]


def test_the_coordinator_heads_where_nothing_else_differs() -> None:
    nodes = [node("A", 7), node("B", 7, coordinator=True)]
    assert held(plan(nodes, wish(1)))[0][0] == "B"


def test_devices_of_one_node_can_be_two_stages() -> None:
    devices = (
        Device("CPU", 7 * GIB, {"m": profile(0.001)}),
        Device("GPU", 7 * GIB, {"m": profile(0.0005)}),
    )
    found = plan([Node(DeviceId("a"), "A", devices)], wish(4))
    assert [{s.device for s in c.stages} for c in found.chains] == [{"CPU", "GPU"}]


def test_users_whose_cache_does_not_fit_wait() -> None:
    tight = Wish(structs.replace(model(), kv_bytes=2**16), Demand(users=8, context=2048))
    found = plan([node("A", 14)], tight)
    assert found.chains[0].running < 8
    assert "the others wait their turn" in found.text
    assert found.chains[0].stages[0].memory <= 14 * GIB


def test_as_many_stages_as_asked_evenly_cut() -> None:
    nodes = [node("A", coordinator=True), node("B"), node("C"), node("D")]
    found = plan(nodes, wish(1, stages=3))
    sizes = [len(s.layers) for s in found.chains[0].stages]
    assert len(found.chains) == 1
    assert len(sizes) == 3
    assert max(sizes) - min(sizes) <= 3  # the last has the output head, worth two layers
    assert found.text.startswith("3 stages, as asked.")


@pytest.mark.parametrize("count", [8, 14])
def test_stages_as_asked_among_many(count: int) -> None:
    nodes, hops = office(count, 1, 12.0)
    found = plan(nodes, wish(2, stages=4), hops)
    assert [len(c.stages) for c in found.chains] == [4]


def test_too_many_stages_are_refused_in_words() -> None:
    assert plan([node("A")], wish(1, stages=2)).chains == ()
    assert "only 1 devices" in plan([node("A")], wish(1, stages=2)).text


def test_no_room_and_no_node_are_said_in_words() -> None:
    nothing = plan([node("A", 3)], wish())
    assert nothing.chains == ()
    assert "does not fit the 3.0 GiB that A can give" in nothing.text
    assert plan([], wish()).text == "No node contributes."


def test_unmeasured_nodes_are_planned_with_an_assumption_that_is_stated() -> None:
    bare = Node(DeviceId("b"), "B", (Device("CPU", 7 * GIB),))
    found = plan([node("A", 7), bare], wish(1))
    assert "B has not been measured" in found.text
    assert "as fast as the median" in found.text
    alone = plan([structs.replace(bare, devices=(Device("CPU", 16 * GIB),))], wish(1))
    assert "reading weights at 14 GB/s" in alone.text
    assert "B has" in alone.text


def test_two_pcs_of_one_name_are_two_pcs() -> None:
    nodes = [node("A", 7), structs.replace(node("B", 7), name="A")]
    found = plan_fleet(nodes, links(nodes), [wish(2)])
    assert [m.device_id for m in found.memory] == ["a", "b"]
    assert found.unused == ()


def test_spare_nodes_keep_copies_the_steadiest_first() -> None:
    nodes = [
        node("A", coordinator=True),
        node("HASTY", stability=60),
        node("STEADY", stability=90000),
    ]
    found = plan(nodes, wish(1))
    assert [(s.name, s.stages) for s in found.standbys] == [("STEADY", ((0, 0),))]


def test_memory_and_prediction_are_consistent() -> None:
    nodes = [node("A", 7), node("B", 7)]
    whole = plan_fleet(nodes, links(nodes), [wish(4)])
    found = whole.models[0]
    chain = found.chains[0]
    assert {m.name: m.bytes for m in whole.memory} == {s.name: s.memory for s in chain.stages}
    assert found.tokens_per_second == chain.tokens_per_second > chain.one_user > 0
    assert chain.stages[0].layers.start == 0
    assert chain.stages[-1].layers.stop == 20
    longer = plan(nodes, wish(4, prompt=4096))
    assert longer.first_token > 4 * found.first_token


# ---------------------------------------------------------------------- several models


def two(users: int = 2) -> list[Wish]:
    small = model(layers=8, name="n")
    return [wish(users), Wish(small, Demand(users=users, context=512))]


def test_two_models_get_places_of_their_own() -> None:
    nodes = [node("A"), node("B"), node("C")]
    found = plan_fleet(nodes, links(nodes), two())
    names = [{s.name for c in m.chains for s in c.stages} for m in found.models]
    assert all(names)
    assert not names[0] & names[1]


def test_two_models_on_one_pc_share_it_and_it_is_said() -> None:
    nodes = [node("A", 24)]
    found = plan_fleet(nodes, [], two())
    assert all(m.chains for m in found.models)
    assert "also hold another model" in found.models[1].text
    (memory,) = found.memory
    assert memory.bytes <= 24 * GIB


def test_two_models_in_a_large_fleet_are_both_served() -> None:
    nodes, hops = office(12, 5, 12.0)
    found = plan_fleet(nodes, hops, two(6))
    names = [{s.name for c in m.chains for s in c.stages} for m in found.models]
    assert all(names)
    assert not names[0] & names[1]


def test_the_second_of_two_models_is_left_out_if_only_one_fits() -> None:
    found = plan_fleet([node("A", 12)], [], [wish(), Wish(model(name="n"), Demand(context=512))])
    assert [bool(m.chains) for m in found.models] == [True, False]


# ---------------------------------------------------------------------- what if, and changing


def inputs(*nodes: Node, users: int = 4) -> Inputs:
    return Inputs(tuple(nodes), tuple(links(list(nodes))), (wish(users),))


def test_another_node_makes_a_model_fit() -> None:
    before = inputs(node("A", 7))
    assert before.plan().models[0].chains == ()
    after = what_if(before, [AddNode(8 * GIB)])
    assert [n.name for n in after.nodes] == ["A", "NEW-PC-1"]
    assert len(after.plan().models[0].chains) == 1


def test_a_node_less_other_users_and_another_model() -> None:
    before = inputs(node("A"), node("B"))
    after = what_if(before, [RemoveNode("B"), SetUsers(9), UseModel(model(4, name="n"))])
    assert [n.name for n in after.nodes] == ["A"]
    assert (after.wishes[0].model.model_id, after.wishes[0].demand.users) == ("n", 9)
    assert before.wishes[0].demand.users == 4


def test_edits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(NotFound, match="No PC called 'X'") as unknown:
        what_if(inputs(node("A")), [RemoveNode("X")])
    assert "name or device id of one of these" in unknown.value.remedy
    with pytest.raises(NotFound, match="there are: none") as nobody:
        what_if(inputs(), [RemoveNode("X")])
    assert "until a PC contributes" in nobody.value.remedy
    for users in (0, -1, 10_001):
        with pytest.raises(BadRequest, match=f"^{users} users") as many:
            what_if(inputs(node("A")), [SetUsers(users)])
        assert "from 1 to 10000" in many.value.remedy
    for gigabytes in (0, -3, 4097, 999_999):
        with pytest.raises(BadRequest, match=f"A PC with {gigabytes} GB") as memory:
            what_if(inputs(node("A")), [AddNode(gigabytes * GIB)])
        assert "at most 4096 GB" in memory.value.remedy
    assert what_if(inputs(node("A")), [AddNode(4096 * GIB), SetUsers(10_000)])


def changed(before: Inputs, after: Inputs, running: int = 0) -> bool:
    current = refreshed(before.plan(), after.nodes, after.links, after.wishes)
    return worth_changing(current, after.plan(), running)


def test_a_first_plan_is_worth_it_and_the_same_again_is_not() -> None:
    now = inputs(node("A"))
    assert worth_changing(None, now.plan(), 0)
    assert not changed(now, now)


def test_a_small_gain_is_not_worth_the_interruption_a_large_one_is() -> None:
    before = inputs(node("A", 7, 0.001), node("B", 7, 0.001))
    quicker = inputs(node("A", 7, 0.001), node("B", 7, 0.0009))
    much = inputs(node("A", 7, 0.001), node("B", 7, 0.001), node("C", 16, 0.0004))
    assert not changed(before, quicker)
    assert changed(before, much)


def test_while_somebody_is_answered_it_takes_more() -> None:
    before = inputs(node("A", 7, 0.001), node("B", 7, 0.001))
    faster = inputs(node("A", 7, 0.001), node("B", 7, 0.001), node("C", 16, 0.0008))
    assert changed(before, faster)
    assert not changed(before, faster, running=3)


def test_a_plan_whose_node_is_gone_is_always_changed() -> None:
    before = inputs(node("A", 7), node("B", 7), node("C", 7))
    gone = {s.name for s in before.plan().models[0].chains[0].stages}.pop()
    after = what_if(before, [RemoveNode(gone)])
    assert changed(before, after, running=5)


def test_another_set_of_models_is_always_a_change() -> None:
    before = inputs(node("A", 40))
    after = structs.replace(before, wishes=tuple(two()))
    assert changed(before, after, running=5)
    assert isinstance(before.plan(), FleetPlan)

"""A chain plans, prepares, links, and does it again when something breaks."""

import asyncio

import pytest

from fleetapp.errors import NoCapacity
from tests.support.fake_hub import FakeHub


async def test_goes_live_over_all_contributing_pcs_with_the_coordinator_first() -> None:
    hub = FakeHub("b", "a", "hub")
    hub.keeper.start()
    await hub.keeper.wait_live(5)
    assert hub.keeper.devices == ("hub", "a", "b")
    assert [m.next_layer for _, m in hub.linked][-1] == 0, "the last hop returns to the head"
    view = hub.keeper.view()
    assert view.state == "live"
    assert [h.to_device for h in view.hops] == ["a", "b", "hub"]
    await hub.keeper.stop("done")


async def test_nothing_is_linked_before_everyone_is_ready() -> None:
    hub = FakeHub("hub", "a")
    hub.broken_loads.add("a")
    hub.keeper.start()
    await hub.until("broken")
    assert hub.linked == []
    assert "a: boom" in hub.keeper.reason
    await hub.keeper.stop("done")


async def test_a_pc_that_cannot_load_is_left_out_and_the_rest_serve() -> None:
    hub = FakeHub("hub", "a", "b")
    hub.broken_loads.add("a")
    hub.keeper.start()
    await hub.keeper.wait_live(10)
    assert hub.keeper.devices == ("hub", "b")
    await hub.keeper.stop("done")


async def test_losing_one_runner_reloads_one_shard_in_a_new_epoch() -> None:
    hub = FakeHub("hub", "a", "b")
    hub.keeper.start()
    await hub.keeper.wait_live(5)
    assert len(hub.assigned) == 3
    first = hub.keeper.epoch
    hub.runner_dies("a")
    assert not hub.keeper.live, "no request may be sent into a broken ring"
    await hub.keeper.wait_live(5)
    assert [d for d, _ in hub.assigned[3:]] == ["a"], "the others keep what they hold"
    assert hub.keeper.epoch > first
    again = [m for _, m in hub.linked if m.epoch == hub.keeper.epoch]
    assert {m.next.port for m in again if m.next} == {7001}, "the kept ones are still known"
    assert {(m.kv_blocks, m.block_size) for m in again} == {(10, 32)}
    assert hub.keeper.context_length == 320
    await hub.keeper.stop("done")


async def test_losing_a_pc_deals_its_layers_to_the_others() -> None:
    hub = FakeHub("hub", "a", "b")
    hub.keeper.start()
    await hub.keeper.wait_live(5)
    hub.lose("b")
    await hub.keeper.wait_live(5)
    assert hub.keeper.devices == ("hub", "a")
    await hub.keeper.stop("done")


async def test_a_wished_number_of_stages_waits_for_that_many() -> None:
    hub = FakeHub("hub", "a", stages=3)
    hub.keeper.start()
    with pytest.raises(NoCapacity, match="2 of 3"):
        await hub.keeper.wait_live(0.3)
    hub.come_back("b", session=9)
    await hub.keeper.wait_live(5)
    assert len(hub.keeper.devices) == 3
    await hub.keeper.stop("done")


async def test_a_pc_that_comes_back_is_taken_in_when_nobody_waits() -> None:
    hub = FakeHub("hub", "a", "b", stages=3)
    hub.keeper.start()
    await hub.keeper.wait_live(5)
    hub.lose("b")
    await hub.keeper.wait_live(5)
    hub.keeper.running = 1
    hub.come_back("b", session=9)
    await asyncio.sleep(0)
    assert hub.keeper.live, "a running answer is not disturbed"
    hub.keeper.running = 0
    hub.keeper.nodes_changed()
    await hub.until("live")
    async with asyncio.timeout(5):
        while hub.keeper.devices != ("hub", "a", "b") or not hub.keeper.live:
            hub.changes.clear()
            await hub.changes.wait()
    await hub.keeper.stop("done")


async def test_a_pc_that_contributes_later_is_taken_in_without_being_asked_for() -> None:
    hub = FakeHub("hub")
    hub.keeper.start()
    await hub.keeper.wait_live(5)
    assert hub.keeper.devices == ("hub",)
    hub.come_back("a", session=9)
    async with asyncio.timeout(5):
        while hub.keeper.devices != ("hub", "a") or not hub.keeper.live:
            hub.changes.clear()
            await hub.changes.wait()
    await hub.keeper.stop("done")


async def test_more_pcs_than_layers_do_not_disturb_a_live_chain() -> None:
    hub = FakeHub("hub", "a", "b", layers=2)
    hub.keeper.start()
    await hub.keeper.wait_live(5)
    epoch = hub.keeper.epoch
    hub.come_back("c", session=9)
    await asyncio.sleep(0)
    hub.keeper.nodes_changed()
    await asyncio.sleep(0)
    assert hub.keeper.live
    assert (hub.keeper.devices, hub.keeper.epoch) == (("hub", "a"), epoch)
    await hub.keeper.stop("done")


async def test_a_restarted_pc_is_not_taken_for_its_old_self() -> None:
    hub = FakeHub("hub", "a")
    hub.keeper.start()
    await hub.keeper.wait_live(5)
    hub.lose("a")
    hub.come_back("a", session=9)
    await hub.keeper.wait_live(5)
    assert hub.keeper.devices == ("hub", "a")
    assert [d for d, _ in hub.assigned].count("a") == 2
    await hub.keeper.stop("done")


async def test_without_the_coordinator_there_is_no_head_and_it_says_so() -> None:
    hub = FakeHub("a", "b")
    hub.keeper.start()
    with pytest.raises(NoCapacity, match="coordinator itself must contribute"):
        await hub.keeper.wait_live(0.2)
    await hub.keeper.stop("done")


async def test_stop_releases_every_stage() -> None:
    hub = FakeHub("hub", "a", "b")
    hub.keeper.start()
    await hub.keeper.wait_live(5)
    await hub.keeper.stop("done")
    assert {d for d, _ in hub.released} == {"hub", "a", "b"}

"""A chain plans, prepares, links, and does it again when something breaks."""

import asyncio

from fleetapp.hub.serving import too_few
from tests.support.fake_hub import FakeHub


async def test_goes_live_over_all_contributing_pcs_with_the_coordinator_first() -> None:
    hub = FakeHub("b", "a", "hub", stages=3)
    hub.server.start()
    await hub.server.wait_live(5)
    assert hub.chain.devices == ("hub", "a", "b")
    assert [m.next_layer for _, m in hub.linked][-1] == 0, "the last hop returns to the head"
    view = hub.chain.view()
    assert view.state == "live"
    assert [h.to_device for h in view.hops] == ["a", "b", "hub"]
    ((action, details),) = hub.noted
    assert action == "plan"
    assert str(details["stages"]).startswith("hub 0-"), "the audit log says who holds what"
    await hub.server.stop("done")


async def test_nothing_is_linked_before_everyone_is_ready() -> None:
    hub = FakeHub("hub", "a", stages=2)
    hub.broken_loads.add("a")
    hub.server.start()
    await hub.until("broken")
    assert hub.linked == []
    assert "a: boom" in hub.chain.reason
    await hub.server.stop("done")


async def test_a_pc_that_cannot_load_is_left_out_and_the_rest_serve() -> None:
    hub = FakeHub("hub", "a", "b", stages=3)
    hub.broken_loads.add("a")
    hub.server.start()
    assert await hub.server.wait_live(5)
    assert hub.chain.devices == ("hub", "b")
    await hub.server.stop("done")


async def test_losing_one_runner_reloads_one_shard_in_a_new_epoch() -> None:
    hub = FakeHub("hub", "a", "b", stages=3)
    hub.server.start()
    await hub.server.wait_live(5)
    assert len(hub.assigned) == 3
    first = hub.chain.epoch
    hub.runner_dies("a")
    assert not hub.chain.live, "no request may be sent into a broken ring"
    await hub.server.wait_live(5)
    assert [d for d, _ in hub.assigned[3:]] == ["a"], "the others keep what they hold"
    assert hub.chain.epoch > first
    again = [m for _, m in hub.linked if m.epoch == hub.chain.epoch]
    assert {m.next.port for m in again if m.next} == {7001}, "the kept ones are still known"
    assert {(m.kv_blocks, m.block_size) for m in again} == {(10, 32)}
    assert hub.chain.context_length == 320
    await hub.server.stop("done")


async def test_losing_a_pc_reloads_its_layers_elsewhere_and_divides_anew_in_a_pause() -> None:
    hub = FakeHub("hub", "a", "b", stages=3)
    hub.server.start()
    await hub.server.wait_live(5)
    hub.chain.running = 1
    hub.lose("b")
    await hub.server.wait_live(5)
    assert hub.chain.devices == ("hub", "a", "a"), "nobody else loads anything anew"
    assert len(hub.assigned) == 4
    hub.chain.running = 0
    hub.server.nodes_changed()
    await hub.devices("hub", "a")
    await hub.server.stop("done")


async def test_a_standby_takes_the_place_at_once() -> None:
    hub = FakeHub("hub", "a", "b", "c", stages=3)
    hub.server.start()
    await hub.server.wait_live(5)
    assert hub.chain.devices == ("hub", "a", "b")
    await hub.standbys(3)
    assert {d for d, _ in hub.assigned[3:]} == {"c"}, "it holds a copy of every stage"
    assigned = len(hub.assigned)
    hub.chain.running = 1
    hub.lose("b")
    await hub.server.wait_live(5)
    assert hub.chain.devices == ("hub", "a", "c")
    assert len(hub.assigned) == assigned, "nothing had to be loaded"
    await hub.server.stop("done")


async def test_interrupted_answers_go_on_before_copies_for_the_next_loss_are_made() -> None:
    hub = FakeHub("hub", "a", "b", "c", "d", stages=3)
    hub.server.start()
    await hub.server.wait_live(5)
    await hub.standbys(3)
    assigned, released = len(hub.assigned), len(hub.released)
    hub.chain.running = 4
    hub.lose("b")
    await hub.server.wait_live(5)
    for _ in range(3):
        hub.server.nodes_changed()
        await asyncio.sleep(0.05)
    assert len(hub.assigned) == assigned, "nothing loads while answers are fed again"
    assert len(hub.released) == released, "and no copy is given up for it"
    await hub.standbys(3)
    await hub.server.stop("done")


async def test_a_pc_that_comes_back_holds_copies_of_the_chain_that_went_on_without_it() -> None:
    hub = FakeHub("hub", "a", "b", "c", stages=3)
    hub.server.start()
    await hub.server.wait_live(5)
    await hub.standbys(3)
    hub.lose("b")
    await hub.devices("hub", "a", "c")
    for session in (9, 10):
        hub.come_back("b", session)
        await hub.standbys(3)
        assert {s.candidate.session for s in hub.server.standby_views()} == {session}
        hub.lose("b")
        await hub.standbys(0)
    assert hub.chain.devices == ("hub", "a", "c"), "nothing is moved for it"
    await hub.server.stop("done")


async def test_a_pc_that_is_free_again_holds_copies_although_the_chain_stays() -> None:
    hub = FakeHub("hub", "a", "b", "c", "d", stages=3)
    hub.server.start()
    await hub.server.wait_live(5)
    await hub.standbys(3)
    hub.drain("d")
    hub.drain("a")
    await hub.devices("hub", "b", "c")
    await hub.standbys(0)
    hub.undrain("a")
    await hub.standbys(3)
    assert {s.candidate.name for s in hub.server.standby_views()} == {"a"}
    assert hub.chain.devices == ("hub", "b", "c")
    await hub.server.stop("done")


async def test_a_hub_that_was_away_serves_with_fewer_pcs_when_the_others_do_not_come() -> None:
    hub = FakeHub("hub", "a", stages=3)
    hub.again(grace=0.05, patience=0.3)
    hub.server.start()
    assert not await hub.server.wait_live(0.2), "at first it waits for them"
    assert await hub.server.wait_live(5)
    assert hub.chain.devices == ("hub", "a")
    await hub.server.stop("done")


async def test_losing_the_head_pc_moves_the_head_to_a_standby() -> None:
    hub = FakeHub("hub", "a", "b", stages=2)
    hub.server.start()
    await hub.server.wait_live(5)
    await hub.standbys(2)
    hub.chain.running = 1
    hub.lose("hub")
    await hub.server.wait_live(5)
    assert hub.chain.devices == ("b", "a")
    assert hub.chain.head is not None
    assert hub.chain.head.candidate.device_id == "b"
    await hub.server.stop("done")


async def test_a_pc_that_wants_to_finish_is_left_out_after_others_have_loaded() -> None:
    hub = FakeHub("hub", "a", "b", stages=2)
    hub.server.start()
    await hub.server.wait_live(5)
    await hub.standbys(2)
    hub.chain.running = 1
    hub.drain("a")
    await hub.devices("hub", "b")
    assert hub.server.live
    await hub.server.stop("done")


async def test_a_member_that_reconnects_keeps_what_it_holds() -> None:
    hub = FakeHub("hub", "a", "b", stages=3)
    hub.server.start()
    await hub.server.wait_live(5)
    hub.chain.running = 1
    assigned = len(hub.assigned)
    hub.reconnect("a", session=9)
    await hub.server.wait_live(5)
    assert hub.chain.devices == ("hub", "a", "b")
    assert len(hub.assigned) == assigned
    assert not [n for d, n in hub.released if d == "a"]
    await hub.server.stop("done")


async def test_what_members_kept_while_the_hub_was_away_is_used_as_it_is() -> None:
    hub = FakeHub("hub", "a", "b", stages=3)
    hub.server.start()
    await hub.server.wait_live(5)
    await hub.server.stop("restart")
    before = [m.layers for _, m in hub.assigned]
    hub.again(grace=5.0)
    hub.server.start()
    await asyncio.sleep(0.1)
    assert not hub.server.live, "nothing is planned without those who may come back"
    hub.released.clear()
    for number, name in enumerate(("b", "hub", "a"), 7):
        hub.reconnect(name, session=number)
    await hub.server.wait_live(5)
    assert [s.plan.layers for s in hub.chain.stages] == before
    assert len(hub.assigned) == 3, "nothing was loaded anew"
    await hub.server.stop("done")


async def test_the_stage_that_ended_with_the_hub_is_loaded_between_those_that_were_kept() -> None:
    hub = FakeHub("hub", "a", "b", stages=3)
    hub.server.start()
    await hub.server.wait_live(5)
    await hub.server.stop("restart")
    before = [m.layers for _, m in hub.assigned]
    hub.again(grace=0.3)
    hub.server.start()
    for number, name in enumerate(("b", "a"), 7):
        hub.reconnect(name, session=number)
    assert await hub.server.wait_live(5)
    assert [s.plan.layers for s in hub.chain.stages] == before
    assert [(d, m.stage) for d, m in hub.assigned[3:]] == [("hub", 0)]
    await hub.server.stop("done")


async def test_after_the_grace_it_is_planned_with_whom_there_is() -> None:
    hub = FakeHub("hub")
    hub.again(grace=0.3)
    hub.server.start()
    assert await hub.server.wait_live(5)
    await hub.server.stop("done")


async def test_a_silent_runner_is_replaced_although_its_agent_lives() -> None:
    hub = FakeHub("hub", "a", "b", "c", stages=3)
    hub.server.start()
    await hub.server.wait_live(5)
    await hub.standbys(3)
    hub.chain.running = 1
    hub.falls_silent("b", told_by="hub")
    await hub.server.wait_live(5)
    assert hub.chain.devices == ("hub", "a", "c")
    assert "b" in {d for d, _ in hub.released}, "its agent ends the frozen runner"
    await hub.server.stop("done")


async def test_of_two_that_do_not_reach_each_other_one_is_replaced() -> None:
    hub = FakeHub("hub", "a", "b", "c", stages=3)
    hub.server.start()
    await hub.server.wait_live(5)
    await hub.standbys(3)
    hub.chain.running = 1
    hub.falls_silent("b", told_by="a")
    hub.falls_silent("a", told_by="b")
    await hub.server.wait_live(5)
    assert hub.chain.devices == ("hub", "a", "c"), "not both, and not the same two again"
    await hub.server.stop("done")


async def test_a_wished_number_of_stages_waits_for_that_many() -> None:
    hub = FakeHub("hub", "a", stages=3)
    hub.server.start()
    assert not await hub.server.wait_live(0.3)
    assert "2 of 3" in hub.server.reason
    hub.come_back("b", session=9)
    await hub.server.wait_live(5)
    assert len(hub.chain.devices) == 3
    await hub.server.stop("done")


async def test_who_does_not_work_is_named_and_why_and_old_plans_are_not_told() -> None:
    hub = FakeHub("hub", "a", stages=2)
    hub.server.start()
    await hub.server.wait_live(5)
    hub.chain.sentences = ("Mended after a PC left.",)
    hub.resting = (("a", "not_consented"), ("hub", "cpu_busy"))
    hub.lose("a")
    hub.lose("hub")
    await hub.until("planning")
    async with asyncio.timeout(5):
        while "of 2" not in hub.chain.reason:
            hub.changes.clear()
            await hub.changes.wait()
    told = "0 of 2 PCs are ready. Not working: a (not consented), hub (cpu busy)."
    assert hub.chain.reason == told
    assert hub.chain.view().plan == ""
    await hub.server.stop("done")


def test_no_sentence_names_a_whole_office() -> None:
    idle = [(f"pc-{i}", "paused") for i in range(40)]
    said = too_few(1, 3, idle)
    assert said.endswith("pc-4 (paused) and 35 more.")
    assert too_few(1, 3, ()) == "1 of 3 PCs are ready."


async def test_a_pc_that_comes_back_is_taken_in_when_nobody_waits() -> None:
    hub = FakeHub("hub", "a", "b", stages=3)
    hub.server.start()
    await hub.server.wait_live(5)
    hub.chain.running = 1
    hub.lose("b")
    await hub.server.wait_live(5)
    assert hub.chain.devices == ("hub", "a", "a")
    hub.come_back("b", session=9)
    await asyncio.sleep(0.05)
    assert hub.server.live, "a running answer is not disturbed"
    assert hub.chain.devices == ("hub", "a", "a")
    hub.chain.running = 0
    hub.server.nodes_changed()
    await hub.devices("hub", "a", "b")
    await hub.server.stop("done")


async def test_a_pc_that_contributes_later_is_taken_in_without_being_asked_for() -> None:
    hub = FakeHub("hub")
    hub.users = 8
    hub.server.start()
    await hub.server.wait_live(5)
    hub.chain.running = 4
    hub.come_back("a", session=9)
    await hub.live_chains(2)
    assert [c.devices for c in hub.server.live] == [("hub",), ("a",)], "the first goes on as it was"
    assert "replicas" in hub.chain.view().plan
    await hub.server.stop("done")


async def test_a_replica_that_loses_its_pc_is_given_up_and_the_other_serves_on() -> None:
    hub = FakeHub("hub", "a")
    hub.users = 8
    hub.server.start()
    await hub.live_chains(2)
    hub.lose("a")
    await hub.only_chains(1)
    assert [c.devices for c in hub.server.live] == [("hub",)]
    await hub.server.stop("done")


async def test_one_user_gets_one_pc_and_another_holds_a_copy() -> None:
    hub = FakeHub("hub", "a", "b")
    hub.users = 1
    hub.server.start()
    await hub.server.wait_live(5)
    assert hub.chain.devices == ("hub",)
    await hub.standbys(1)
    hub.chain.running = 1
    assigned = len(hub.assigned)
    hub.lose("hub")
    await hub.server.wait_live(5)
    assert hub.chain.devices[0] in ("a", "b")
    assert len(hub.assigned) == assigned
    await hub.server.stop("done")


async def test_more_pcs_than_layers_do_not_disturb_a_live_chain() -> None:
    hub = FakeHub("hub", "a", "b", layers=2, stages=2)
    hub.server.start()
    await hub.server.wait_live(5)
    epoch = hub.chain.epoch
    hub.come_back("c", session=9)
    await asyncio.sleep(0)
    hub.server.nodes_changed()
    await asyncio.sleep(0)
    assert hub.chain.live
    assert (hub.chain.devices, hub.chain.epoch) == (("hub", "a"), epoch)
    await hub.server.stop("done")


async def test_a_restarted_pc_is_not_taken_for_its_old_self() -> None:
    hub = FakeHub("hub", "a", stages=2)
    hub.server.start()
    await hub.server.wait_live(5)
    hub.lose("a")
    hub.come_back("a", session=9)
    await hub.server.wait_live(5)
    assert hub.chain.devices == ("hub", "a")
    assert [d for d, _ in hub.assigned].count("a") == 2
    await hub.server.stop("done")


async def test_the_head_may_be_on_any_pc() -> None:
    hub = FakeHub("a", "b", stages=2)
    hub.server.start()
    await hub.server.wait_live(5)
    assert hub.chain.devices == ("a", "b")
    assert [m.head for _, m in hub.assigned] == [True, False]
    await hub.server.stop("done")


async def test_stop_releases_every_stage() -> None:
    hub = FakeHub("hub", "a", "b", stages=3)
    hub.server.start()
    await hub.server.wait_live(5)
    await hub.server.stop("done")
    assert {d for d, _ in hub.released} == {"hub", "a", "b"}

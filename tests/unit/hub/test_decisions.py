"""What the admin says of one PC takes effect at once, lasts, and is written down."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import get_args

import pytest

from fleetapp.errors import BadRequest, NotAMember, NotFound, StorageError
from fleetapp.hub.decisions import decide, rename, rename_fleet
from fleetapp.hub.state import StateFile
from fleetapp.platform import current
from fleetapp.types import Decision
from tests.support.hubs import Line, TestHub


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[TestHub]:
    made = TestHub(tmp_path)
    yield made
    await made.hub.stop()


def audit(home: TestHub) -> list[tuple[str, str, str]]:
    """Who did what, and to which PC."""
    lines = (home.folder / "audit.jsonl").read_text("utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    return [(e["actor"], e["action"], e.get("name", "")) for e in entries]


async def test_yes_and_no_to_pcs_that_wait(home: TestHub) -> None:
    code = home.codes.create(hours=1, uses=2, approve=True).code
    anna, ben = home.newcomer("anna"), home.newcomer("ben")
    for identity, name in ((anna, "ANNA-PC"), (ben, "BEN-PC")):
        assert home.ask(identity, code, name=name).pending
    watched = home.hub.listen()
    decide(home.hub, "approve", anna.device_id)
    assert watched.is_set()
    watched.clear()
    decide(home.hub, "decline", ben.device_id)
    assert watched.is_set(), "an open list of PCs changes at once"
    home.hub.unlisten(watched)
    assert home.ask(anna, code).leaf
    with pytest.raises(NotAMember, match="declined"):
        home.ask(ben, code)
    assert {n.name: n.state for n in home.hub.view().nodes} == {
        "hub": "offline",
        "ANNA-PC": "offline",
    }
    assert ("local", "approved", "ANNA-PC") in audit(home)
    assert ("local", "declined", "BEN-PC") in audit(home)


async def test_a_revoked_member_is_out_at_once_and_reinstated_by_an_admin_alone(
    home: TestHub,
) -> None:
    anna = home.enrol("anna")
    device, line = anna.identity.device_id, Line(home, anna)
    decide(home.hub, "revoke", device)
    await line.until_closed()
    assert not home.trust.allows(anna.identity.spki)
    assert home.hub.candidates() == ()
    home.restart()
    with pytest.raises(NotAMember):
        home.ask(anna.identity, home.codes.create(hours=1).code)
    decide(home.hub, "reinstate", device)
    assert home.trust.allows(anna.identity.spki)
    assert home.members[device].roles == ("member",)
    assert audit(home) == [("local", "revoked", "anna"), ("local", "reinstated", "anna")]


async def test_saying_it_twice_changes_nothing(home: TestHub) -> None:
    device = home.enrol("anna").identity.device_id
    decide(home.hub, "revoke", device)
    epoch = home.trust.epoch
    decide(home.hub, "revoke", device)
    assert home.trust.epoch == epoch
    decide(home.hub, "reinstate", device)
    decide(home.hub, "reinstate", device)
    assert home.trust.epoch == epoch + 1
    assert len(audit(home)) == 2


async def test_the_coordinator_cannot_shut_itself_out(home: TestHub) -> None:
    with pytest.raises(BadRequest, match="coordinator"):
        decide(home.hub, "revoke", home.me.identity.device_id)
    assert home.trust.allows(home.me.identity.spki)


async def test_a_drained_pc_is_a_candidate_only_for_what_it_has(home: TestHub) -> None:
    anna = home.enrol("anna")
    Line(home, anna)
    device = anna.identity.device_id
    decide(home.hub, "drain", device)
    assert [(c.name, c.draining) for c in home.hub.candidates()] == [("anna", True)]
    assert [n.drained for n in home.hub.view().nodes if n.name == "anna"] == [True]
    decide(home.hub, "drain", device)
    home.restart()
    Line(home, anna)
    assert [c.draining for c in home.hub.candidates()] == [True], "it is on disk"
    decide(home.hub, "undrain", device)
    assert [c.draining for c in home.hub.candidates()] == [False]
    assert audit(home) == [("local", "drained", "anna"), ("local", "undrained", "anna")]


async def test_an_evicted_pc_may_come_again_with_a_code(home: TestHub) -> None:
    anna = home.enrol("anna")
    line = Line(home, anna)
    device = anna.identity.device_id
    decide(home.hub, "evict", device)
    await line.until_closed()
    assert device not in home.members
    assert home.ask(anna.identity, home.codes.create(hours=1).code).leaf
    decide(home.hub, "revoke", device)
    with pytest.raises(BadRequest, match="shut out already"):
        decide(home.hub, "evict", device)
    with pytest.raises(BadRequest, match="coordinator"):
        decide(home.hub, "evict", home.me.identity.device_id)
    assert not home.trust.allows(anna.identity.spki)


@pytest.mark.parametrize("decision", get_args(Decision))
async def test_nobody_has_that_id(home: TestHub, decision: Decision) -> None:
    before = home.trust.epoch
    with pytest.raises(NotFound, match="nobody"):
        decide(home.hub, decision, "nobody")
    assert home.trust.epoch == before


async def test_two_pcs_cannot_be_given_the_same_name(home: TestHub) -> None:
    anna, ben = (home.enrol(n).identity.device_id for n in ("ANNA-PC", "BEN-PC"))
    for name in ("ANNA-PC", " anna-pc "):
        with pytest.raises(BadRequest, match=f"called ANNA-PC .{anna}") as refused:
            rename(home.hub, ben, name)
        assert "no other PC has" in refused.value.remedy
    rename(home.hub, anna, "anna-pc")  # its own, written differently
    decide(home.hub, "evict", anna)
    rename(home.hub, ben, "ANNA-PC")
    assert home.hub.membership.members[ben].name == "ANNA-PC"


@pytest.mark.parametrize("name", ["a\tb", "a\x1b[2J", "a\nb", "n" * 65])
async def test_a_name_that_is_none_is_refused_with_what_to_do(home: TestHub, name: str) -> None:
    anna = home.enrol("ANNA-PC").identity.device_id
    for refuse in (lambda: rename(home.hub, anna, name), lambda: rename_fleet(home.hub, name)):
        with pytest.raises(BadRequest) as refused:
            refuse()
        assert "control characters" in refused.value.remedy


@pytest.mark.parametrize("raw", [b"", b"{", b"[]"])
def test_a_damaged_state_speaks_of_the_recovery_file(tmp_path: Path, raw: bytes) -> None:
    file = tmp_path / "state.json"
    file.write_bytes(raw)
    with pytest.raises(StorageError, match="damaged") as told:
        StateFile(file, current()).load()
    assert "fleetapp fleet recovery use" in told.value.remedy
    assert file.read_bytes() == raw

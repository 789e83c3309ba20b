"""Who may call what on the hub's front: strangers, members, admins."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fleetapp.agent.admin import RemoteAdmin
from fleetapp.errors import BadRequest, NotAMember, NotFound
from fleetapp.fleet.membership import set_roles
from fleetapp.hub.admin import LOCAL, HubAdmin
from fleetapp.hub.decisions import decide, rename
from fleetapp.types import Role
from tests.support.control_server import Caller, ControlServer, Linked, as_member, as_stranger
from tests.support.fleet import TestMember

JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlServer]:
    async with ControlServer(tmp_path) as running:
        yield running


def give(server: ControlServer, member: TestMember, *roles: Role) -> None:
    device = member.identity.device_id
    server.home.hub.change_membership(lambda m: set_roles(m, device, roles))


CALLS = [
    ("POST", "fleet/approve", {"device_id": "nobody"}, 404),
    ("POST", "fleet/decline", {"device_id": "nobody"}, 404),
    ("POST", "fleet/revoke", {"device_id": "nobody"}, 404),
    ("POST", "fleet/reinstate", {"device_id": "nobody"}, 404),
    ("POST", "fleet/role", {"device_id": "nobody", "role": "admin"}, 404),
    ("POST", "fleet/rename", {"device_id": "nobody", "name": "x"}, 404),
    ("POST", "fleet/name", {"name": "Office Lisbon"}, 200),
    ("GET", "fleet/codes", None, 200),
    ("POST", "fleet/codes", {"hours": 1}, 200),
    ("DELETE", "fleet/codes/none", None, 404),
    ("GET", "keys", None, 200),
    ("POST", "keys", {"name": "editor"}, 200),
    ("DELETE", "keys/none", None, 404),
    ("GET", "fleet/audit", None, 200),
    ("GET", "fleet/audit/check", None, 200),
]


async def test_only_admins_get_past_the_door(server: ControlServer) -> None:
    anna = server.home.enrol("anna")

    async def each(caller: Caller, prefix: str) -> list[tuple[int, str]]:
        answers = []
        async with caller:
            for method, path, body, _ in CALLS:
                data = None if body is None else json.dumps(body)
                answer = await caller.call(f"{prefix}/{path}", method, data, **JSON)
                answers.append((answer.status, answer.code if answer.status >= 400 else ""))
        return answers

    no = [(403, "not_a_member")] * len(CALLS)
    for spelling in ("/admin", "/x/../admin", "//admin", "/ADMIN"):
        for answer in await each(as_member(server, anna), spelling):
            assert answer in (no[0], (404, "not_found"))
    assert await each(as_member(server, anna), "/admin") == no
    assert await each(as_stranger(server), "/admin") == no
    assert server.home.codes.views() == ()
    assert server.home.hub.keys.list() == ()
    give(server, anna, "admin", "member")
    got = await each(as_member(server, anna), "/admin")
    assert [status for status, _ in got] == [status for *_, status in CALLS]
    give(server, anna, "member")
    assert await each(as_member(server, anna), "/admin") == no


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("fleet/role", {"device_id": "x", "role": "coordinator"}),
        ("fleet/role", {"device_id": "x"}),
        ("fleet/role", {"device_id": 3, "role": "admin"}),
        ("fleet/rename", {"device_id": "x"}),
        ("fleet/name", {"name": "  "}),
        ("fleet/name", {"name": "x" * 65}),
        ("fleet/name", {"name": "a\nb"}),
        ("fleet/audit?last=x", None),
        ("fleet/audit?last=0", None),
        ("fleet/audit?last=99999999", None),
    ],
)
async def test_what_makes_no_sense_is_a_bad_request(
    server: ControlServer, path: str, body: object
) -> None:
    anna = server.home.enrol("anna")
    give(server, anna, "admin")
    async with as_member(server, anna) as caller:
        data = None if body is None else json.dumps(body)
        answer = await caller.call(f"/admin/{path}", "POST" if body else "GET", data, **JSON)
        assert (answer.status, answer.code) == (400, "bad_request")


async def test_an_admin_elsewhere_does_what_the_coordinator_could(server: ControlServer) -> None:
    home = server.home
    anna, ben = home.enrol("anna"), home.enrol("ben")
    give(server, anna, "admin", "member")
    async with Linked(server, anna) as linked:
        await linked.until_connected()
        admin = RemoteAdmin(linked.link)
        code = await admin.make_code(1.0, 2, True)
        assert code.code.startswith("FLEET-")
        assert [c.code for c in await admin.codes()] == [""], "shown once"
        carl = home.newcomer("carl")
        assert home.ask(carl, code.code).pending
        await admin.decide("approve", carl.device_id)
        assert home.ask(carl, code.code).leaf
        await admin.decide("revoke", carl.device_id)
        assert not home.trust.allows(carl.spki)
        await admin.set_role(ben.identity.device_id, "admin")
        assert home.members[ben.identity.device_id].role == "admin"
        key = await admin.make_key("editor", 0, 0)
        await admin.revoke_key(key.id)
        await admin.revoke_code(code.code_id)
        with pytest.raises(NotFound):
            await admin.decide("approve", "nobody")
        coordinator = home.me.identity.device_id
        with pytest.raises(BadRequest, match="coordinator"):
            await admin.decide("revoke", coordinator)
        with pytest.raises(BadRequest, match="coordinates"):
            await admin.set_role(coordinator, "member")
        said = [(e.actor, e.action) for e in await admin.audit(100)]
        assert said == [
            (anna.identity.device_id, "code_created"),
            (carl.device_id, "join_asked"),
            (anna.identity.device_id, "approved"),
            (carl.device_id, "certificate_issued"),
            (anna.identity.device_id, "revoked"),
            (anna.identity.device_id, "role_set"),
            (anna.identity.device_id, "key_created"),
            (anna.identity.device_id, "key_revoked"),
            (anna.identity.device_id, "code_revoked"),
        ]
        check = await admin.verify_audit("")
        assert (check.entries, check.problems) == (9, ())
        # The admin takes the role from itself, and can do no more from then on.
        await admin.set_role(anna.identity.device_id, "member")
        with pytest.raises(NotAMember, match="is not admin or coordinator"):
            await admin.keys()


async def test_a_revoked_admin_is_a_plain_member_when_let_in_again(server: ControlServer) -> None:
    home, anna = server.home, server.home.enrol("anna")
    here = HubAdmin(home.hub, "local")
    await here.set_role(anna.identity.device_id, "admin")
    decide(home.hub, "revoke", anna.identity.device_id)
    with pytest.raises(NotAMember):
        await here.set_role(anna.identity.device_id, "admin")
    decide(home.hub, "reinstate", anna.identity.device_id)
    assert home.members[anna.identity.device_id].roles == ("member",)
    roles = [e for e in await here.audit(9) if e.action == "role_set"]
    assert roles[0].details["role"] == "admin"


async def test_it_is_noted_on_which_pc_a_key_was_made(server: ControlServer) -> None:
    home = server.home
    anna, here = home.enrol("anna").identity.device_id, home.me.identity.device_id
    await HubAdmin(home.hub, LOCAL).make_key("mine", 0, 0)
    admin = HubAdmin(home.hub, anna)
    await admin.make_key("editor", 0, 0)
    name = home.hub.membership.members[here].name
    assert [(k.made_by, k.made_on) for k in await admin.keys()] == [(here, name), (anna, "anna")]
    rename(home.hub, anna, "Anna's desk")
    assert (await admin.keys())[1].made_on == "Anna's desk", "as it is called now"
    decide(home.hub, "evict", anna)
    assert (await admin.keys())[1].made_on == "anna", "as it was called then"


async def test_an_admin_that_was_put_out_is_told_so(server: ControlServer) -> None:
    anna = server.home.enrol("anna")
    give(server, anna, "admin", "member")
    async with Linked(server, anna) as linked:
        await linked.until_connected()
        admin = RemoteAdmin(linked.link)
        decide(server.home.hub, "evict", anna.identity.device_id)
        await linked.until(lambda: linked.link.removed)
        with pytest.raises(NotAMember, match="does not count this PC as a member"):
            await admin.keys()

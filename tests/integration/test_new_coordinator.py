"""The fleet goes on when its coordinator is gone for good, is moved, or comes back too late."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from fleetapp.errors import BadRequest, FleetError, UserError, WrongFleet
from tests.support.agents import AgentProcess

PASSPHRASE = "korrekt Pferd 電池"


class Fleet(NamedTuple):
    """A coordinator and two members, all online."""

    hub: AgentProcess
    anna: AgentProcess
    ben: AgentProcess


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """One of its own, for a test that turns it upside down."""
    with founded(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """The first test leaves it as it found it, the second takes the coordinator away."""
    with founded(tmp_path_factory.mktemp("fleet")) as made:
        yield made


@contextmanager
def founded(tmp_path: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        made = Fleet(
            *(stack.enter_context(AgentProcess(tmp_path / n, n)) for n in ("hub", "anna", "ben"))
        )
        code = made.hub.create()
        for member in (made.anna, made.ben):
            member.post("fleet/join", code=code)
        for name in ("anna", "ben"):
            made.hub.until_member_is(name, "online")
        yield made


def command(agent: AgentProcess, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fleetapp.cli", *args, "--state", str(agent.home)],
        env=agent.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def role(agent: AgentProcess) -> str:
    return str(agent.get("status")["role"])


def online(agent: AgentProcess, *names: str) -> bool:
    try:
        members = agent.members()
    except FleetError:
        return False
    return all(members.get(n) == "online" for n in names)


def kept_list(agent: AgentProcess) -> bytes:
    """The membership list on its disk."""
    signed = json.loads((agent.home / "identity/fleet/membership.json").read_text("utf-8"))
    return base64.b64decode(signed["payload"])


def actions(agent: AgentProcess) -> list[str]:
    return [e["action"] for e in agent.get("fleet/audit?last=100")]


def test_the_office_is_moved_to_a_living_member_and_back(shared: Fleet) -> None:
    hub, anna, ben = shared
    hub.post("keys", name="editor")
    with pytest.raises(UserError, match="not the coordinator"):
        ben.post("fleet/move", device_id=ben.get("status")["device_id"])
    with pytest.raises(UserError, match="already"):
        hub.post("fleet/move", device_id=hub.get("status")["device_id"])
    for old, new in ((hub, anna), (anna, hub)):
        old.post("fleet/move", device_id=new.get("status")["device_id"])
        assert role(old) == "member"
        new.until(lambda a: role(a) == "coordinator")
        new.until(lambda a: online(a, "hub", "anna", "ben"))
        assert not (old.home / "hub" / "authority.key").exists()
        assert [k["name"] for k in new.get("keys")] == ["editor"]
        assert "took_over" in actions(new)
    log = (anna.home / "hub" / "audit.jsonl").read_text("utf-8")
    said = [json.loads(line)["action"] for line in log.splitlines()]
    assert [a for a in said if a.startswith("coordinator")] == [
        "coordinator_offered",
        "coordinator_moved",
    ]


def test_a_member_takes_over_with_the_recovery_file(shared: Fleet) -> None:
    hub, anna, ben = shared
    file = hub.post("fleet/recovery/export", passphrase=PASSPHRASE)["file"]
    key = hub.post("keys", name="later")  # not in the file, and so worthless afterwards
    code = hub.code()
    hub.post("fleet/revoke", device_id=ben.get("status")["device_id"])
    hub.post("fleet/reinstate", device_id=ben.get("status")["device_id"])
    hub.until_member_is("ben", "online")
    with pytest.raises(BadRequest, match="already"):
        hub.post("fleet/recovery/use", file=file, passphrase=PASSPHRASE)
    hub.kill()

    with pytest.raises(BadRequest, match="passphrase"):
        anna.post("fleet/recovery/use", file=file, passphrase="wrong" * 3)
    anna.post("fleet/recovery/use", file=file, passphrase=PASSPHRASE)
    assert role(anna) == "coordinator"
    anna.until(lambda a: online(a, "anna", "ben"))
    assert anna.members() == {"anna": "online", "ben": "online", "hub": "offline"}
    assert ben.get("status")["fleet_name"] == "office"
    assert key["id"] not in [k["id"] for k in anna.get("keys")]
    assert len(anna.get("fleet/codes")) == 1, "codes of the time of the file live on"
    assert actions(anna)[0] == "took_over"
    with pytest.raises(FleetError):
        ben.post("fleet/join", code=code)

    # The old one comes back, still thinking that the fleet is its own.
    hub.start()
    hub.until(lambda a: role(a) == "member")
    anna.until(lambda a: online(a, "hub", "anna", "ben"))
    assert not (hub.home / "hub" / "authority.key").exists(), "what is not needed is not kept"
    for agent in shared:
        roles = {n["name"]: n["role"] for n in agent.get("fleet")["nodes"]}
        assert roles == {"hub": "member", "anna": "coordinator", "ben": "member"}
    anna.post("fleet/role", device_id=ben.get("status")["device_id"], role="admin")


@pytest.mark.slow
def test_a_fresh_pc_takes_over_and_a_stolen_coordinator_is_out(
    fleet: Fleet, tmp_path: Path
) -> None:
    hub, anna, ben = fleet
    first = hub.code(uses=5)
    hub.stop()
    state = json.loads((hub.home / "hub" / "state.json").read_text("utf-8"))
    state["wanted"] = [{"model_id": "tiny", "precision": "exact"}]
    (hub.home / "hub" / "state.json").write_text(json.dumps(state), "utf-8")
    hub.start()
    file = hub.post("fleet/recovery/export", passphrase=PASSPHRASE)["file"]
    hub.until_member_is("anna", "online")
    hub.post("fleet/revoke", device_id=ben.get("status")["device_id"])
    anna.until(lambda a: b'"revoked"' in kept_list(a))
    hub.kill()
    with (
        AgentProcess(tmp_path / "fresh", "fresh") as fresh,
        AgentProcess(tmp_path / "late", "late") as late,
        AgentProcess(tmp_path / "strange", "strange") as strange,
    ):
        strange.create("neighbours")
        with pytest.raises(BadRequest):
            strange.post("fleet/recovery/use", file=file, passphrase=PASSPHRASE)
        late.post("fleet/join", code=strange.code())
        with pytest.raises(WrongFleet):
            late.post("fleet/recovery/use", file=file, passphrase=PASSPHRASE)
        assert late.get("status")["fleet_name"] == "neighbours", "nothing has changed"
        late.until(lambda a: a.get("status")["state"] == "ready")
        late.post("fleet/leave")

        fresh.post("fleet/recovery/use", file=file, passphrase=PASSPHRASE, revoke_old=True)
        fresh.until(lambda a: online(a, "fresh", "anna"))
        # The file is older than that; anna has brought the news.
        fresh.until_member_is("ben", "revoked")
        chain = fresh.get("fleet")["chains"][0]
        assert (chain["model"], chain["precision"]) == ("tiny", "exact"), "what was wanted still is"
        fresh.post("contribute", on=True)
        fresh.until(lambda a: "tiny" in a.get("fleet")["chains"][0]["reason"])
        late.post("fleet/join", code=first)
        assert fresh.members()["late"] == "online"
        hub.start()
        hub.until(lambda a: a.get("status")["role"] == "member")
        hub.until(lambda a: a.get("status")["state"] == "connecting")
        assert fresh.members()["hub"] == "revoked"
        assert online(anna, "anna", "fresh")
        said = [e for e in fresh.get("fleet/audit?last=100") if e["action"] == "took_over"]
        assert said[0]["details"]["old"] == "hub"
        assert len(said[0]["details"]["audit_before"]) == 64, "the old log's newest hash"


@pytest.mark.slow
def test_a_pc_that_cannot_take_the_office_says_why_and_all_is_as_before(
    fleet: Fleet, tmp_path: Path
) -> None:
    hub, anna, _ = fleet
    (anna.home / "hub").write_text("a file in the way")
    with pytest.raises(FleetError) as caught:
        hub.post("fleet/move", device_id=anna.get("status")["device_id"])
    assert caught.value.code in ("storage_error", "read_only")
    assert (role(hub), role(anna)) == ("coordinator", "member")
    hub.code()  # it still may change the fleet
    hub.until(lambda a: online(a, "hub", "anna", "ben"))
    assert "coordinator_moved" not in actions(hub)


@pytest.mark.slow
def test_two_that_take_over_at_once_do_not_fight(fleet: Fleet) -> None:
    hub, anna, ben = fleet
    file = hub.post("fleet/recovery/export", passphrase=PASSPHRASE)["file"]
    hub.kill()
    for agent in (anna, ben):
        agent.post("fleet/recovery/use", file=file, passphrase=PASSPHRASE)
    anna.until(lambda _: sorted([role(anna), role(ben)]) == ["coordinator", "member"])
    winner = anna if role(anna) == "coordinator" else ben
    winner.until(lambda a: online(a, "anna", "ben"))
    hub.start()
    winner.until(lambda a: online(a, "hub", "anna", "ben"))
    assert role(hub) == "member"


@pytest.mark.slow
def test_the_command_line_does_it_too(fleet: Fleet, tmp_path: Path) -> None:
    hub, anna, ben = fleet
    secret, file = tmp_path / "passphrase", tmp_path / "recovery.txt"
    secret.write_text(PASSPHRASE + "\n", "utf-8")
    options = ("--passphrase-file", str(secret))
    done = command(hub, "fleet", "recovery", "export", str(file), *options)
    assert done.returncode == 0, done.stderr
    if sys.platform != "win32":
        assert file.stat().st_mode & 0o077 == 0
    again = command(hub, "fleet", "recovery", "export", str(file), *options)
    assert (again.returncode, "exists already" in again.stderr) == (2, True)
    moved = command(hub, "fleet", "move-coordinator", "ben", "--yes")
    assert moved.returncode == 0, moved.stderr
    ben.until(lambda a: online(a, "hub", "anna", "ben"))
    ben.kill()
    done = command(anna, "fleet", "recovery", "use", str(file), "--yes", *options)
    assert done.returncode == 0, done.stderr
    anna.until(lambda a: online(a, "hub", "anna"))
    ben.start()
    ben.until(lambda a: role(a) == "member")
    anna.stop()
    anna.start()
    assert role(anna) == "coordinator", "after a restart too"
    anna.until(lambda a: online(a, "hub", "anna", "ben"))

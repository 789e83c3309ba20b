"""Agents as people start them: processes that find one another, join, leave and die."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from cryptography import x509

from fleetapp.agent.belonging import GREET_DEADLINE
from fleetapp.errors import (
    AlreadyMember,
    BadJoinCode,
    BadRequest,
    Cancelled,
    ExpiredJoinCode,
    FleetError,
    NoHub,
    NotAMember,
    PortTaken,
    RevokedJoinCode,
    StorageError,
    UsedUpJoinCode,
    UserError,
    WrongFleet,
)
from fleetapp.fleet import joincode
from fleetapp.fleet.authority import Authority
from fleetapp.fleet.control import Signed
from fleetapp.fleet.enrolment import FleetStore
from fleetapp.fleet.identity import Identity
from fleetapp.platform.paths import Paths
from tests.support.agents import AgentProcess


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    with AgentProcess(tmp_path_factory.mktemp("hub") / "state", "hub") as agent:
        agent.create("office")
        yield agent


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    """The coordinator of another fleet on the same network."""
    with AgentProcess(tmp_path_factory.mktemp("other") / "state", "other-hub") as agent:
        agent.create("neighbours")
        yield agent


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    with AgentProcess(tmp_path_factory.mktemp("new") / "state", "newcomer") as agent:
        yield agent


@pytest.fixture
def alone(newcomer: AgentProcess) -> Iterator[AgentProcess]:
    """An agent in no fleet, before and after."""
    yield newcomer
    if newcomer.get("status")["fleet_id"]:
        newcomer.post("fleet/leave")


def epoch_on_disk(agent: AgentProcess) -> int:
    file = agent.home / "identity" / "fleet" / "membership.json"
    signed = msgspec.json.decode(file.read_bytes(), type=Signed)
    return int(json.loads(signed.payload)["epoch"])


# ------------------------------------------------------------------ joining


def test_joins_by_mdns_and_is_seen(coordinator: AgentProcess, alone: AgentProcess) -> None:
    status = alone.post("fleet/join", code=coordinator.code())
    assert status["fleet_name"] == "office"
    coordinator.until_member_is("newcomer", "online")
    alone.until(lambda a: a.get("status")["state"] == "ready")
    assert alone.members() == coordinator.members(), "a member sees the same fleet"


def test_a_member_keeps_every_newer_list(
    coordinator: AgentProcess, alone: AgentProcess, tmp_path: Path
) -> None:
    alone.post("fleet/join", code=coordinator.code())
    with AgentProcess(tmp_path / "state", "third") as third:
        third.post("fleet/join", code=coordinator.code())
        third.post("fleet/leave")
    alone.until(lambda a: epoch_on_disk(a) == epoch_on_disk(coordinator))
    assert alone.get("status")["state"] == "ready"
    log = (alone.home / "logs" / "agent.jsonl").read_text("utf-8")
    assert "starts at epoch" not in log, "and never had to ask for a whole one"


def test_joins_with_an_address(coordinator: AgentProcess, alone: AgentProcess) -> None:
    address = coordinator.hub_address
    status = alone.post("fleet/join", code=coordinator.code(), hub_address=address)
    assert status["fleet_name"] == "office"
    alone.until(lambda a: a.hub_address == address)


def test_of_two_fleets_the_codes_own_is_joined(
    coordinator: AgentProcess, elsewhere: AgentProcess, alone: AgentProcess
) -> None:
    for hub, name in ((coordinator, "office"), (elsewhere, "neighbours"), (coordinator, "office")):
        assert alone.post("fleet/join", code=hub.code())["fleet_name"] == name
        hub.until_member_is("newcomer", "online")
        alone.post("fleet/leave")
        assert "newcomer" not in hub.members()


def test_a_second_fleet_is_refused_while_in_one(
    coordinator: AgentProcess, elsewhere: AgentProcess, alone: AgentProcess
) -> None:
    alone.post("fleet/join", code=coordinator.code())
    with pytest.raises(AlreadyMember, match="office") as caught:
        alone.post("fleet/join", code=elsewhere.code())
    assert "leave" in caught.value.remedy.lower()
    with pytest.raises(AlreadyMember):
        alone.create("mine")


# ------------------------------------------------------------------ codes that do not work


def refused(agent: AgentProcess, code: str, hub_address: str = "") -> FleetError:
    """The error; whatever it is, nothing is left of the attempt."""
    with pytest.raises(FleetError) as caught:
        agent.post("fleet/join", code=code, hub_address=hub_address)
    assert agent.get("status")["state"] == "not_joined"
    assert not (agent.home / "identity" / "fleet").exists()
    assert caught.value.message.endswith(".")
    assert caught.value.remedy
    return caught.value


def test_an_unknown_code(coordinator: AgentProcess, alone: AgentProcess) -> None:
    known = joincode.decode(coordinator.code())
    error = refused(alone, joincode.encode(joincode.JoinCode(known.spki_prefix, b"0123456789")))
    assert type(error) is BadJoinCode
    assert "does not know" in error.message


def test_an_expired_code(coordinator: AgentProcess, alone: AgentProcess) -> None:
    error = refused(alone, coordinator.code(hours=1e-6))
    assert isinstance(error, ExpiredJoinCode)
    assert "expired" in error.message


def test_a_used_up_code(coordinator: AgentProcess, alone: AgentProcess, tmp_path: Path) -> None:
    code = coordinator.code(uses=1)
    with AgentProcess(tmp_path / "first", "first") as first:
        first.post("fleet/join", code=code)
        assert isinstance(refused(alone, code), UsedUpJoinCode)
        first.post("fleet/leave")
    assert isinstance(refused(alone, code), UsedUpJoinCode), "leaving does not give a use back"


def test_a_revoked_code(coordinator: AgentProcess, alone: AgentProcess) -> None:
    made = coordinator.post("fleet/codes")
    coordinator.call("DELETE", f"local/v1/fleet/codes/{made['code_id']}")
    assert isinstance(refused(alone, made["code"]), RevokedJoinCode)


@pytest.mark.parametrize("code", ["", "hello", "FLEET-", "FLEET-12345", "x" * 1000])
def test_what_is_no_code(alone: AgentProcess, code: str) -> None:
    assert isinstance(refused(alone, code), BadJoinCode)


def test_a_mistyped_code(coordinator: AgentProcess, alone: AgentProcess) -> None:
    code = coordinator.code()
    wrong = code[:10] + ("A" if code[10] != "A" else "B") + code[11:]
    error = refused(alone, wrong)
    assert isinstance(error, BadJoinCode)
    assert "mistyped" in error.message
    assert wrong not in error.message, "a code is not repeated where others may read it"
    # As people type it, a good one is good enough.
    typed = code.lower().replace("-", " ").replace("0", "o").replace("1", "l")
    assert alone.post("fleet/join", code=f"  {typed} ")["fleet_name"] == "office"


def test_another_fleets_code_at_this_fleets_address(
    coordinator: AgentProcess, elsewhere: AgentProcess, alone: AgentProcess
) -> None:
    error = refused(alone, elsewhere.code(), coordinator.hub_address)
    assert isinstance(error, WrongFleet)
    assert "another fleet" in error.message


def test_nobody_at_an_address(coordinator: AgentProcess, alone: AgentProcess) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    error = refused(alone, coordinator.code(), f"127.0.0.1:{port}")
    assert isinstance(error, NoHub)
    assert str(port) in error.message
    assert isinstance(refused(alone, coordinator.code(), "nonsense"), BadRequest)


def test_the_command_line_says_it_in_one_sentence(
    coordinator: AgentProcess, alone: AgentProcess
) -> None:
    code = coordinator.code(hours=1e-6)
    done = subprocess.run(
        [sys.executable, "-m", "fleetapp.cli", "fleet", "join", code, "--state", str(alone.home)],
        env=alone.env,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == ExpiredJoinCode.exit_code
    assert "This join code has expired." in done.stderr
    assert "Traceback" not in done.stderr
    assert code not in done.stderr


# ------------------------------------------------------------------ the admin's word


def command(agent: AgentProcess, *args: str) -> subprocess.CompletedProcess[str]:
    """``fleetapp ARGS`` on that PC, nobody at the keyboard."""
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


def test_a_pc_waits_for_a_yes_is_shut_out_and_let_in_again(
    coordinator: AgentProcess, alone: AgentProcess
) -> None:
    device = alone.get("status")["device_id"]
    code = coordinator.code(approve=True)
    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(command, alone, "fleet", "join", code)
        coordinator.until_member_is("newcomer", "pending")
        alone.until(lambda a: device in a.get("status")["reason"])
        assert "pending" in command(coordinator, "fleet", "nodes").stdout
        # Without a keyboard a name is not enough: nobody has compared the id.
        assert command(coordinator, "fleet", "approve", "newcomer").returncode != 0
        assert coordinator.members()["newcomer"] == "pending"
        approved = command(coordinator, "fleet", "approve", device)
        assert (approved.returncode, device in approved.stdout) == (0, True)
        joined = joining.result(30)
    assert joined.returncode == 0, joined.stderr
    assert device in joined.stderr, "the other end shows what is to be compared"
    coordinator.until_member_is("newcomer", "online")
    with pytest.raises(NotAMember, match="is not admin"):
        alone.post("fleet/revoke", device_id=coordinator.get("status")["device_id"])

    assert command(coordinator, "fleet", "revoke", "newcomer", "--yes").returncode == 0
    assert coordinator.members()["newcomer"] == "revoked"
    alone.until(lambda a: a.get("status")["state"] == "connecting")
    alone.until(lambda a: a.get("status")["removed"])
    assert "does not count this PC as a member" in alone.get("status")["reason"]
    with pytest.raises(NotAMember, match="does not count this PC as a member") as told:
        alone.get("fleet")
    assert "'fleetapp fleet leave' here and join with a code" in told.value.remedy
    assert command(coordinator, "fleet", "reinstate", device[:12]).returncode == 0
    coordinator.until_member_is("newcomer", "online")
    assert not alone.get("status")["removed"]
    lines = (coordinator.home / "hub" / "audit.jsonl").read_text("utf-8").splitlines()
    said = [e["action"] for e in map(json.loads, lines) if e.get("device") == device]
    assert said == ["approved", "revoked", "reinstated"]


def test_a_pc_that_was_put_out_leaves_without_waiting_for_anybody(
    coordinator: AgentProcess, alone: AgentProcess
) -> None:
    alone.post("fleet/join", code=coordinator.code())
    coordinator.until_member_is("newcomer", "online")
    coordinator.post("fleet/evict", device_id=alone.get("status")["device_id"])
    alone.until(lambda a: a.get("status")["removed"])
    begin = time.monotonic()
    alone.post("fleet/leave")
    assert time.monotonic() - begin < GREET_DEADLINE - 1
    assert alone.get("status")["state"] == "not_joined"


def test_a_declined_pc_is_told(coordinator: AgentProcess, alone: AgentProcess) -> None:
    device = alone.get("status")["device_id"]
    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(alone.post, "fleet/join", code=coordinator.code(approve=True))
        coordinator.until_member_is("newcomer", "pending")
        coordinator.post("fleet/decline", device_id=device)
        with pytest.raises(NotAMember, match="declined"):
            joining.result(30)
    assert "newcomer" not in coordinator.members()
    status = alone.get("status")
    assert status["state"] == "not_joined"
    assert "The admin declined to let this PC into the fleet." in status["reason"]
    assert "another join code" in status["reason"]


def test_joining_can_be_called_off_and_leaves_nothing_locked(
    coordinator: AgentProcess, alone: AgentProcess
) -> None:
    device = alone.get("status")["device_id"]
    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(alone.post, "fleet/join", code=coordinator.code(approve=True))
        coordinator.until_member_is("newcomer", "pending")
        status = alone.get("status")
        assert status["joining"] == "approval"
        assert device in status["reason"]
        alone.post("fleet/join/stop")
        with pytest.raises(Cancelled):
            joining.result(30)
    assert alone.get("status").get("joining", "") == ""
    coordinator.post("fleet/decline", device_id=device)  # the list shows it until then
    alone.post("fleet/create", name="Alone after all")
    assert alone.get("status")["role"] == "coordinator"


# ------------------------------------------------------------------ leaving and coming back


def test_leaves_and_joins_again_as_one_member(
    coordinator: AgentProcess, alone: AgentProcess
) -> None:
    code = coordinator.code(uses=1)
    for _ in range(3):
        alone.post("fleet/join", code=code)
        assert list(coordinator.members()).count("newcomer") == 1
        alone.post("fleet/leave")
        assert "newcomer" not in coordinator.members()
        assert alone.get("status")["state"] == "not_joined"
        assert not (alone.home / "identity" / "fleet").exists()
    with pytest.raises(NotAMember):
        alone.post("fleet/leave")


def test_a_killed_member_that_restarts_within_a_second_is_one_member(
    coordinator: AgentProcess, tmp_path: Path
) -> None:
    with AgentProcess(tmp_path / "state", "restarted") as agent:
        device = agent.post("fleet/join", code=coordinator.code())["device_id"]
        coordinator.until_member_is("restarted", "online")
        agent.kill()
        agent.start()
        agent.until(lambda a: a.get("status")["state"] == "ready")
        nodes = [n for n in coordinator.get("fleet")["nodes"] if n["name"] == "restarted"]
        assert [(n["device_id"], n["state"]) for n in nodes] == [(device, "online")]
        agent.post("fleet/leave")


def test_members_come_back_when_the_coordinator_restarts(tmp_path: Path) -> None:
    hub = AgentProcess(tmp_path / "hub", "hub")
    with hub, AgentProcess(tmp_path / "member", "member") as member:
        code = hub.create()
        member.post("fleet/join", code=code)
        member.until(lambda a: a.get("status")["state"] == "ready")
        hub.kill()
        member.until(lambda a: a.get("status")["state"] == "connecting")
        with pytest.raises(NoHub):
            member.get("fleet")
        hub.start()  # on another port: it is found anew
        member.until(lambda a: a.get("status")["state"] == "ready")
        hub.until_member_is("member", "online")
        with AgentProcess(tmp_path / "third", "third") as third:
            third.post("fleet/join", code=code)
            hub.until_member_is("third", "online")


def test_a_coordinator_leaves_last_and_takes_its_codes_and_keys_along(
    coordinator: AgentProcess, tmp_path: Path
) -> None:
    with (
        AgentProcess(tmp_path / "hub", "hub") as hub,
        AgentProcess(tmp_path / "member", "member") as member,
    ):
        code = hub.create("first")
        hub.post("keys", name="editor")
        member.post("fleet/join", code=code)
        with pytest.raises(UserError, match="coordinates 1 other"):
            hub.post("fleet/leave")
        member.post("fleet/leave")
        hub.post("fleet/leave")
        assert hub.get("status")["state"] == "not_joined"
        hub.create("second")
        assert hub.get("keys") == [], "a key of the first fleet does not open the second"
        assert len(hub.get("fleet/codes")) == 1
        with pytest.raises(FleetError):
            member.post("fleet/join", code=code, hub_address=hub.hub_address)


# ------------------------------------------------------------------ certificates grow old


def age(hub: AgentProcess, agent: AgentProcess, days: int) -> x509.Certificate:
    """Make the certificate on a stopped agent's disk one that its fleet issued so long ago."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLEETAPP_KEYRING", "off")
        authority = Authority.open(Paths(hub.home))
    paths = Paths(agent.home)
    identity = Identity.load_or_create(paths)
    issued = datetime.now(UTC) - timedelta(days=days)
    return FleetStore(paths, identity).save_leaf(authority.issue(identity.csr(), now=issued))


def leaf(agent: AgentProcess) -> x509.Certificate:
    return x509.load_pem_x509_certificate((agent.home / "identity/fleet/leaf.crt").read_bytes())


@pytest.mark.parametrize("days", [20, 60], ids=["half its life", "expired"])
def test_certificates_are_renewed_on_every_pc(tmp_path: Path, days: int) -> None:
    hub, member = AgentProcess(tmp_path / "hub", "hub"), AgentProcess(tmp_path / "pc", "member")
    with hub, member:
        member.post("fleet/join", code=hub.create())
        for agent in (member, hub):
            agent.stop()
        old = {agent: age(hub, agent, days) for agent in (hub, member)}
        # The member alone: there is nobody to ask, and it says so.
        member.start()
        member.until(lambda a: bool(a.get("status")["warnings"]))
        assert "could not be renewed" in command(member, "status").stdout
        assert "could not be renewed" in command(member, "doctor").stdout
        hub.start()
        assert leaf(hub) != old[hub], "the coordinator renews its own before anybody connects"
        member.until(lambda a: leaf(a) != old[member], 60)
        hub.until_member_is("member", "online")
        member.until(lambda a: a.get("status")["warnings"] == [])
        for agent in (hub, member):
            assert leaf(agent).not_valid_after_utc > datetime.now(UTC) + timedelta(days=29)


# ------------------------------------------------------------------ one agent a folder


def test_a_second_agent_on_the_same_folder_names_the_first(alone: AgentProcess) -> None:
    code, said = AgentProcess(alone.home).run()
    assert code == 3
    assert str(alone.pid) in said
    assert "already running" in said
    assert "Traceback" not in said
    assert alone.get("status")["state"] == "not_joined", "the first is not disturbed"


def test_a_lock_of_a_dead_agent_holds_nobody_back(tmp_path: Path) -> None:
    with AgentProcess(tmp_path / "state") as agent:
        device = agent.get("status")["device_id"]
        agent.kill()
        assert (agent.home / "agent.lock").exists()
        agent.start()
        assert agent.get("status")["device_id"] == device


# ------------------------------------------------------------------ ports taken


@pytest.fixture
def taken() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield str(server.getsockname()[1])


@pytest.mark.parametrize("setting", ["api_port", "control_port"])
def test_a_fleet_that_cannot_listen_is_not_created(
    tmp_path: Path, taken: str, setting: str
) -> None:
    with AgentProcess(tmp_path / "state", **{setting: taken}) as agent:
        for _ in range(2):
            with pytest.raises(PortTaken) as caught:
                agent.create()
            assert taken in caught.value.message
            assert setting in caught.value.remedy
        assert agent.get("status")["state"] == "not_joined"
        assert not (agent.home / "identity" / "fleet").exists()
        assert list((agent.home / "hub").glob("authority*")) == []
        assert not (agent.home / "hub" / "state.json").exists()
        agent.stop()
        agent.env[f"FLEETAPP_{setting.upper()}"] = "0"
        agent.start()
        assert agent.create()


def test_a_coordinator_whose_port_is_taken_says_so_and_comes_up_when_it_is_free(
    tmp_path: Path,
) -> None:
    with AgentProcess(tmp_path / "state") as agent:
        agent.create()
        fleet = agent.get("status")["fleet_id"]
        agent.stop()
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = str(other.getsockname()[1])
            agent.env["FLEETAPP_CONTROL_PORT"] = port
            agent.start()
            said = agent.get("status")
            assert said["state"] == "attention"
            assert port in said["reason"]
            assert "control_port" in said["reason"]
            assert (said["fleet_id"], said["role"]) == (fleet, "coordinator"), "it still is that"
            with pytest.raises(PortTaken):
                agent.post("fleet/leave")
        agent.until(lambda a: a.get("status")["state"] == "ready")
        assert agent.get("status")["fleet_id"] == fleet


def test_an_agent_that_cannot_listen_ends_with_the_settings_name(
    tmp_path: Path, taken: str
) -> None:
    code, said = AgentProcess(tmp_path / "state", local_port=taken).run()
    assert code == PortTaken.exit_code
    assert taken in said
    assert "local_port" in said
    assert "Traceback" not in said


# ------------------------------------------------------------------ odd and bad folders


def test_a_home_with_spaces_and_other_alphabets(tmp_path: Path) -> None:
    home = tmp_path / "José 測試 dir" / "it's a state"
    with (
        AgentProcess(home / "hub", "Zoë's PC 測試") as hub,
        AgentProcess(home / "member", "member") as member,
    ):
        member.post("fleet/join", code=hub.create("Büro 測試"))
        hub.until_member_is("member", "online")
        assert "Zoë's PC 測試" in member.members()
        assert member.get("status")["fleet_name"] == "Büro 測試"


def test_a_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    code, said = AgentProcess(tmp_path / "file" / "state").run()
    assert code == StorageError.exit_code
    assert "cannot be written" in said
    assert "--state" in said
    assert "Traceback" not in said


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    if os.name == "nt":
        pytest.skip("a read-only folder of Windows can be written by its owner")
    path = tmp_path / "read-only"
    path.mkdir()
    if os.geteuid() != 0:
        path.chmod(0o500)
        yield path
        path.chmod(0o700)
        return
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(path)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("root may write anywhere, and this machine lets nobody mount")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def test_a_read_only_folder_is_said(read_only: Path) -> None:
    for home in (read_only, read_only / "state"):
        code, said = AgentProcess(home).run()
        assert code == StorageError.exit_code
        assert str(home) in said
        assert "cannot be written" in said
        assert "--state" in said
        assert "Traceback" not in said


def test_a_damaged_state_of_the_coordinator_is_named_and_kept(tmp_path: Path) -> None:
    with AgentProcess(tmp_path / "state", "hub") as agent:
        agent.create()
        agent.stop()
        file = agent.home / "hub" / "state.json"
        file.write_text('{"fleet_id": ')
        code, said = agent.run()
        assert code == StorageError.exit_code
        assert str(file) in said
        assert "damaged" in said
        assert "Traceback" not in said
        assert file.read_text() == '{"fleet_id": '
        file.unlink()
        code, said = agent.run()
        assert (code, "missing" in said) == (StorageError.exit_code, True)


def test_a_damaged_membership_is_told_and_can_be_left(
    coordinator: AgentProcess, tmp_path: Path
) -> None:
    with AgentProcess(tmp_path / "state", "member") as agent:
        agent.post("fleet/join", code=coordinator.code())
        agent.stop()
        file = agent.home / "identity" / "fleet" / "membership.json"
        text = file.read_text("utf-8")
        file.write_text(text.replace('"payload"', '"nothing"'), "utf-8")
        agent.start()
        status = agent.get("status")
        assert status["state"] == "attention"
        assert "damaged" in status["reason"]
        with pytest.raises(StorageError):
            agent.post("fleet/join", code=coordinator.code())
        agent.post("fleet/leave")
        assert agent.post("fleet/join", code=coordinator.code())["fleet_name"] == "office"
        agent.post("fleet/leave")


def test_the_token_and_the_keys_are_for_their_owner_only(coordinator: AgentProcess) -> None:
    if os.name == "nt":
        pytest.skip("Windows has access lists instead of these bits")
    private = ["api-token", "identity/device.key", "hub/authority.key", "hub/codes.json"]
    for name in private:
        assert (coordinator.home / name).stat().st_mode & 0o077 == 0, name
    state = json.loads((coordinator.home / "hub" / "codes.json").read_text("utf-8"))
    code = coordinator.code()
    assert code not in json.dumps(state)

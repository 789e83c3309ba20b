import json
import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from fleetapp.agent.checks import CHECKS, CONNECTION, Subject, examine, membership, network, pc
from fleetapp.engine import probe
from fleetapp.errors import PeerTimeout
from fleetapp.fleet.identity import Identity
from fleetapp.platform.fake import FakePlatform
from fleetapp.platform.network import Address
from fleetapp.platform.paths import Paths
from fleetapp.settings import Settings
from fleetapp.types import Finding, SearchView
from tests.support.cli import Run
from tests.support.fake_agent import FakeAgent
from tests.support.fleet import TestFleet

HERE = probe.Probe("2026.4.1-1-abc", (probe.Device("CPU", "A processor"),))


@pytest.fixture(autouse=True)
def _one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real probe has a test of its own; here its answers are given."""
    monkeypatch.setattr(probe, "run", lambda: HERE)
    monkeypatch.setenv("FLEETAPP_MDNS_INTERFACES", "127.0.0.1")


def subject(home: Path, settings: Settings | None = None) -> Subject:
    return Subject(Paths(home), settings or Settings(mdns_interfaces="127.0.0.1"))


def test_a_fresh_pc_has_warnings_but_no_failure(run: Run, tmp_path: Path) -> None:
    code, out, err = run("doctor", "--state", str(tmp_path / "not yet" / "there"))
    assert (code, err) == (0, "")
    assert "FAIL" not in out
    for words in ("Python 3", "CPU (A processor)", "not running", "belongs to no fleet"):
        assert words in out
    assert not (tmp_path / "not yet").exists()


def test_json_lists_every_check_with_a_remedy_where_needed(run: Run) -> None:
    code, out, _ = run("doctor", "--json")
    assert code == 0
    report = json.loads(out)
    assert report["ok"] is True
    assert len(report["checks"]) == len(CHECKS)
    for check in report["checks"]:
        assert check["detail"]
        assert check["remedy"] or check["state"] == "ok"


@pytest.mark.usefixtures("running")
def test_a_running_agent_is_found_and_its_ports_are_its_own(run: Run) -> None:
    report = json.loads(run("doctor", "--json")[1])
    found = {c["name"]: c for c in report["checks"]}
    assert found["Agent"]["state"] == "ok"
    assert "Ready; nothing to do." in found["Agent"]["detail"]
    assert "running agent" in found["Ports"]["detail"]


def test_a_failure_is_exit_code_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang() -> probe.Probe:
        raise PeerTimeout("A driver hangs.", remedy="Restart the PC.")

    monkeypatch.setattr(probe, "run", hang)
    code, out, _ = run("doctor")
    assert code == 1
    assert "FAIL  Devices:      A driver hangs.\n" in out
    assert "Restart the PC." in out
    assert "1 of 16 checks failed." in out


def test_a_check_that_breaks_is_a_finding(tmp_path: Path) -> None:
    def broken(_: Subject) -> Finding:
        raise ZeroDivisionError("oops")

    bad, good = examine(subject(tmp_path), checks=(broken, pc.python))
    assert bad.state == "fail"
    assert bad.key == "broken"
    assert "ZeroDivisionError: oops" in bad.detail
    assert good.detail.startswith("Python 3")


def test_only_those_asked_for_are_made(tmp_path: Path) -> None:
    found = examine(subject(tmp_path), CONNECTION)
    assert [f.key for f in found] == ["discovery", "inbound", "vpn", "clock"]


def test_a_pc_answers_at_its_own_address(tmp_path: Path) -> None:
    assert network.inbound(subject(tmp_path)).state == "ok"


def test_an_address_that_is_not_ours_cannot_be_called(tmp_path: Path) -> None:
    elsewhere = network.inbound(subject(tmp_path, Settings(mdns_interfaces="192.0.2.77")))
    assert elsewhere.state == "fail"
    assert "192.0.2.77" in elsewhere.detail
    assert "firewall" in elsewhere.remedy
    both = network.inbound(subject(tmp_path, Settings(mdns_interfaces="127.0.0.1,192.0.2.77")))
    assert both.state == "warn"


@pytest.mark.parametrize(
    ("addresses", "state", "words"),
    [
        ((), "ok", "None is on"),
        ((Address("wlan0", "192.0.2.5", "ordinary", 24),), "ok", "None is on"),
        ((Address("tun0", "192.0.2.9", "tunnel", 24),), "warn", "VPN only"),
        (
            (
                Address("wlan0", "192.0.2.5", "ordinary", 24),
                Address("wg0", "192.0.2.9", "tunnel", 24),
            ),
            "ok",
            "wg0",
        ),
    ],
)
def test_a_vpn_matters_where_nothing_else_is(
    tmp_path: Path, addresses: tuple[Address, ...], state: str, words: str
) -> None:
    platform = FakePlatform(address_list=addresses)
    finding = network.vpn(Subject(Paths(tmp_path), Settings(), platform=platform))
    assert finding.state == state
    assert words in finding.detail
    assert finding.remedy or state == "ok"


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (probe.Probe(missing=("openvino: no DLL",)), "fail"),
        (probe.Probe("x", ()), "fail"),
        (probe.Probe("x", (*HERE.devices, probe.Device("GPU", error="driver"))), "warn"),
    ],
)
def test_devices(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: probe.Probe, state: str
) -> None:
    monkeypatch.setattr(probe, "run", lambda: found)
    assert pc.devices(subject(tmp_path)).state == state


def test_a_clock_before_this_version_is_a_failure(tmp_path: Path) -> None:
    assert (
        network.clock(subject(tmp_path), lambda: datetime(2001, 1, 1, tzinfo=UTC)).state == "fail"
    )
    assert network.clock(subject(tmp_path)).state == "ok"


def test_a_taken_port_is_named_with_its_setting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        settings = Settings(api_port=port, control_port=0)
        finding = network.ports(subject(tmp_path, settings))
    assert finding.state == "warn"
    assert f"{port} (api_port: used by another program)" in finding.detail


def test_discovery_needs_an_interface(tmp_path: Path) -> None:
    assert network.discovery(subject(tmp_path)).state == "ok"
    nowhere = Settings(mdns_interfaces="192.0.2.77")
    finding = network.discovery(subject(tmp_path, nowhere))
    assert finding.state == "warn"
    assert "192.0.2.77" in finding.detail
    assert "--hub" in finding.remedy


def test_broken_settings_are_a_finding(run: Run, home: Path) -> None:
    (home / "settings.json").write_text("{")
    code, out, _ = run("doctor")
    assert code == 1
    assert "FAIL  Settings:" in out


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() == 0, reason="needs a user who may not write everywhere"
)
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    finding = pc.home(subject(tmp_path))
    tmp_path.chmod(0o700)
    assert finding.state == "fail"


def test_a_state_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    finding = pc.home(subject(tmp_path / "file"))
    assert finding.state == "fail"
    assert "--state" in finding.remedy


def test_a_damaged_membership_is_a_failure(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    Identity.load_or_create(paths)
    paths.fleet.mkdir()
    (paths.fleet / "leaf.crt").write_text("no certificate")
    assert membership.fleet(subject(tmp_path)).state == "fail"


@pytest.mark.parametrize(
    ("days", "state", "words"),
    [
        (0, "ok", "valid until"),
        (16, "ok", ""),
        (18, "warn", "3 days late"),
        (31, "fail", "expired"),
    ],
)
def test_a_certificate_that_is_not_renewed_in_time(
    tmp_path: Path, days: int, state: str, words: str
) -> None:
    TestFleet(tmp_path).enrol("anna")
    then = datetime.now(UTC) + timedelta(days=days)
    finding = membership.fleet(subject(tmp_path / "anna"), lambda: then)
    assert finding.state == state
    assert words in finding.detail
    assert finding.remedy or state == "ok"


@pytest.mark.usefixtures("running")
def test_what_the_agent_warns_of_is_a_warning(run: Run, agent: FakeAgent) -> None:
    trouble = "The certificate of this PC could not be renewed: nobody was there."
    agent.state = msgspec.structs.replace(agent.state, warnings=(trouble,))
    found = {c["name"]: c for c in json.loads(run("doctor", "--json")[1])["checks"]}
    assert found["Agent"]["state"] == "warn"
    assert trouble in found["Agent"]["detail"]
    assert f"Warning:     {trouble}\n" in run("status")[1]


def test_a_damaged_model_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "imported" / "tiny"
    folder.mkdir(parents=True)
    (folder / "model.json").write_text("{}")
    finding = pc.models(subject(tmp_path))
    assert finding.state == "fail"
    assert "tiny" in finding.detail


def test_a_models_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    lost = Settings(models_dir=file / "models")  # as a policy, or a disk that is gone, makes it
    finding = pc.models(Subject(Paths(tmp_path), lost, platform=FakePlatform()))
    assert finding.state == "fail"
    assert f"{file / 'models'}, cannot be used: {file} is a file." in finding.detail
    assert "models_dir" in finding.remedy


@pytest.mark.usefixtures("running")
def test_a_running_agent_says_why_nothing_is_found(run: Run, agent: FakeAgent) -> None:
    found = {c["name"]: c for c in json.loads(run("doctor", "--json")[1])["checks"]}
    assert found["Discovery"]["state"] == "ok"
    assert "3 other PCs, 1 of them" in found["Discovery"]["detail"]
    agent.found = SearchView(0, 0, ("A firewall blocks it.", "Allow it.", "Or by hand."))
    found = {c["name"]: c for c in json.loads(run("doctor", "--json")[1])["checks"]}
    assert found["Discovery"]["state"] == "warn"
    assert "A firewall blocks it." in found["Discovery"]["detail"]
    assert found["Discovery"]["remedy"] == "Allow it. Or by hand."


def test_without_an_agent_a_vpn_alone_is_noticed(tmp_path: Path) -> None:
    only = (Address("tun0", "127.0.0.1", "tunnel", 24),)
    platform = FakePlatform(address_list=only)
    finding = network.discovery(
        Subject(Paths(tmp_path), Settings(mdns_interfaces="127.0.0.1"), platform=platform)
    )
    assert finding.state == "warn"
    assert "VPN only" in finding.detail
    assert "--hub" in finding.remedy


def test_what_another_system_needs_is_not_missed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "click>=8",
        "winthing>=1; sys_platform == 'win32'",
        "linthing; sys_platform == 'linux'",
    ]
    monkeypatch.setattr(pc.importlib.metadata, "requires", lambda _: lines)
    missing = {"win32": "winthing", "linux": "linthing"}
    for system, name in missing.items():
        monkeypatch.setattr(pc.sys, "platform", system)
        found = pc.packages(None)  # type: ignore[arg-type]
        assert found.detail == f"Missing: {name}."

"""The per-machine package: silent installation, properties, repair, upgrade and removal."""

from __future__ import annotations

import pytest

from tests.packaging.conftest import GONE, PREVIOUS, Built
from tests.support.installed import MachineWide, tree
from tests.support.wine import Windows

pytestmark = pytest.mark.timeout(900)
RUN = r"HKLM\Software\Microsoft\Windows\CurrentVersion\Run"
OWN = r"HKLM\Software\fleetapp"
CODE = "FLEET-AAAAA-BBBBB-CCCCC"


@pytest.fixture
def app(windows: Windows) -> MachineWide:
    return MachineWide(windows)


@pytest.fixture(autouse=True)
def _package(built: Built) -> None:
    if not built.msi.exists():
        pytest.skip("no package is built; run `make windows-installer ARGS=--fast` first")


def test_install_repair_upgrade_and_remove(
    app: MachineWide, windows: Windows, built: Built, previous: Built
) -> None:
    before, now = windows.windows_path(previous.msi), windows.windows_path(built.msi)

    assert app.msiexec("/i", before, f"JOINCODE={CODE}") == 0
    assert tree(app.root) == tree(previous.stage)
    assert PREVIOUS in app.cli("--version")
    assert r"C:\Program Files\FleetApp\FleetApp.exe" in windows.registry(RUN)
    assert CODE in windows.registry(OWN)
    code = "import json; from fleetapp.agent.deployed import machine_code as m"
    assert app.python(f"{code}; print(json.dumps(m()))") == CODE

    # --- repair brings back what somebody deleted, and only that
    missing = app.root / "app/ui/app.py"
    missing.unlink()
    # what `msiexec /f` stands for, which Wine's own msiexec does not know
    assert app.msiexec("/i", before, "REINSTALL=ALL", "REINSTALLMODE=omus") == 0
    assert tree(app.root) == tree(previous.stage)

    # --- the next version replaces it; its own properties hold
    device = app.start_agent().get("status")["device_id"]
    assert app.msiexec("/i", now, "AUTOSTART=0") == 0
    assert not app.running()
    assert GONE not in tree(app.root)
    assert tree(app.root) == tree(built.stage)
    assert "fleetapp" not in windows.registry(RUN).lower()
    assert CODE not in windows.registry(OWN)
    assert app.start_agent().get("status")["device_id"] == device

    # --- an older one is refused
    assert app.msiexec("/i", before) != 0
    assert PREVIOUS not in app.cli("--version")

    # --- removed while it runs; the user's own data is the user's
    assert app.msiexec("/x", now) == 0
    assert not app.running()
    assert not app.root.exists(), list(app.root.rglob("*"))[:20]
    assert "InstallDir" not in windows.registry(OWN)
    assert "fleetapp" not in windows.registry(RUN).lower()
    assert app.home.exists()


def test_its_firewall_rules_are_for_our_program_and_the_local_subnet(built: Built) -> None:
    """Wine has no firewall: what the package would ask Windows for is read from its tables."""
    import subprocess  # noqa: PLC0415

    def table(name: str) -> dict[str, list[str]]:
        said = subprocess.run(
            ["msiinfo", "export", built.msi, name], capture_output=True, check=True, timeout=60
        ).stdout.decode()
        return {row.split("\t")[0]: row.rstrip("\r").split("\t") for row in said.split("\n")[3:]}

    actions, sequence = table("CustomAction"), table("InstallExecuteSequence")
    add, remove = actions["AddFirewall"][3], actions["RemoveFirewall"][3]
    assert 'program="[INSTALLDIR]fleetapp-worker.exe"' in add
    assert "remoteip=localsubnet" in add
    assert "profile=domain,private" in add
    assert 'delete rule name="FleetApp"' in remove
    assert sequence["AddFirewall"][1] == 'ADDFIREWALL="1" AND NOT REMOVE'
    assert sequence["RemoveFirewall"][1] == 'REMOVE="ALL"'
    deferred, as_system = 1024, 2048
    assert int(actions["AddFirewall"][1]) & (deferred | as_system) == deferred | as_system
    first, last = (int(sequence[n][2]) for n in ("InstallInitialize", "InstallFinalize"))
    for name in ("AddFirewall", "RemoveFirewall", "StopApp"):
        assert first < int(sequence[name][2]) < last, name
    properties = table("Property")
    assert properties["ADDFIREWALL"][1] == "0"
    for name in ("JOINCODE", "AUTOSTART", "ADDFIREWALL"):
        assert name in properties["SecureCustomProperties"][1]

"""What the packaging tests share: what was built, a Windows PC with an awkward user, an office."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fleetapp.bench.throwaway import NO_GUEST
from installer import authenticode, msi, nsis
from installer.build import version
from installer.paths import Work
from tests.support import wine
from tests.support.installed import InstalledApp
from tests.support.office import LinuxOffice
from tests.support.sample_model import sample_library
from tests.support.wine_screen import MISSING, Screen

USER = "José Müller-測試"
FOLDER = f"users/{USER}/Eigene Programme (ü)/FleetApp 測試"
DEAD_PROXY = "http://127.0.0.1:9"
PREVIOUS = "0.0.9"
GONE = "app/fleetapp/module_of_yesterday.py"
"""Only in the previous version; an upgrade must take it away."""
WORLD = {
    **NO_GUEST,
    "FLEETAPP_MDNS_INTERFACES": "127.0.0.1",
    "FLEETAPP_CONTROL_PORT": "0",
    "FLEETAPP_API_PORT": "0",
    "FLEETAPP_NODE_NAME": "windows",
    "FLEETAPP_THREADS": "1",
    "HTTP_PROXY": DEAD_PROXY,
    "HTTPS_PROXY": DEAD_PROXY,
    "ALL_PROXY": DEAD_PROXY,
}


@dataclass(frozen=True)
class Built:
    """Installers and the tree that is in them."""

    stage: Path
    setup: Path
    msi: Path
    certificate: Path


@pytest.fixture(scope="session")
def built() -> Built:
    """What `make windows-installer` left in dist/windows."""
    work = Work()
    if not work.setup.exists():
        pytest.skip("nothing is built; run `make windows-installer ARGS=--fast` first")
    chosen = authenticode.chosen() or authenticode.test_certificate(work.objects)
    return Built(work.stage, work.setup, work.msi, chosen.chain)


@pytest.fixture(scope="session")
def previous(built: Built) -> Built:
    """The same one version earlier, with a file that the present one has not got."""
    work = Work(Work().root / "previous")
    if not (work.setup.exists() and work.msi.exists()) or (
        work.setup.stat().st_mtime < built.setup.stat().st_mtime
    ):
        shutil.rmtree(work.root, ignore_errors=True)
        work.objects.mkdir(parents=True)
        shutil.copytree(built.stage, work.stage, copy_function=_link)
        (work.stage / GONE).write_text("", encoding="utf-8")
        source = work.stage / "app/fleetapp/__init__.py"
        text = source.read_text("utf-8").replace(version(), PREVIOUS)
        source.unlink()  # the link, not the file of the present version
        source.write_text(text, encoding="utf-8")
        shutil.copy(Work().objects / "fleetapp.ico", work.objects)
        certificate = authenticode.test_certificate(Work().objects)
        nsis.build(work, PREVIOUS, packing="fast", certificate=certificate)
        msi.build(work, PREVIOUS)
    return Built(work.stage, work.setup, work.msi, built.certificate)


def _link(source: str, target: str) -> None:
    Path(target).hardlink_to(source)


@pytest.fixture(scope="module")
def screen() -> Iterator[Screen]:
    """Its pictures stay in dist/windows/pictures."""
    if MISSING:
        pytest.skip(f"not installed: {', '.join(MISSING)} (see debian-packages.txt)")
    with Screen(Work().root / "pictures") as shown:
        yield shown


@pytest.fixture(scope="module")
def windows(
    tmp_path_factory: pytest.TempPathFactory, screen: Screen, built: Built
) -> Iterator[wine.Windows]:
    """A PC whose user, folders and network are as awkward as they come."""
    if reason := wine.why_not():
        pytest.skip(f"no Windows here: {reason}")
    folder = tmp_path_factory.mktemp("windows pc")
    shared = [Work().root]
    with wine.Windows(folder, user=USER, shared=shared, display=screen.display, env=WORLD) as pc:
        yield pc


@pytest.fixture(scope="module")
def app(windows: wine.Windows, built: Built) -> InstalledApp:
    """Installed in a folder with spaces, umlauts and ideographs."""
    installed = InstalledApp(windows, FOLDER)
    assert installed.install(built.setup) == 0
    return installed


@pytest.fixture(scope="module")
def one_core(windows: wine.Windows) -> None:
    """For those who import: under Wine OpenVINO on several threads may compute nonsense."""
    windows.one_core = True


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LinuxOffice]:
    """Two Linux agents in one fleet."""
    with LinuxOffice(tmp_path_factory.mktemp("office"), sample_library()) as fleet:
        yield fleet

from pathlib import Path

import pytest

from fleetapp.engine import probe
from fleetapp.errors import Malformed, PeerTimeout, RunnerFailed


def test_this_pc_has_a_processor() -> None:
    found = probe.run()
    assert found.missing == ()
    assert found.runtime
    assert any(d.id == "CPU" and d.name and not d.error for d in found.devices)


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Let the probe's process run a script instead, as a broken driver would."""

    def use(script: str) -> None:
        package = tmp_path / "fleetapp" / "engine"
        package.mkdir(parents=True)
        (tmp_path / "fleetapp" / "__init__.py").touch()
        (package / "__init__.py").touch()
        (package / "probe.py").write_text(script)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.chdir(tmp_path)

    return use


def test_a_driver_that_crashes_takes_only_the_probe_with_it(pretend) -> None:
    pretend("import os, sys; print('driver fault', file=sys.stderr, flush=True); os._exit(134)")
    with pytest.raises(RunnerFailed, match=r"exit code 134 \(driver fault\)"):
        probe.run()


def test_a_driver_that_hangs_is_killed(pretend) -> None:
    pretend("import threading; threading.Event().wait()")
    with pytest.raises(PeerTimeout, match="hangs"):
        probe.run(deadline=1.0)


def test_a_driver_that_prints_spoils_only_the_answer(pretend) -> None:
    pretend("print('hello')")
    with pytest.raises(Malformed):
        probe.run()

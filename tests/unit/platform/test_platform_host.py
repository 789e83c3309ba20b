import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from fleetapp.errors import BadSetting
from fleetapp.platform import cgroup, current
from fleetapp.platform.linux import LinuxPlatform

HERE = current()


def test_memory_disk_and_cores_are_plausible(tmp_path: Path) -> None:
    assert 0 < HERE.memory_free() <= HERE.memory_total()
    assert 1 <= HERE.cores() <= (os.cpu_count() or 1)
    assert HERE.disk_free(tmp_path) > 0


def test_free_disk_is_told_for_a_folder_that_does_not_exist_yet(tmp_path: Path) -> None:
    assert HERE.disk_free(tmp_path / "a" / "b" / "c") > 0


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity as Linux has it")
def test_cores_honour_the_affinity_of_the_process() -> None:
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from fleetapp.platform import current; print(current().cores())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert run.stdout.strip() == b"1"


def test_lower_priority_lowers_it() -> None:
    code = (
        "from fleetapp.platform import current; import psutil; p = psutil.Process();"
        "current().lower_priority(); current().lower_priority(); print(int(p.nice()))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert int(run.stdout) >= 10


def _files(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_cgroup_v2_limits_of_the_group_and_of_those_above_count(tmp_path: Path) -> None:
    _files(
        tmp_path,
        {
            "proc": "0::/outer/inner\n",
            "fs/outer/cpu.max": "150000 100000",
            "fs/outer/inner/cpu.max": "max 100000",
            "fs/outer/inner/memory.max": "1000",
            "fs/outer/inner/memory.current": "700",
            "fs/outer/inner/memory.stat": "anon 600\ninactive_file 100\n",
            "fs/outer/memory.max": "max",
        },
    )
    found = cgroup.limits(tmp_path / "proc", tmp_path / "fs")
    assert found == cgroup.Limits(cpus=1.5, memory_total=1000, memory_free=400)


def test_cgroup_v1_limits_count_and_its_huge_number_means_none(tmp_path: Path) -> None:
    _files(
        tmp_path,
        {
            "proc": "4:memory:/job\n1:cpu,cpuacct:/job\n",
            "fs/cpu/job/cpu.cfs_quota_us": "50000",
            "fs/cpu/job/cpu.cfs_period_us": "100000",
            "fs/cpu/cpu.cfs_quota_us": "-1",
            "fs/memory/memory.limit_in_bytes": "9223372036854771712",
            "fs/memory/memory.usage_in_bytes": "5",
        },
    )
    found = cgroup.limits(tmp_path / "proc", tmp_path / "fs")
    assert found == cgroup.Limits(cpus=0.5)


def test_a_container_that_shows_the_hosts_group_names_still_finds_its_limit(tmp_path: Path) -> None:
    _files(tmp_path, {"proc": "0::/host/only\n", "fs/cpu.max": "200000 100000"})
    assert cgroup.limits(tmp_path / "proc", tmp_path / "fs").cpus == 2.0


def test_a_system_without_cgroups_has_no_limits(tmp_path: Path) -> None:
    assert cgroup.limits(tmp_path / "none", tmp_path / "none") == cgroup.Limits()


def test_policy_of_the_machine_and_of_the_user_are_separate_files(tmp_path: Path) -> None:
    login = psutil.Process().username()
    _files(
        tmp_path,
        {"policy.json": '{"contribute": true}', f"users/{login}.json": '{"threads": 2}'},
    )
    platform = LinuxPlatform(policy_folder=tmp_path)
    assert platform.policy("machine").values == {"contribute": True}
    assert platform.policy("user").values == {"threads": 2}
    assert str(tmp_path) in platform.policy("machine").source


def test_no_policy_is_an_empty_policy(tmp_path: Path) -> None:
    assert LinuxPlatform(policy_folder=tmp_path / "none").policy("machine").values == {}


@pytest.mark.parametrize("text", [b"{", b"[]", b"\xff\xfe"])
def test_a_policy_that_cannot_be_read_is_an_error_and_not_ignored(
    tmp_path: Path, text: bytes
) -> None:
    (tmp_path / "policy.json").write_bytes(text)
    with pytest.raises(BadSetting, match=r"policy\.json"):
        LinuxPlatform(policy_folder=tmp_path).policy("machine")

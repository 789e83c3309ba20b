"""The environment of processes that compute."""

import pytest

from fleetapp.platform.linux import LinuxPlatform


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, "glibc.malloc.hugetlb=1"),
        ({"GLIBC_TUNABLES": ""}, "glibc.malloc.hugetlb=1"),
        (
            {"GLIBC_TUNABLES": "glibc.malloc.check=1"},
            "glibc.malloc.check=1:glibc.malloc.hugetlb=1",
        ),
        ({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0"}, "glibc.malloc.hugetlb=0"),
    ],
)
def test_runners_get_large_pages_unless_somebody_said_otherwise(before, after) -> None:
    base = {"PATH": "/bin", **before}
    assert LinuxPlatform().runner_environment(base) == {**base, "GLIBC_TUNABLES": after}

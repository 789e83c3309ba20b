import errno
import os
import stat
import sys
from pathlib import Path

import pytest

from fleetapp.errors import DiskFull, ReadOnly, StorageError
from fleetapp.platform import current
from fleetapp.platform.fake import FakePlatform
from fleetapp.platform.files import storage_error, write_atomic
from fleetapp.platform.paths import Paths, default_home

ODD = "José 測試 dir"


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / ODD / "f.json"
    target.parent.mkdir()
    write_atomic(target, b"old")
    write_atomic(target, b"new content")
    assert target.read_bytes() == b"new content"
    assert [p.name for p in target.parent.iterdir()] == ["f.json"]


def test_a_failed_write_keeps_the_old_content_and_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "f"
    write_atomic(target, b"old")

    def no_room(_: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(DiskFull, match="no room left"):
        write_atomic(target, b"new", protect=no_room)
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_the_systems_own_disk_full_is_recognised() -> None:
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        pytest.raises(OSError, match="No space") as caught,
    ):
        full.write(b"x")
    assert isinstance(storage_error(caught.value, Path("x")), DiskFull)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_folder_that_cannot_be_written_is_read_only(number: int) -> None:
    error = storage_error(OSError(number, os.strerror(number)), Path("/x"))
    assert isinstance(error, ReadOnly)
    assert "--state" in error.remedy


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/sys refuses even root")
def test_a_home_in_a_read_only_place_is_said_to_be_so() -> None:
    with pytest.raises(ReadOnly):
        current().make_private_dir(Path("/sys/fleetapp-home"))


def test_a_file_in_the_way_of_the_home_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(StorageError, match="home"):
        current().make_private_dir(tmp_path / "home" / "identity")


@pytest.mark.parametrize("platform", [current(), FakePlatform()], ids=lambda p: p.name)
def test_private_files_and_folders_are_for_their_user_only(platform, tmp_path: Path) -> None:
    folder = tmp_path / ODD / "identity"
    platform.make_private_dir(folder)
    platform.write_private(folder / "key", b"secret")
    assert (folder / "key").read_bytes() == b"secret"
    if os.name != "nt":
        assert stat.S_IMODE((folder / "key").stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name == "nt", reason="POSIX permission bits")
def test_a_wider_umask_or_an_old_readable_file_does_not_leak_a_secret(tmp_path: Path) -> None:
    target = tmp_path / "key"
    target.write_bytes(b"old")
    target.chmod(0o666)
    before = os.umask(0)
    try:
        current().write_private(target, b"secret")
    finally:
        os.umask(before)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_home_follows_the_environment_with_spaces_and_other_scripts(tmp_path: Path) -> None:
    assert default_home({"FLEETAPP_HOME": str(tmp_path / ODD)}) == tmp_path / ODD
    assert default_home({"FLEETAPP_HOME": ""}).name == "fleetapp"
    paths = Paths(tmp_path / ODD)
    assert paths.device_key == tmp_path / ODD / "identity" / "device.key"

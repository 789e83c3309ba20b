import json
from pathlib import Path

import pytest

from fleetapp.errors import BadSetting, ManagedByPolicy
from fleetapp.platform.fake import FakePlatform
from fleetapp.platform.linux import LinuxPlatform
from fleetapp.platform.paths import Paths
from fleetapp.settings import Settings, SettingsStore


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "José 測試 dir")


def store(paths: Paths, platform: FakePlatform | None = None, **environ: str) -> SettingsStore:
    return SettingsStore(paths, platform or FakePlatform(), environ)


def test_without_any_file_the_defaults_hold_and_contributing_is_off(paths: Paths) -> None:
    settings = store(paths).load()
    assert settings == Settings()
    assert settings.contribute is False


def test_what_the_user_sets_is_kept_typed_and_explained(paths: Paths) -> None:
    store(paths).set_user("threads", "2")
    settings = store(paths).set_user("models_dir", str(paths.home / "模型"))
    assert settings == store(paths).load()
    assert settings.threads == 2
    assert settings.models_dir == paths.home / "模型"
    assert settings.origin("threads").where == str(paths.settings_file)
    assert json.loads(paths.settings_file.read_text(encoding="utf-8"))["threads"] == 2


def test_reset_returns_to_the_default(paths: Paths) -> None:
    store(paths).set_user("threads", 2)
    assert store(paths).reset_user("threads") == Settings()


def test_a_refused_value_changes_nothing(paths: Paths) -> None:
    store(paths).set_user("threads", 2)
    with pytest.raises(BadSetting):
        store(paths).set_user("threads", -1)
    assert store(paths).load().threads == 2


@pytest.mark.parametrize("name", ["idle_minutes", "threads", "battery_floor", "local_port"])
@pytest.mark.parametrize("value", [-1, "-1", 1 << 31, "1e9", "nan"])
def test_a_number_out_of_range_is_refused_with_its_limits(
    paths: Paths, name: str, value: object
) -> None:
    with pytest.raises(BadSetting, match="a whole number from 0 to"):
        store(paths).set_user(name, value)
    assert not paths.settings_file.exists()


def test_a_folder_that_cannot_be_used_is_refused_and_nothing_is_left_of_the_try(
    paths: Paths, tmp_path: Path
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("kept")
    for bad in (file, file / "models", tmp_path / ("x" * 300)):
        with pytest.raises(BadSetting, match="Choose a folder") as caught:
            store(paths).set_user("models_dir", str(bad))
        assert str(bad) in caught.value.message
    with pytest.raises(BadSetting, match="an absolute path"):
        store(paths).set_user("models_dir", "models")
    assert store(paths).load().models_dir is None
    assert file.read_text() == "kept"
    new = tmp_path / "a" / "b"
    assert store(paths).set_user("models_dir", str(new)).models_dir == new
    assert not (tmp_path / "a").exists(), "it is made when there is something to put into it"


def test_an_unknown_name_is_answered_with_the_nearest_one(paths: Paths) -> None:
    with pytest.raises(BadSetting, match=r"node_name\?"):
        store(paths).set_user("nodename", "x")


def test_a_value_under_policy_is_locked_and_says_by_whom(paths: Paths) -> None:
    platform = FakePlatform(policies={"machine": {"contribute": 0}, "user": {"threads": 3}})
    shown = {row.name: row for row in store(paths, platform).load().explain()}
    assert shown["contribute"].locked
    assert shown["threads"].where == "fake user policy"
    with pytest.raises(ManagedByPolicy, match="fake machine policy"):
        store(paths, platform).set_user("contribute", True)
    assert not paths.settings_file.exists()


def test_policy_beats_environment_beats_user(paths: Paths) -> None:
    store(paths).set_user("threads", 1)
    store(paths).set_user("api_port", 1)
    store(paths).set_user("local_port", 1)
    platform = FakePlatform(policies={"user": {"threads": 3}})
    settings = store(paths, platform, FLEETAPP_THREADS="2", FLEETAPP_API_PORT="2").load()
    assert (settings.threads, settings.api_port, settings.local_port) == (3, 2, 1)


@pytest.mark.parametrize("content", [b"{", b"", b"[1]", b'"x"', b"\xff\xfe{}", b"{'a': 1}"])
def test_a_broken_file_is_named_and_never_overwritten(paths: Paths, content: bytes) -> None:
    paths.home.mkdir()
    paths.settings_file.write_bytes(content)
    with pytest.raises(BadSetting, match=r"settings\.json"):
        store(paths).load()
    with pytest.raises(BadSetting, match="not changed"):
        store(paths).set_user("threads", 2)
    assert paths.settings_file.read_bytes() == content


def test_a_byte_order_mark_of_a_windows_editor_does_no_harm(paths: Paths) -> None:
    paths.home.mkdir()
    paths.settings_file.write_bytes(b'\xef\xbb\xbf{"threads": 2}')
    assert store(paths).load().threads == 2


def test_names_of_a_newer_version_survive_a_change(paths: Paths) -> None:
    paths.home.mkdir()
    paths.settings_file.write_text('{"from_the_future": [1]}')
    store(paths).set_user("threads", 2)
    kept = json.loads(paths.settings_file.read_text())
    assert kept == {"from_the_future": [1], "threads": 2}


def test_the_linux_policy_file_is_honoured(paths: Paths, tmp_path: Path) -> None:
    (tmp_path / "policy.json").write_text('{"precision": "exact"}')
    settings = SettingsStore(paths, LinuxPlatform(tmp_path), {}).load()
    assert settings.precision == "exact"
    assert settings.origin("precision").source == "machine policy"

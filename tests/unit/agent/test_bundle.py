"""The support bundle says how a PC is, and gives no secret away."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from fleetapp.agent.bundle import MAX_LOG, write_bundle
from fleetapp.errors import BadRequest, StorageError
from fleetapp.fleet.secrets import SecretStore
from fleetapp.platform.fake import FakePlatform
from fleetapp.platform.paths import Paths
from fleetapp.settings import SettingsStore
from fleetapp.types import Finding

TOKEN = "loopbacktoken0123456789abcdef"
PEM_LINE = "MHcCAQEEIBleak0KeyMaterialOfTheDevice0oAoGCCqGSM49"
PEM = f"-----BEGIN PRIVATE KEY-----\n{PEM_LINE}\n-----END PRIVATE KEY-----\n"
JOIN_CODE = "FLEET-7Q2MX-04K9D-ZR8TB-1HVNC-W5E3G-P6YAJ-SFM2-K"
API_KEY = "fleet-Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA"
PROMPT = "Which colleague shall we dismiss?"
PASSPHRASE = "correct horse battery staple 77"


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """A state folder full of secrets, which got into the logs as well."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home of José")
    paths = Paths(tmp_path / "home of José" / "fleetapp")
    for folder in (paths.logs, paths.identity, paths.hub):
        folder.mkdir(parents=True)
    paths.api_token.write_text(TOKEN)
    paths.device_key.write_text(PEM)
    (paths.hub / "authority.secret").write_text(PASSPHRASE)
    (paths.hub / "codes.json").write_text(json.dumps({"codes": [{"secret": "s3cr3t-of-a-code"}]}))
    (paths.home / "chats.db").write_text(PROMPT)
    (paths.home / "chat-history").write_text(PROMPT)
    lines = [
        {"message": f"asked with {TOKEN}", "prompt": PROMPT},
        {"message": f"joined by {JOIN_CODE}", "api_key": API_KEY},
        {"message": f"made {API_KEY}", "inner": {"messages": [{"content": PROMPT}]}},
        {"message": f"Bearer {TOKEN[:-1]}x", "trace": f"File {paths.home}/x.py\n{PEM}"},
        {"message": f"opened with {PASSPHRASE} and s3cr3t-of-a-code"},
        {"message": "stage 1 is ready", "shard": "layers 0-9"},
    ]
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    (paths.logs / "agent.jsonl").write_text(text, encoding="utf-8")
    (paths.logs / "agent-start.log").write_text(f"Traceback\n{PEM}Error: {TOKEN}\n")
    return paths


def bundle(paths: Paths, target: Path, **facts: object) -> dict[str, str]:
    view = write_bundle(target, paths, FakePlatform(), facts)
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() is None
        assert tuple(archive.namelist()) == view.files
        assert view.size == target.stat().st_size
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_no_planted_secret_is_in_it(paths: Paths, tmp_path: Path) -> None:
    found = bundle(
        paths,
        tmp_path / "b.zip",
        status={"reason": f"Joined by {JOIN_CODE} with {PASSPHRASE}"},
        doctor=(Finding("Agent", "ok", f"token {TOKEN}", key="agent"),),  # as the agent has it
    )
    everything = "\n".join(found.values())
    secrets = (TOKEN, PEM_LINE, JOIN_CODE, API_KEY, PROMPT, PASSPHRASE, "s3cr3t-of-a-code")
    for secret in secrets:
        assert secret not in everything
    assert TOKEN[:-1] not in everything
    assert "José" not in everything, "the user's own folder"


def test_what_helps_is_in_it(paths: Paths, tmp_path: Path) -> None:
    SettingsStore(paths, FakePlatform()).set_user("threads", 3)
    finding = Finding("Clock", "fail", "It says 1999.", "Set it.", key="clock")
    found = bundle(paths, tmp_path / "b.zip", doctor=[finding], status={"state": "ready"})
    assert "stage 1 is ready" in found["logs/agent.jsonl"]
    assert len(found["logs/agent.jsonl"].splitlines()) == 6
    assert json.loads(found["doctor.json"])[0]["detail"] == "It says 1999."
    settings = {row["name"]: row for row in json.loads(found["settings.json"])}
    assert settings["threads"] == {
        "name": "threads",
        "value": 3,
        "default": 0,
        "source": "user",
        "where": "<state>/settings.json",
    }
    about = json.loads(found["about.json"])
    assert about["fleetapp"]
    assert about["packages"]["aiohttp"]
    assert json.loads(found["membership.json"]) == {"member": False}
    for name in found:
        assert name.startswith("logs/") or name in found["README.txt"] or name == "README.txt"


def test_it_can_be_read_by_its_user_only(paths: Paths, tmp_path: Path) -> None:
    bundle(paths, tmp_path / "b.zip")
    assert (tmp_path / "b.zip").stat().st_mode & 0o077 == 0


def test_broken_settings_do_not_prevent_it(paths: Paths, tmp_path: Path) -> None:
    paths.settings_file.write_text("{")
    assert "broken" in json.loads(bundle(paths, tmp_path / "b.zip")["settings.json"])["error"]


def test_a_huge_log_is_cut_at_its_old_end(paths: Paths, tmp_path: Path) -> None:
    line = json.dumps({"message": "x" * 1000}) + "\n"
    (paths.logs / "runner.jsonl").write_text(line * (MAX_LOG // len(line) + 500) + '{"m": "end"}\n')
    log = bundle(paths, tmp_path / "b.zip")["logs/runner.jsonl"].splitlines()
    assert log[0] == "(older lines are left out)"
    assert log[-1] == '{"m": "end"}'


def test_an_impossible_place_is_said(paths: Paths, tmp_path: Path) -> None:
    platform = FakePlatform()
    with pytest.raises(BadRequest, match="absolute"):
        write_bundle(Path("b.zip"), paths, platform, {})
    with pytest.raises(BadRequest, match="is a folder"):
        write_bundle(tmp_path, paths, platform, {})
    with pytest.raises(StorageError, match="does not exist"):
        write_bundle(tmp_path / "no" / "b.zip", paths, platform, {})


def test_the_place_of_secrets_is_the_one_that_is_searched(paths: Paths, tmp_path: Path) -> None:
    """Keeps this module's idea of where secrets lie in step with who writes them."""
    store = SecretStore(paths.hub, environ={"FLEETAPP_KEYRING": "off"})
    store.store("authority passphrase", PASSPHRASE[::-1])
    (paths.logs / "x.log").write_text(PASSPHRASE[::-1])
    assert PASSPHRASE[::-1] not in "".join(bundle(paths, tmp_path / "b.zip").values())

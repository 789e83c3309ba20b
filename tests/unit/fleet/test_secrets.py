import os
import stat
import threading
import time
from pathlib import Path

import keyring.backends.fail
import keyring.backends.null
import pytest

from fleetapp.errors import NotFound, StorageError
from fleetapp.fleet import secrets
from fleetapp.fleet.secrets import SecretStore
from fleetapp.platform import current


class Ring:
    """A keyring in memory."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def set_password(self, service: str, name: str, secret: str) -> None:
        self.kept[service, name] = secret

    def get_password(self, service: str, name: str) -> str | None:
        return self.kept.get((service, name))

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[service, name]


class Forgetful(Ring):
    def get_password(self, service: str, name: str) -> str | None:
        return None


class Locked(Ring):
    """Waits for somebody to answer a prompt, as a locked Linux keyring does."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def set_password(self, service: str, name: str, secret: str) -> None:
        self.released.wait(60)

    def get_password(self, service: str, name: str) -> str | None:
        self.released.wait(60)
        return None


def store(folder: Path, ring: object, timeout: float = 5.0, **environ: str) -> SecretStore:
    return SecretStore(folder, current(), environ, backend=lambda: ring, timeout=timeout)


def test_a_keyring_that_works_is_used_and_no_file_holds_the_secret(tmp_path: Path) -> None:
    ring = Ring()
    kept = store(tmp_path, ring).store("authority", "größe")
    assert kept.place == "keyring"
    assert store(tmp_path, ring).load("authority") == "größe"
    assert all("größe" not in p.read_text(encoding="utf-8") for p in tmp_path.iterdir())
    store(tmp_path, ring).delete("authority")
    assert not ring.kept
    assert not list(tmp_path.iterdir())


def test_switched_off_it_is_a_private_file_and_says_so(tmp_path: Path) -> None:
    ring = Ring()
    kept = store(tmp_path, ring, FLEETAPP_KEYRING="off").store("authority", "s3cret")
    assert kept.place == "file"
    assert "readable by your account only" in kept.statement
    assert not ring.kept
    (file,) = tmp_path.glob("*.secret")
    if os.name != "nt":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert store(tmp_path, ring).load("authority") == "s3cret"


def test_a_keyring_that_waits_for_a_prompt_holds_nobody_up(tmp_path: Path) -> None:
    ring = Locked()
    begin = time.monotonic()
    kept = store(tmp_path, ring, timeout=0.2).store("authority", "s3cret")
    assert time.monotonic() - begin < 5
    ring.released.set()
    assert kept.place == "file"
    assert "did not answer" in kept.statement
    assert store(tmp_path, Ring()).load("authority") == "s3cret"


@pytest.mark.parametrize(
    "ring", [Forgetful(), keyring.backends.null.Keyring(), keyring.backends.fail.Keyring()]
)
def test_a_keyring_that_loses_what_it_is_given_is_not_trusted(tmp_path: Path, ring) -> None:
    assert store(tmp_path, ring).store("authority", "s3cret").place == "file"
    assert store(tmp_path, ring).load("authority") == "s3cret"


def test_the_systems_own_choice_is_never_a_plain_text_one() -> None:
    try:
        chosen = secrets._system_backend()
    except secrets.KeyringUnavailable:
        return
    assert type(chosen).__name__ in ("Keyring", "DBusKeyring", "WinVaultKeyring")
    assert type(chosen).__module__.split(".")[-1] in (
        "SecretService",
        "kwallet",
        "Windows",
        "macOS",
    )


def test_a_locked_keyring_that_holds_the_secret_is_said_to_be_locked(tmp_path: Path) -> None:
    store(tmp_path, Ring()).store("authority", "s3cret")
    locked = Locked()
    with pytest.raises(StorageError, match="keyring") as caught:
        store(tmp_path, locked, timeout=0.2).load("authority")
    locked.released.set()
    assert "Unlock" in caught.value.remedy


def test_a_secret_that_is_gone_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        store(tmp_path, Ring()).load("authority")
    store(tmp_path, Ring()).store("authority", "s3cret")
    with pytest.raises(NotFound):
        store(tmp_path, Ring()).load("authority")
    store(tmp_path, Ring()).delete("nothing")


def test_moving_into_the_keyring_removes_the_file(tmp_path: Path) -> None:
    store(tmp_path, Ring(), FLEETAPP_KEYRING="0").store("authority", "old")
    ring = Ring()
    store(tmp_path, ring).store("authority", "new")
    assert not list(tmp_path.glob("*.secret"))
    assert store(tmp_path, ring).load("authority") == "new"


def test_a_secret_too_long_for_windows_is_refused_everywhere(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="too long"):
        store(tmp_path, Ring()).store("authority", "x" * 2000)

"""The About box shows what the installer packed, and nothing where there is nothing to show."""

from __future__ import annotations

from pathlib import Path

import pytest

from ui import about


def test_the_list_of_the_installed_app_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "licenses").mkdir()
    (tmp_path / "licenses/THIRD-PARTY.txt").write_bytes("Qt 6: LGPL\r\nü\r\n".encode())
    monkeypatch.setattr(about, "files", lambda _package: tmp_path)
    assert about.third_party() == "Qt 6: LGPL\nü\n"


def test_a_checkout_has_none() -> None:
    assert about.third_party() == ""

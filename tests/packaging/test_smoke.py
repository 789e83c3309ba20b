"""The shortest proof that the installed Windows app runs at all; part of continuous integration."""

from __future__ import annotations

import pytest

from tests.packaging.conftest import Built
from tests.support.installed import InstalledApp, tree

pytestmark = pytest.mark.timeout(240)


def test_it_is_installed_and_answers(app: InstalledApp, built: Built) -> None:
    installed = tree(app.root)
    installed.pop("Uninstall.exe")
    assert installed == tree(built.stage)
    said = app.cli("doctor", check=False)
    assert "OpenVINO" in said
    assert "FAIL" not in said, said
    app.uninstall("/REMOVEDATA")
    assert not app.home.exists()

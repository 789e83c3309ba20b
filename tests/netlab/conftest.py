"""Labs are skipped, with the reason, where no network namespaces can be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.netlab.lab import why_not
from tests.support.sample_model import sample_library


def pytest_runtest_setup(item: pytest.Item) -> None:
    if reason := why_not():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def library() -> Path:
    """Root of a library that holds the sample model."""
    return sample_library()

"""The sample model, once for all integration tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.sample_model import sample_library


@pytest.fixture(scope="session")
def library() -> Path:
    """Root of a library that holds the sample model."""
    return sample_library()

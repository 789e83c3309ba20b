"""A throw-away authority and one connection made from it."""

from collections.abc import Iterator

import pytest

from tests.support.tls import Ends, TestAuthority, connected


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> TestAuthority:
    return TestAuthority(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def ends(authority: TestAuthority) -> Iterator[Ends]:
    pair = connected(authority)
    yield pair
    pair.close()

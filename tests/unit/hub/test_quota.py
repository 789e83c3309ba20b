"""A key gets what it may have, and hears when there is more."""

from __future__ import annotations

import pytest

from fleetapp.errors import RateLimited
from fleetapp.hub.keys import ApiKeyView
from fleetapp.hub.quota import WINDOW, Quotas


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_key_without_limits_is_never_refused() -> None:
    quotas = Quotas()
    key = ApiKeyView("k", "editor", 0.0)
    for _ in range(1000):
        with quotas.use(key), quotas.use(key):
            pass


def test_so_many_at_a_time_and_again_when_one_has_ended() -> None:
    quotas = Quotas()
    key = ApiKeyView("k", "editor", 0.0, parallel=2)
    with quotas.use(key):
        with (
            quotas.use(key),
            pytest.raises(RateLimited, match="'editor' may have 2"),
            quotas.use(key),
        ):
            pass
        with quotas.use(key):
            pass
    assert quotas._running == {}


def test_one_request_is_not_said_in_the_plural() -> None:
    quotas = Quotas()
    one = ApiKeyView("k", "editor", 0.0, parallel=1)
    with quotas.use(one), pytest.raises(RateLimited, match="have 1 request at"), quotas.use(one):
        pass
    minute = ApiKeyView("m", "editor", 0.0, per_minute=1)
    with (
        quotas.use(minute),
        pytest.raises(RateLimited, match="make 1 request a minute"),
        quotas.use(minute),
    ):
        pass


def test_so_many_in_any_minute() -> None:
    clock = Clock()
    quotas = Quotas(clock)
    key = ApiKeyView("k", "editor", 0.0, per_minute=3)
    for _ in range(3):
        with quotas.use(key):
            clock.now += 5
    with pytest.raises(RateLimited) as caught, quotas.use(key):
        pass
    assert caught.value.seconds == WINDOW - 15
    assert f"{caught.value.seconds} s" in caught.value.remedy
    clock.now += caught.value.seconds
    with quotas.use(key):
        pass
    with pytest.raises(RateLimited), quotas.use(key):
        pass


def test_keys_do_not_share() -> None:
    quotas = Quotas()
    one, two = (ApiKeyView(n, n, 0.0, parallel=1) for n in "ab")
    with quotas.use(one), quotas.use(two):
        pass

"""What nobody has thought of must not end the looking after a model for good."""

from typing import Any

import pytest

from tests.support.fake_hub import FakeHub


@pytest.mark.parametrize("where", ["plan", "send"])
async def test_an_unexpected_error_is_survived(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = FakeHub("hub", "a", "b", stages=2)
    real, failures = getattr(hub, where), iter(range(2))

    async def fails_twice(*args: Any) -> Any:
        if next(failures, None) is not None:
            raise OSError("the network cable has melted")
        return await real(*args)

    monkeypatch.setattr(hub, where, fails_twice)
    hub.server.start()
    assert await hub.server.wait_live(5)
    await hub.standbys(2)
    await hub.server.stop("done")


async def test_copies_are_held_although_no_better_plan_can_be_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub = FakeHub("hub", "a", "b", stages=2)
    hub.server.start()
    assert await hub.server.wait_live(5)

    async def fails(*_: Any) -> Any:
        raise OSError("no")

    await hub.standbys(2)
    monkeypatch.setattr(hub, "plan", fails)
    hub.lose("b")
    await hub.standbys(0)
    hub.come_back("b", 9)
    hub.server._layout = type(hub.server._layout)(())  # as after a mended chain
    await hub.standbys(2)
    await hub.server.stop("done")

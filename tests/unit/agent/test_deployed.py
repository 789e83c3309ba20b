"""A code left by whoever deployed this PC: used once, tried until the fleet has answered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from fleetapp.agent.deployed import FILE, FIRST_PAUSE, LONGEST_PAUSE, USED, DeployedJoin
from fleetapp.errors import ExpiredJoinCode, FleetError, NoHub
from fleetapp.platform.paths import Paths

CODE = "FLEET-AAAAA-BBBBB"


class FakeAgent:
    """Answers attempts with these errors, then lets in."""

    def __init__(self, *answers: FleetError) -> None:
        self.answers = list(answers)
        self.codes: list[str] = []
        self.fleet_id = ""
        self.sees: Callable[[], str] = lambda: ""

    async def status(self) -> SimpleNamespace:
        return SimpleNamespace(fleet_id=self.fleet_id)

    async def join(self, code: str, hub_address: str = "") -> SimpleNamespace:
        assert not hub_address
        assert self.sees() == code, "whoever asks is told that there is one"
        self.codes.append(code)
        if self.answers:
            raise self.answers.pop(0)
        self.fleet_id = "f"
        return await self.status()


class Deployed:
    def __init__(self, home: Path, *answers: FleetError, machine: str = "") -> None:
        self.agent = FakeAgent(*answers)
        self.pauses: list[float] = []
        self.machine = machine
        self.home = home

    async def start(self) -> None:
        """As at each start of the agent."""

        async def sleep(seconds: float) -> None:
            self.pauses.append(seconds)

        agent = self.agent
        join = DeployedJoin(Paths(self.home), agent, lambda: self.machine, sleep)  # type: ignore[arg-type]
        await join.look()
        self.agent.sees = lambda: join.code
        await join.run()
        assert not join.code, "it is tried no more"


def left(home: Path, text: str = CODE) -> None:
    (home / FILE).write_bytes(text.encode("utf-8"))


async def test_without_a_code_nothing_happens(tmp_path: Path) -> None:
    deployed = Deployed(tmp_path)
    await deployed.start()
    assert not deployed.agent.codes
    assert not (tmp_path / USED).exists()


@pytest.mark.parametrize("text", [CODE, f"{CODE}\r\n", f"\ufeff{CODE}\n"])
async def test_a_file_is_used_and_gone(tmp_path: Path, text: str) -> None:
    left(tmp_path, text)
    deployed = Deployed(tmp_path)
    await deployed.start()
    assert deployed.agent.codes == [CODE]
    assert not (tmp_path / FILE).exists()
    assert CODE not in (tmp_path / USED).read_text()


async def test_it_is_tried_until_there_is_a_coordinator(tmp_path: Path) -> None:
    left(tmp_path)
    deployed = Deployed(tmp_path, *[NoHub("none") for _ in range(12)])
    await deployed.start()
    assert deployed.agent.codes == [CODE] * 13
    assert deployed.pauses[0] == FIRST_PAUSE
    assert deployed.pauses == sorted(deployed.pauses)
    assert deployed.pauses[-1] == LONGEST_PAUSE


async def test_a_refused_code_is_not_tried_again(tmp_path: Path) -> None:
    deployed = Deployed(tmp_path, ExpiredJoinCode("too late"), machine=CODE)
    await deployed.start()
    await deployed.start()
    assert deployed.agent.codes == [CODE]


async def test_who_has_left_is_not_brought_back_by_the_pcs_code(tmp_path: Path) -> None:
    deployed = Deployed(tmp_path, machine=CODE)
    await deployed.start()
    deployed.agent.fleet_id = ""  # somebody left the fleet
    await deployed.start()
    assert deployed.agent.codes == [CODE]
    deployed.machine = "FLEET-CCCCC-DDDDD"  # another deployment
    await deployed.start()
    assert deployed.agent.codes == [CODE, "FLEET-CCCCC-DDDDD"]


async def test_a_member_needs_no_code(tmp_path: Path) -> None:
    left(tmp_path)
    deployed = Deployed(tmp_path)
    deployed.agent.fleet_id = "already"
    await deployed.start()
    assert not deployed.agent.codes
    assert not (tmp_path / FILE).exists()


async def test_a_file_that_makes_no_sense_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"\xff\xfe\x00")
    deployed = Deployed(tmp_path)
    await deployed.start()
    assert not deployed.agent.codes

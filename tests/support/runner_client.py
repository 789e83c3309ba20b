"""Runner processes driven by hand, with what only tests ask of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import psutil

from fleetapp.bench import runners
from fleetapp.bench.runners import Answer, Layout, RunnerClient
from fleetapp.engine import pipe
from fleetapp.types import Precision
from tests.support.fleet import TestMember

__all__ = ["Answer", "RunnerClient", "RunnerRing", "load_message"]


def load_message(
    member: TestMember, stage_dir: Path, *, head: bool, precision: Precision = "exact", **other: Any
) -> pipe.Load:
    """A Load for one member of a fleet, on 127.0.0.1."""
    credentials = member.enrolment.credentials
    authority = credentials.leaf_path.with_name("test-authority.pem")
    authority.write_bytes(credentials.authority_pem)
    device = runners.Member(member.identity, credentials.fleet_id, credentials.leaf_path, authority)
    return device.load_message(stage_dir, head=head, precision=precision, **other)


class RunnerRing(runners.RunnerRing):
    """A chain of runner processes with certificates of one fleet.

    Args:
        root: for keys and certificates.
        stage_dirs: one verified stage folder per stage, in order.
        layers_start: first layer of each.
        model: digest of the model's manifest.
    """

    def __init__(
        self,
        root: Path,
        stage_dirs: list[Path],
        layers_start: list[int],
        model: str,
        *,
        module: str = "fleetapp.engine.runner",
        env: Mapping[str, str] | None = None,
        **load: Any,
    ) -> None:
        layout = Layout(tuple(stage_dirs), tuple(layers_start), model)
        super().__init__(root, layout, module=module, env=env, **load)
        self._all_loads = list(self._loads)

    def chat(self, question: str, **sampling: Any) -> str:
        """Begin an answer to one user message."""
        return self.begin([pipe.ChatMessage("user", question)], **sampling)

    def replace_others(self, stage_dirs: list[Path], layers_start: list[int]) -> None:
        """Other processes, as many or fewer, in the place of all behind the head: link next."""
        assert len(stage_dirs) < len(self.members)
        for runner in self.runners[1:]:
            runner.process.kill()
            runner.ended()
        self._loads[1:] = [
            msgspec.structs.replace(load, stage_dir=str(path))
            for load, path in zip(self._all_loads[1:], stage_dirs, strict=False)
        ]
        self.layout = Layout(
            (self.layout.folders[0], *stage_dirs), (0, *layers_start), self.layout.model
        )
        self.runners[1:] = [self._spawn(i) for i in range(1, len(self._loads))]
        self.loaded[1:] = [self._when_loaded(r) for r in self.runners[1:]]

    def assert_clean(self, seconds: float = 5.0) -> None:
        """No slot, no block, no request is left in any process, once the last Close is around."""
        until = time.monotonic() + seconds
        while any(map(self._unclean, found := self.stats())):
            assert time.monotonic() < until, found

    @staticmethod
    def _unclean(stats: pipe.RunnerStats) -> bool:
        busy = stats.open_slots or stats.running or stats.waiting
        return bool(busy) or stats.free_blocks + stats.kept_blocks != stats.blocks

    def resources(self) -> list[tuple[int, int]]:
        """Threads and open files (handles on Windows) of each process."""
        found = []
        for runner in self.runners:
            process = psutil.Process(runner.process.pid)
            files = process.num_handles() if sys.platform == "win32" else process.num_fds()
            found.append((process.num_threads(), files))
        return found

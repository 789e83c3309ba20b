"""The layout Windows expects, and what happens when it refuses. Under Wine it runs for real."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fleetapp.platform import jobs


class _Function:
    """Takes declared types as attributes, as a library's function does."""

    def __init__(self, work: Any) -> None:
        self._work = work

    def __call__(self, *arguments: Any) -> Any:
        return self._work(*arguments)


class FakeKernel(SimpleNamespace):
    def __init__(self, *, makes: bool = True, assigns: bool = True) -> None:
        self.seen: list[tuple[int, int]] = []
        self.closed: list[int] = []

        def limits(job: int, kind: int, data: Any, size: int) -> int:
            assert (job, kind, size) == (77, 9, ctypes.sizeof(data._obj))
            self.seen.append((size, data._obj.basic.flags))
            return 1

        super().__init__(
            CreateJobObjectW=_Function(lambda *_: 77 if makes else 0),
            SetInformationJobObject=_Function(limits),
            AssignProcessToJobObject=_Function(lambda *_: assigns),
            GetCurrentProcess=_Function(lambda: -1),
            CloseHandle=_Function(self.closed.append),
        )


@pytest.fixture(autouse=True)
def none_held() -> Iterator[None]:
    jobs._held.clear()
    yield
    jobs._held.clear()


def test_the_process_enters_a_job_that_kills_when_its_handle_goes() -> None:
    kernel = FakeKernel()
    assert jobs.end_children_with_me(kernel)
    # 144 bytes is JOBOBJECT_EXTENDED_LIMIT_INFORMATION on 64-bit Windows
    assert kernel.seen == [(144, 0x2000)]
    assert not kernel.closed, "the handle must live as long as the process"
    assert jobs.end_children_with_me(kernel)
    assert len(kernel.seen) == 1, "one job is enough"


@pytest.mark.parametrize("refusal", [{"makes": False}, {"assigns": False}])
def test_a_refusal_is_no_reason_not_to_start(refusal: dict[str, bool]) -> None:
    kernel = FakeKernel(**refusal)
    assert not jobs.end_children_with_me(kernel)
    assert kernel.closed == ([] if "makes" in refusal else [77])


def test_elsewhere_there_is_nothing_to_do() -> None:
    assert not jobs.end_children_with_me()

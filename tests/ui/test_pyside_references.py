"""PySide6 must not lose or steal references to the singletons.

Some PySide6 releases took one reference to None or True with every signal emitted or void method
called. On Python 3.11 that ends, hours later, in an abort of the whole desktop app ("deallocating
None"); Python 3.12 made the singletons immortal, so only 3.11 shows it. This guards the range that
pyproject.toml allows: if it fails, narrow the range.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal

CALLS = 500


class _Emitter(QObject):
    plain = Signal()
    number = Signal(int)
    value = Signal(object)


def _counts() -> tuple[int, ...]:
    return tuple(sys.getrefcount(singleton) for singleton in (None, True, False))


def _subjects() -> dict[str, Callable[[], object]]:
    emitter, timer = _Emitter(), QTimer()
    emitter.plain.connect(lambda: None)
    emitter.number.connect(lambda _: None)

    def reconnect() -> None:
        def slot(_: object) -> None: ...

        emitter.value.connect(slot)
        emitter.value.disconnect(slot)

    return {
        # not the bound emit itself: it would not keep its emitter alive
        "emit": lambda: emitter.plain.emit(),  # noqa: PLW0108
        "emit an int": lambda: emitter.number.emit(1),
        "emit an object": lambda: emitter.value.emit({}),
        "emit a C++ signal": lambda: emitter.objectNameChanged.emit("a"),
        "process events": QCoreApplication.processEvents,
        "void method": lambda: timer.setInterval(5),
        "method that returns a bool": timer.isActive,
        "method that takes a bool": lambda: emitter.blockSignals(False),
        "start a timer": lambda: timer.start(1000),
        "connect and disconnect": reconnect,
    }


@pytest.mark.parametrize("name", list(_subjects()))
def test_no_reference_is_lost(qapp: QCoreApplication, name: str) -> None:
    call = _subjects()[name]
    call()  # what is cached on first use is no leak
    before = _counts()
    for _ in range(CALLS):
        call()
    lost = [after - count for count, after in zip(before, _counts(), strict=True)]
    # anything systematic is a multiple of CALLS; a few come and go with the interpreter's own work
    assert all(abs(difference) < CALLS // 10 for difference in lost), lost

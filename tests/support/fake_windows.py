"""The Windows libraries that the sensors call, as far as they call them."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

from fleetapp.platform.windows_sensors import Calls, _GetCost, _Release, declare


class FakeWindows:
    """Fields say what the system is like; ``freed`` and ``released`` count what was given back."""

    def __init__(self) -> None:
        self.tick = 1_000_000
        self.last_input = 990_000
        self.session_flags = 1
        self.session_level = 1
        self.power = (1, 8, 77, 0)
        self.notification = 5
        self.cost = 1
        self.ole_fails = False
        self.awake_ms = 1_000_000
        self.freed = self.released = self.initialized = 0
        self.unregistered = False
        self.works = True
        self._kept: list[Any] = []

    def calls(self) -> Calls:
        def get_last_input(out: Any) -> int:
            assert out._obj.size == ctypes.sizeof(out._obj) == 8
            out._obj.time = self.last_input & 0xFFFFFFFF
            return self.works

        def unbiased(out: Any) -> int:
            out._obj.value = self.awake_ms * 10_000
            return 1

        def power_status(out: Any) -> int:
            assert ctypes.sizeof(out._obj) == 12
            status = out._obj
            status.ac_line, status.battery_flag, status.battery_percent, status.saver = self.power
            return self.works

        def notification(out: Any) -> int:
            out._obj.value = self.notification
            return 0 if self.works else -2147467259

        def session(_server: Any, which: int, kind: int, out: Any, size: Any) -> int:
            assert (which, kind) == (0xFFFFFFFF, 25)
            info = (ctypes.c_int32 * 60)(self.session_level, 0, 1, 0, self.session_flags)
            self._kept.append(info)
            out._obj.value, size._obj.value = ctypes.addressof(info), ctypes.sizeof(info)
            return self.works

        def free(_buffer: Any) -> None:
            self.freed += 1

        def initialize(_reserved: Any, _model: int) -> int:
            self.initialized += 1
            return 0

        def uninitialize() -> None:
            self.initialized -= 1

        def register(_flags: int, parameters: Any, handle: Any) -> int:
            self.callback = parameters._obj.callback
            handle._obj.value = 4711
            return 0

        def unregister(handle: Any) -> int:
            self.unregistered = handle.value == 4711
            return 0

        def create(*arguments: Any) -> int:
            return self._create(*arguments)

        return declare(
            Calls(
                user32=SimpleNamespace(GetLastInputInfo=get_last_input),
                kernel32=SimpleNamespace(
                    GetTickCount=_function(lambda: self.tick & 0xFFFFFFFF),
                    GetTickCount64=_function(lambda: self.tick),
                    QueryUnbiasedInterruptTime=unbiased,
                    GetSystemPowerStatus=power_status,
                ),
                shell32=SimpleNamespace(SHQueryUserNotificationState=notification),
                wtsapi32=SimpleNamespace(WTSQuerySessionInformationW=session, WTSFreeMemory=free),
                ole32=SimpleNamespace(
                    CoInitializeEx=initialize,
                    CoUninitialize=uninitialize,
                    CoCreateInstance=create,
                ),
                powrprof=SimpleNamespace(
                    PowerRegisterSuspendResumeNotification=register,
                    PowerUnregisterSuspendResumeNotification=unregister,
                ),
            )
        )

    def _create(self, clsid: Any, _outer: Any, _context: int, iid: Any, out: Any) -> int:
        """A real object in memory: a pointer to a table of C functions."""
        assert bytes(clsid._obj).hex() == "010cb0dc0f579b4a8d69199fdba5723b"
        assert bytes(iid._obj).hex() == "0800b0dc0f579b4a8d69199fdba5723b"
        if self.ole_fails:
            return -2147221164

        def get_cost(this: int, cost: Any, destination: Any) -> int:
            assert this == ctypes.addressof(here)
            assert destination is None
            cost[0] = self.cost
            return 0

        def release(_this: int) -> int:
            self.released += 1
            return 0

        functions = (_Release(release), _GetCost(get_cost))
        addresses = [ctypes.cast(f, ctypes.c_void_p).value for f in functions]
        table = (ctypes.c_void_p * 4)(None, None, addresses[0], addresses[1])
        here = ctypes.c_void_p(ctypes.addressof(table))
        self._kept += [functions, table, here]
        out._obj.value = ctypes.addressof(here)
        return 0


def _function(plain: Any) -> Any:
    def function() -> int:
        return int(plain())

    return function

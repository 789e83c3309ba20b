"""Sensors of Windows 10 and later, by calls that need no rights and no window.

Types are spelt by width and the calls come in as values, so that the tests, which run elsewhere,
use the very same code. The processor's temperature is not known: Windows tells administrators only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fleetapp.platform import usage
from fleetapp.platform.sensing import Heat, Power, Presence, Usage

_U8, _U32, _U64, _I32 = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32
_Callback: Callable[..., Any] = getattr(ctypes, "WINFUNCTYPE", ctypes.CFUNCTYPE)

_CURRENT_SESSION: Final = 0xFFFFFFFF
_SESSION_INFO_EX: Final = 25
_LOCKED: Final = {0: True, 1: False}
"""WTS_SESSIONSTATE_LOCK and _UNLOCK, as they are since Windows 8."""
_FILLED: Final = frozenset({2, 3, 4})
"""QUNS_BUSY (a full-screen program), _RUNNING_D3D_FULL_SCREEN, _PRESENTATION_MODE."""
_NO_BATTERY: Final = 128
_UNKNOWN: Final = 255
_COSTS: Final = 0x2 | 0x4 | 0x10000 | 0x40000
"""NLM_CONNECTION_COST_FIXED, _VARIABLE, _OVERDATALIMIT, _ROAMING."""
_COST_KNOWN: Final = 0x1 | _COSTS
_CLSCTX_ALL: Final = 0x17
_SUSPEND, _RESUME_AUTOMATIC = 0x4, 0x12
_DEVICE_NOTIFY_CALLBACK: Final = 2


class _LastInput(ctypes.Structure):
    _fields_ = (("size", _U32), ("time", _U32))


class _PowerStatus(ctypes.Structure):
    _fields_ = (
        ("ac_line", _U8),
        ("battery_flag", _U8),
        ("battery_percent", _U8),
        ("saver", _U8),
        ("battery_seconds", _U32),
        ("battery_full_seconds", _U32),
    )


class _SessionInfo(ctypes.Structure):
    """The beginning of WTSINFOEXW; its union holds 64-bit members and so begins at byte 8."""

    _fields_ = (
        ("level", _U32),
        ("padding", _U32),
        ("session", _U32),
        ("state", _I32),
        ("flags", _I32),
    )


class _Guid(ctypes.Structure):
    _fields_ = (("a", _U32), ("b", ctypes.c_uint16), ("c", ctypes.c_uint16), ("d", _U8 * 8))


def _nlm_guid(a: int) -> _Guid:
    """The network list manager's ids differ in their first part only."""
    last = (_U8 * 8)(0x8D, 0x69, 0x19, 0x9F, 0xDB, 0xA5, 0x72, 0x3B)
    return _Guid(a, 0x570F, 0x4A9B, last)


class _SuspendCallback(ctypes.Structure):
    """DEVICE_NOTIFY_SUBSCRIBE_PARAMETERS."""

    _fields_ = (("callback", ctypes.c_void_p), ("context", ctypes.c_void_p))


_GetCost = _Callback(_I32, ctypes.c_void_p, ctypes.POINTER(_U32), ctypes.c_void_p)
_Release = _Callback(_U32, ctypes.c_void_p)
_OnSuspend = _Callback(_U32, ctypes.c_void_p, _U32, ctypes.c_void_p)


@dataclass(frozen=True)
class Calls:
    """The libraries by name, as ctypes loads them."""

    user32: Any
    kernel32: Any
    shell32: Any
    wtsapi32: Any
    ole32: Any
    powrprof: Any


def declare(calls: Calls) -> Calls:
    """Give every function that is used here its types."""
    pointer = ctypes.POINTER
    signatures: tuple[tuple[Any, Any, tuple[Any, ...]], ...] = (
        (calls.user32.GetLastInputInfo, _I32, (pointer(_LastInput),)),
        (calls.kernel32.GetTickCount, _U32, ()),
        (calls.kernel32.GetTickCount64, _U64, ()),
        (calls.kernel32.QueryUnbiasedInterruptTime, _I32, (pointer(_U64),)),
        (calls.kernel32.GetSystemPowerStatus, _I32, (pointer(_PowerStatus),)),
        (calls.shell32.SHQueryUserNotificationState, _I32, (pointer(_I32),)),
        (
            calls.wtsapi32.WTSQuerySessionInformationW,
            _I32,
            (ctypes.c_void_p, _U32, _I32, pointer(ctypes.c_void_p), pointer(_U32)),
        ),
        (calls.wtsapi32.WTSFreeMemory, None, (ctypes.c_void_p,)),
        (calls.ole32.CoInitializeEx, _I32, (ctypes.c_void_p, _U32)),
        (calls.ole32.CoUninitialize, None, ()),
        (
            calls.ole32.CoCreateInstance,
            _I32,
            (pointer(_Guid), ctypes.c_void_p, _U32, pointer(_Guid), pointer(ctypes.c_void_p)),
        ),
        (
            calls.powrprof.PowerRegisterSuspendResumeNotification,
            _U32,
            (_U32, pointer(_SuspendCallback), pointer(ctypes.c_void_p)),
        ),
        (calls.powrprof.PowerUnregisterSuspendResumeNotification, _U32, (ctypes.c_void_p,)),
    )
    for function, result, arguments in signatures:
        function.restype, function.argtypes = result, arguments
    return calls


def system_calls() -> Calls:
    """Those of this system."""
    load: Any = getattr(ctypes, "WinDLL", None)
    assert load is not None, "only Windows has these libraries"
    names = ("user32", "kernel32", "shell32", "wtsapi32", "ole32", "powrprof")
    return declare(Calls(*(load(name) for name in names)))


class WindowsSensors:
    """See :class:`fleetapp.platform.sensing.Sensors`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._meter = usage.UsageMeter()
        self._going: Any = None
        self._registration = ctypes.c_void_p()

    def presence(self) -> Presence:
        return Presence(self._idle(), self._locked())

    def _idle(self) -> float | None:
        last = _LastInput(size=ctypes.sizeof(_LastInput))
        if not self._calls.user32.GetLastInputInfo(ctypes.byref(last)):
            return None
        # both count milliseconds in 32 bits, and begin anew every 49.7 days
        return float((self._calls.kernel32.GetTickCount() - last.time) & 0xFFFFFFFF) / 1000

    def _locked(self) -> bool | None:
        buffer, size = ctypes.c_void_p(), _U32()
        if not self._calls.wtsapi32.WTSQuerySessionInformationW(
            None, _CURRENT_SESSION, _SESSION_INFO_EX, ctypes.byref(buffer), ctypes.byref(size)
        ):
            return None
        try:
            if not buffer.value or size.value < ctypes.sizeof(_SessionInfo):
                return None
            info = _SessionInfo.from_address(buffer.value)
            return _LOCKED.get(info.flags) if info.level == 1 else None
        finally:
            self._calls.wtsapi32.WTSFreeMemory(buffer)

    def power(self) -> Power:
        status = _PowerStatus()
        if not self._calls.kernel32.GetSystemPowerStatus(ctypes.byref(status)):
            return Power()
        saver = status.saver == 1
        if status.battery_flag == _UNKNOWN or status.battery_flag & _NO_BATTERY:
            return Power(saver=saver)
        percent = None if status.battery_percent == _UNKNOWN else float(status.battery_percent)
        return Power({0: False, 1: True}.get(status.ac_line), percent, saver)

    def metered(self) -> bool | None:
        ole32 = self._calls.ole32
        begun = ole32.CoInitializeEx(None, 0)  # this thread may be another one each time
        try:
            manager = ctypes.c_void_p()
            made = ole32.CoCreateInstance(
                ctypes.byref(_nlm_guid(0xDCB00C01)),  # CLSID_NetworkListManager
                None,
                _CLSCTX_ALL,
                ctypes.byref(_nlm_guid(0xDCB00008)),  # IID_INetworkCostManager
                ctypes.byref(manager),
            )
            if made < 0 or not manager.value:
                return None
            cost = _U32()
            asked = _method(manager, 3, _GetCost)(manager, ctypes.byref(cost), None)
            _method(manager, 2, _Release)(manager)
            known = asked >= 0 and cost.value & _COST_KNOWN
            return bool(cost.value & _COSTS) if known else None
        finally:
            if begun >= 0:
                ole32.CoUninitialize()

    def full_screen(self) -> bool | None:
        state = _I32()
        failed = self._calls.shell32.SHQueryUserNotificationState(ctypes.byref(state))
        return None if failed else state.value in _FILLED

    def heat(self) -> Heat:
        return Heat()

    def usage(self) -> Usage:
        return self._meter.look()

    def programs(self) -> frozenset[str]:
        return usage.programs()

    def slept(self) -> float:
        awake = _U64()  # in 100 ns; stands still in sleep, which GetTickCount64 does not
        if not self._calls.kernel32.QueryUnbiasedInterruptTime(ctypes.byref(awake)):
            return 0.0
        up = float(self._calls.kernel32.GetTickCount64()) / 1e3
        # the coarser clock of the two lags behind by up to 16 ms
        return max(0.0, up - float(awake.value) / 1e7)

    def watch_sleep(self, going: Callable[[bool], None]) -> None:
        def heard(_context: object, kind: int, _setting: object) -> int:
            if kind in (_SUSPEND, _RESUME_AUTOMATIC):
                going(kind == _SUSPEND)
            return 0

        self._going = _OnSuspend(heard)  # must live as long as it may be called
        callback = ctypes.cast(self._going, ctypes.c_void_p)
        self._calls.powrprof.PowerRegisterSuspendResumeNotification(
            _DEVICE_NOTIFY_CALLBACK,
            ctypes.byref(_SuspendCallback(callback)),
            ctypes.byref(self._registration),
        )

    def close(self) -> None:
        if self._registration.value:
            self._calls.powrprof.PowerUnregisterSuspendResumeNotification(self._registration)
            self._registration = ctypes.c_void_p()


def _method(this: ctypes.c_void_p, index: int, kind: Any) -> Any:
    """A method of a COM object: its first word points to a table of functions."""
    table = ctypes.cast(this, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p)))
    return kind(table[0][index])

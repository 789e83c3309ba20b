"""Children that end with their parent, however it ends.

On Windows nothing else would: a process that is killed takes no child with it. Elsewhere children
of ours end when their standard input closes, which the system does for a dead parent.
"""

from __future__ import annotations

import ctypes
import logging
from typing import Any, Final

log = logging.getLogger(__name__)

_U32, _U64, _I32 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32
_SIZE = ctypes.c_size_t
_EXTENDED_LIMITS: Final = 9
"""JobObjectExtendedLimitInformation."""
_KILL_ON_JOB_CLOSE: Final = 0x2000


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("process_time", _U64),
        ("job_time", _U64),
        ("flags", _U32),
        ("smallest_working_set", _SIZE),
        ("largest_working_set", _SIZE),
        ("processes", _U32),
        ("affinity", _SIZE),
        ("priority_class", _U32),
        ("scheduling_class", _U32),
    )


class _ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("basic", _BasicLimits),
        ("io", _U64 * 6),
        ("process_memory", _SIZE),
        ("job_memory", _SIZE),
        ("peak_process_memory", _SIZE),
        ("peak_job_memory", _SIZE),
    )


_held: list[Any] = []
"""The job's handle: closing it, which the end of this process does, ends every child."""


def end_children_with_me(kernel32: Any = None) -> bool:
    """From now on whatever this process starts, and what that starts, ends with this process.

    The process puts itself into a job of which it holds the only handle; what it starts is born
    into the job.

    Args:
        kernel32: the system's; for tests.

    Returns:
        False where the system has no jobs, or refuses this one: then a runner still ends when it
        reads the end of its standard input.
    """
    if kernel32 is None:
        load: Any = getattr(ctypes, "WinDLL", None)
        if load is None:
            return False
        kernel32 = load("kernel32", use_last_error=True)
    if _held:
        return True
    kernel32.CreateJobObjectW.restype = ctypes.c_void_p
    kernel32.CreateJobObjectW.argtypes = (ctypes.c_void_p, ctypes.c_wchar_p)
    kernel32.SetInformationJobObject.argtypes = (ctypes.c_void_p, _I32, ctypes.c_void_p, _U32)
    kernel32.AssignProcessToJobObject.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    kernel32.GetCurrentProcess.restype = ctypes.c_void_p
    kernel32.CloseHandle.argtypes = (ctypes.c_void_p,)
    job = kernel32.CreateJobObjectW(None, None)
    if not job:
        log.warning("no job object could be made; children end by themselves")
        return False
    limits = _ExtendedLimits()
    limits.basic.flags = _KILL_ON_JOB_CLOSE
    if not kernel32.SetInformationJobObject(
        job, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)
    ) or not kernel32.AssignProcessToJobObject(job, kernel32.GetCurrentProcess()):
        log.warning("the job object was refused; children end by themselves")
        kernel32.CloseHandle(job)
        return False
    _held.append(job)
    return True

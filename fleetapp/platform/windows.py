r"""Windows 10 and later.

What is private is protected by an access list of its own, not by the one it would inherit: a
state folder outside the user's profile (``FLEETAPP_HOME=D:\fleet``) would inherit read access for
everybody. The list is the one CPython gives to ``os.mkdir(mode=0o700)``: system, administrators
and owner, inheritance off. It is set through the security API, because ``icacls`` would start a
process per file and differs by language.
"""

# ruff: noqa: E402  (imports below exist on Windows only)

from __future__ import annotations

import sys

# the type checker leaves the rest of the file out on other systems
assert sys.platform == "win32", "fleetapp.platform.windows is imported by windows only"

import ctypes
import winreg
from collections.abc import Mapping, Sequence
from ctypes import wintypes
from pathlib import Path

from fleetapp.errors import BadSetting, StorageError
from fleetapp.platform import common
from fleetapp.platform.base import Policy, PolicyScope
from fleetapp.platform.files import storage_error, write_atomic
from fleetapp.platform.network import Address
from fleetapp.platform.smbios import system_uuid
from fleetapp.platform.startup import Startup
from fleetapp.platform.windows_sensors import WindowsSensors, system_calls
from fleetapp.platform.windows_startup import Root, RunKey

POLICY_KEY = r"Software\Policies\fleetapp"

_DACL_SECURITY_INFORMATION = 0x00000004
_SDDL_REVISION_1 = 1
_FOLDER_SDDL = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;OW)"
_FILE_SDDL = "D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FA;;;OW)"

_advapi32 = ctypes.WinDLL("advapi32", use_last_error=True)
_kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
_convert = _advapi32.ConvertStringSecurityDescriptorToSecurityDescriptorW
_convert.argtypes = [
    wintypes.LPCWSTR,
    wintypes.DWORD,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(wintypes.ULONG),
]
_convert.restype = wintypes.BOOL
_set_security = _advapi32.SetFileSecurityW
_set_security.argtypes = [wintypes.LPCWSTR, wintypes.DWORD, ctypes.c_void_p]
_set_security.restype = wintypes.BOOL
_firmware = _kernel32.GetSystemFirmwareTable
_firmware.argtypes = [wintypes.DWORD, wintypes.DWORD, ctypes.c_void_p, wintypes.DWORD]
_firmware.restype = wintypes.UINT
_RSMB = 0x52534D42
_RAW_HEADER = 8
"""Versions and a length before the structures (RawSMBIOSData)."""
_CRYPTOGRAPHY = r"SOFTWARE\Microsoft\Cryptography"
_ROOTS: dict[Root, int] = {"HKCU": winreg.HKEY_CURRENT_USER, "HKLM": winreg.HKEY_LOCAL_MACHINE}
_local_free = _kernel32.LocalFree
_local_free.argtypes = [ctypes.c_void_p]
_local_free.restype = ctypes.c_void_p


def _protect(path: Path, sddl: str) -> None:
    descriptor = ctypes.c_void_p()
    if not _convert(sddl, _SDDL_REVISION_1, ctypes.byref(descriptor), None):
        raise ctypes.WinError(ctypes.get_last_error())
    try:
        if not _set_security(str(path), _DACL_SECURITY_INFORMATION, descriptor):
            raise ctypes.WinError(ctypes.get_last_error())
    finally:
        _local_free(descriptor)


def _firmware_table() -> bytes:
    """The SMBIOS structures; no admin rights needed. Empty if the system gives none."""
    size = _firmware(_RSMB, 0, None, 0)
    buffer = ctypes.create_string_buffer(size)
    if not size or _firmware(_RSMB, 0, buffer, size) != size:
        return b""
    return buffer.raw[_RAW_HEADER:]


class _Registry:
    """See :class:`fleetapp.platform.windows_startup.Registry`."""

    def get(self, root: Root, key: str, name: str) -> object:
        access = winreg.KEY_READ | winreg.KEY_WOW64_64KEY
        try:
            with winreg.OpenKey(_ROOTS[root], key, 0, access) as handle:
                return winreg.QueryValueEx(handle, name)[0]
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise _refused(exc, rf"{root}\{key}") from exc

    def set(self, key: str, name: str, value: str | bytes) -> None:
        kind = winreg.REG_SZ if isinstance(value, str) else winreg.REG_BINARY
        access = winreg.KEY_WRITE | winreg.KEY_WOW64_64KEY
        try:
            with winreg.CreateKeyEx(winreg.HKEY_CURRENT_USER, key, 0, access) as handle:
                winreg.SetValueEx(handle, name, 0, kind, value)
        except OSError as exc:
            raise _refused(exc, rf"HKCU\{key}") from exc

    def delete(self, key: str, name: str) -> None:
        access = winreg.KEY_WRITE | winreg.KEY_WOW64_64KEY
        try:
            with winreg.OpenKey(winreg.HKEY_CURRENT_USER, key, 0, access) as handle:
                winreg.DeleteValue(handle, name)
        except FileNotFoundError:
            return
        except OSError as exc:
            raise _refused(exc, rf"HKCU\{key}") from exc


def _refused(exc: OSError, key: str) -> StorageError:
    return StorageError(
        f"The registry key {key} cannot be used ({exc.strerror}).",
        remedy="Ask the administrator of this PC whether it is locked.",
    )


class WindowsPlatform:
    r"""See :class:`fleetapp.platform.base.Platform`.

    Policies are values below ``Software\Policies\fleetapp`` in HKLM (machine) and HKCU (user),
    branches that only an administrator can write.
    """

    name = "windows"

    def memory_total(self) -> int:
        return common.memory_total()

    def memory_free(self) -> int:
        return common.memory_free()

    def disk_free(self, path: Path) -> int:
        return common.disk_free(path)

    def cpu_name(self) -> str:
        key = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, key) as handle:
                value, _ = winreg.QueryValueEx(handle, "ProcessorNameString")
        except OSError:
            return ""
        return " ".join(str(value).split())

    def cores(self) -> int:
        return common.affinity_cores()

    def machine_facts(self) -> tuple[str, ...]:
        access = winreg.KEY_READ | winreg.KEY_WOW64_64KEY
        facts = []
        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _CRYPTOGRAPHY, 0, access) as handle:
                facts.append(str(winreg.QueryValueEx(handle, "MachineGuid")[0]))
        except OSError:
            pass  # a locked-down PC: the firmware still tells it apart
        facts.append(system_uuid(_firmware_table()))
        return tuple(f for f in facts if f)

    def addresses(self, *, loopback: bool = False) -> tuple[Address, ...]:
        return common.addresses(loopback=loopback)

    def make_private_dir(self, path: Path) -> None:
        try:
            path.mkdir(parents=True, exist_ok=True)
            _protect(path, _FOLDER_SDDL)
        except OSError as exc:
            raise storage_error(exc, path) from exc

    def write_private(self, path: Path, data: bytes) -> None:
        write_atomic(path, data, protect=lambda file: _protect(file, _FILE_SDDL))

    def lower_priority(self) -> None:
        common.lower_priority()

    def runner_environment(self, base: Mapping[str, str]) -> dict[str, str]:
        return dict(base)  # large pages need a right that users do not have here

    def sensors(self) -> WindowsSensors:
        return WindowsSensors(system_calls())

    def startup(self) -> Startup:
        return RunKey(_Registry()).read()

    def set_startup(self, on: bool, command: Sequence[str]) -> None:
        RunKey(_Registry()).write(on, command)

    def policy(self, scope: PolicyScope) -> Policy:
        root = winreg.HKEY_LOCAL_MACHINE if scope == "machine" else winreg.HKEY_CURRENT_USER
        source = f"{'HKLM' if scope == 'machine' else 'HKCU'}\\{POLICY_KEY}"
        # a 32-bit process would otherwise be shown another branch
        access = winreg.KEY_READ | winreg.KEY_WOW64_64KEY
        try:
            with winreg.OpenKey(root, POLICY_KEY, 0, access) as handle:
                count = winreg.QueryInfoKey(handle)[1]
                rows = [winreg.EnumValue(handle, index) for index in range(count)]
        except FileNotFoundError:
            return Policy(source)
        except OSError as exc:
            raise BadSetting(
                f"The policy in {source} cannot be read ({exc.strerror}).",
                remedy="Ask the administrator to correct it.",
            ) from exc
        return Policy(source, {name: value for name, value, _ in rows if name})

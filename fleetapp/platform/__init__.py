"""The operating system behind one Protocol; everything above asks :func:`current`."""

from __future__ import annotations

import functools
import sys

from fleetapp.platform.base import Platform


@functools.cache
def current() -> Platform:
    """The platform this process runs on."""
    if sys.platform == "win32":
        from fleetapp.platform.windows import WindowsPlatform  # noqa: PLC0415

        return WindowsPlatform()
    else:  # noqa: RET505  (so that the type checker sees one branch a system)
        from fleetapp.platform.linux import LinuxPlatform  # noqa: PLC0415

        return LinuxPlatform()

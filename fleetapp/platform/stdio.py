"""Standard input as a pipe of our own."""

from __future__ import annotations

import os
import sys
import threading
from typing import BinaryIO


def take_stdin() -> BinaryIO:
    """What arrives on standard input, to be read by a thread; descriptor 0 becomes the null device.

    On Windows a handle serves one call at a time: while a thread waits in a read, whoever merely
    asks what kind of handle standard input is waits with it. Every library with a C run time of its
    own asks that when it is loaded: the process would stand still in an import (numpy/numpy#24290).
    """
    own = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    if sys.platform == "win32":
        import ctypes  # noqa: PLC0415 - this system only
        import msvcrt  # noqa: PLC0415

        msvcrt.setmode(own, os.O_BINARY)
        # a program without a console keeps the old handle under the old name otherwise
        kernel32 = ctypes.WinDLL("kernel32")
        kernel32.SetStdHandle.argtypes = (ctypes.c_uint32, ctypes.c_void_p)
        kernel32.SetStdHandle(0xFFFFFFF6, msvcrt.get_osfhandle(0))  # STD_INPUT_HANDLE
    return os.fdopen(own, "rb")


def end_with_parent(source: BinaryIO) -> None:
    """End this process at once when its parent closes the pipe, or ends."""

    def wait() -> None:
        source.read()
        os._exit(3)

    threading.Thread(target=wait, daemon=True).start()

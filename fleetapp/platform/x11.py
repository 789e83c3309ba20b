"""Idle time of an X11 screen, through the C libraries that every X desktop has."""

from __future__ import annotations

import ctypes
import logging
from typing import Any

log = logging.getLogger(__name__)


class _Info(ctypes.Structure):
    """XScreenSaverInfo; times in milliseconds."""

    _fields_ = (
        ("window", ctypes.c_ulong),
        ("state", ctypes.c_int),
        ("kind", ctypes.c_int),
        ("til_or_since", ctypes.c_ulong),
        ("idle", ctypes.c_ulong),
        ("event_mask", ctypes.c_ulong),
    )


_OnExit = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_OnIoError = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_OnError = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class XIdle:
    """One connection to the display of this session.

    Raises:
        OSError: no library, no display, or a libX11 that would end this process together with
            the X server (older than 1.7, which brought XSetIOErrorExitHandler).
    """

    def __init__(self, display: str) -> None:
        self._x11 = ctypes.CDLL("libX11.so.6")
        self._xss = ctypes.CDLL("libXss.so.1")
        self._declare()
        self._display: int | None = self._x11.XOpenDisplay(display.encode())
        if not self._display:
            raise OSError(f"the display {display} cannot be opened")
        self._callbacks = self._survive()
        event, error = ctypes.c_int(), ctypes.c_int()
        if not self._xss.XScreenSaverQueryExtension(
            self._display, ctypes.byref(event), ctypes.byref(error)
        ):
            self.close()
            raise OSError(f"the display {display} does not know how long it was idle")
        self._info = _Info()
        self._root = self._x11.XDefaultRootWindow(self._display)

    def _declare(self) -> None:
        x11, xss = self._x11, self._xss
        try:
            exit_handler = x11.XSetIOErrorExitHandler
        except AttributeError:
            raise OSError("this libX11 would end us together with the X server") from None
        exit_handler.argtypes = (ctypes.c_void_p, _OnExit, ctypes.c_void_p)
        exit_handler.restype = None
        x11.XSetIOErrorHandler.argtypes = (_OnIoError,)
        x11.XSetIOErrorHandler.restype = ctypes.c_void_p
        x11.XSetErrorHandler.argtypes = (_OnError,)
        x11.XSetErrorHandler.restype = ctypes.c_void_p
        x11.XOpenDisplay.argtypes = (ctypes.c_char_p,)
        x11.XOpenDisplay.restype = ctypes.c_void_p
        x11.XDefaultRootWindow.argtypes = (ctypes.c_void_p,)
        x11.XDefaultRootWindow.restype = ctypes.c_ulong
        x11.XCloseDisplay.argtypes = (ctypes.c_void_p,)
        number = ctypes.POINTER(ctypes.c_int)
        xss.XScreenSaverQueryExtension.argtypes = (ctypes.c_void_p, number, number)
        xss.XScreenSaverQueryInfo.argtypes = (
            ctypes.c_void_p,
            ctypes.c_ulong,
            ctypes.POINTER(_Info),
        )

    def _survive(self) -> tuple[Any, ...]:
        """Xlib ends the process on errors unless told otherwise; the functions must stay alive."""

        def gone(_display: int, _data: int) -> None:
            self._display = None

        kept = (_OnExit(gone), _OnIoError(lambda _: 0), _OnError(lambda _display, _event: 0))
        self._x11.XSetIOErrorExitHandler(self._display, kept[0], None)
        self._x11.XSetIOErrorHandler(kept[1])
        self._x11.XSetErrorHandler(kept[2])
        return kept

    def seconds(self) -> float | None:
        """Since somebody touched a key or the mouse; None once the X server has gone."""
        if self._display is None:
            return None
        asked = self._xss.XScreenSaverQueryInfo(self._display, self._root, ctypes.byref(self._info))
        if not asked or self._display is None:
            return None
        return float(self._info.idle) / 1000

    def close(self) -> None:
        """End the connection."""
        display, self._display = self._display, None
        if display:
            self._x11.XCloseDisplay(display)


def open_idle(environ: dict[str, str]) -> XIdle | None:
    """Of the display in this environment, unless that is only Wayland's stand-in for one.

    XWayland sees the input of X programs only and would call a busy user idle.
    """
    display = environ.get("DISPLAY", "")
    if (
        not display
        or environ.get("WAYLAND_DISPLAY")
        or environ.get("XDG_SESSION_TYPE") == "wayland"
    ):
        return None
    try:
        return XIdle(display)
    except OSError as exc:
        log.debug("no idle time from X11: %s", exc)
        return None

"""``fleetapp-tray``: the process around the desktop app."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QApplication, QMessageBox

from fleetapp.errors import FleetError, ReadOnly, UserError
from ui.desktop import Desktop
from ui.endpoint import default_home
from ui.icons import app_icon
from ui.instance import InstanceHung, SingleInstance
from ui.keeper import agent_command
from ui.language import Language
from ui.preferences import language_choice, preferences_of, theme_choice
from ui.session import AgentSession
from ui.theme import Theme

QUIT_OPTION = "--quit"
"""Asks the app that runs to quit, for the installer."""
QUIT_SECONDS = 30.0


NO_SCREEN = (
    "fleetapp-tray needs a screen, and neither DISPLAY nor WAYLAND_DISPLAY names one. Without a "
    "screen, run 'fleetapp agent' and use the commands of 'fleetapp'."
)


def main() -> None:
    """Entry point of the gui script."""
    if any(a.partition("=")[0] == "--gallery" for a in sys.argv):
        from ui.gallery.main import main as gallery  # noqa: PLC0415 - for those who draw pictures

        sys.exit(gallery(sys.argv[1:]))
    sys.exit(run(sys.argv, agent_command()))


def run(argv: Sequence[str], command: Sequence[str]) -> int:
    """Run until Quit; the exit code is 0, or that of the error that was shown.

    Args:
        argv: for Qt, which takes its own options such as ``-platform`` from it.
        command: starts the agent.
    """
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    # Ctrl+C and a session's end leave at once: nothing here is worth saving, the agent goes on
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if _no_screen(argv):
        if QUIT_OPTION not in argv:  # Qt would abort the process
            sys.stderr.write(NO_SCREEN + "\n")
            return UserError.exit_code
        os.environ["QT_QPA_PLATFORM"] = "offscreen"  # asking another to end shows nothing
    app = QApplication(list(argv))
    app.setApplicationName("fleetapp")
    app.setApplicationDisplayName("fleetapp")
    app.setDesktopFileName("fleetapp")
    app.setWindowIcon(app_icon())
    app.setQuitOnLastWindowClosed(False)
    _use_state_option(app.arguments())
    home = default_home()
    preferences = preferences_of(home)
    Language(app).use(language_choice(preferences))
    Theme(app).choose(theme_choice(preferences))
    try:
        _make_home(home)
        instance = SingleInstance(home)
        if QUIT_OPTION in argv:
            return 0 if instance.end_first(QUIT_SECONDS) else InstanceHung.exit_code
        if not instance.claim():
            return 0
    except FleetError as error:
        # an installer waits for the answer, and nobody for a box
        return error.exit_code if QUIT_OPTION in argv else _refuse(error)
    desktop = Desktop(AgentSession(home, command), home)
    instance.raised.connect(desktop.come_forward)
    instance.quit_wanted.connect(desktop.quit_unasked)
    desktop.ended.connect(app.quit)
    desktop.start()
    code = app.exec()
    desktop.stop()
    instance.release()
    return code


def _use_state_option(arguments: Sequence[str]) -> None:
    """``--state DIR``, which autostart gives where the state folder is not the usual one."""
    for option, folder in pairwise(arguments):
        if option == "--state" and folder:
            os.environ["FLEETAPP_HOME"] = str(Path(folder).expanduser().absolute())


def _make_home(home: Path) -> None:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        odd = QCoreApplication.translate("App", "The folder {folder} cannot be made: {why}.")
        raise ReadOnly(odd.format(folder=home, why=error.strerror)) from error


def _no_screen(argv: Sequence[str]) -> bool:
    chosen = "-platform" in argv or "--platform" in argv
    named = any(os.environ.get(n) for n in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))
    return sys.platform.startswith("linux") and not chosen and not named


def _refuse(error: FleetError) -> int:
    print(f"fleetapp-tray: {error}", file=sys.stderr)  # noqa: T201 - for whoever started it by hand
    if QApplication.platformName() != "offscreen":
        QMessageBox.critical(
            None, QCoreApplication.translate("App", "fleetapp cannot start"), str(error)
        )
    return error.exit_code


if __name__ == "__main__":
    main()

"""What FleetApp.exe runs."""

import contextlib
import faulthandler
import os
import sys
from pathlib import Path

# Runners, probes, pip and the agent are started with sys.executable. Here that would be this
# launcher, which starts the tray whatever it is told; the plain interpreter lies beside it.
sys.executable = str(Path(__file__).resolve().parent.parent / "fleetapp-worker.exe")

_MOST = 1_000_000


def keep_words() -> None:
    """A program without a console has nowhere to complain: give it a file."""
    home = os.environ.get("FLEETAPP_HOME") or Path(os.environ["LOCALAPPDATA"], "fleetapp")
    file = Path(home, "logs", "tray.log")
    file.parent.mkdir(parents=True, exist_ok=True)
    mode = "a" if file.exists() and file.stat().st_size < _MOST else "w"
    words = file.open(mode, buffering=1, encoding="utf-8", errors="backslashreplace")
    sys.stdout = sys.stderr = words
    faulthandler.enable(words)


if sys.stderr is None:
    with contextlib.suppress(OSError, KeyError):
        keep_words()

from ui.app import main

main()

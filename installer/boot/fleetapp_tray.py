"""What FleetApp.exe runs."""

import sys
from pathlib import Path

# Runners, probes, pip and the agent are started with sys.executable. Here that would be this
# launcher, which starts the tray whatever it is told; the plain interpreter lies beside it.
sys.executable = str(Path(__file__).resolve().parent.parent / "fleetapp-worker.exe")

from ui.app import main

main()

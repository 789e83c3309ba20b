"""What fleetapp-cli.exe runs."""

import sys
from pathlib import Path

sys.executable = str(Path(__file__).resolve().parent.parent / "fleetapp-worker.exe")  # see tray

from fleetapp.cli import main

sys.exit(main())

import sys

from fleetapp.cli import main

sys.exit(main())

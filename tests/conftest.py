"""What every test may rely on."""

from __future__ import annotations

import os

# Before Qt is imported anywhere: no test opens a window on the screen of whoever runs it.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# A developer's own fleet, settings and proxies stay out of the tests and are never touched by them.
# FLEETAPP_TEST_CACHE only says where the sample model is kept between runs.
for name in [n for n in os.environ if n.startswith("FLEETAPP_") and n != "FLEETAPP_TEST_CACHE"]:
    del os.environ[name]

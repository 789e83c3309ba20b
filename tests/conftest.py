"""What every test may rely on."""

from __future__ import annotations

import os

from hypothesis import settings

# Before Qt is imported anywhere: no test opens a window on the screen of whoever runs it.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# A developer's own fleet, settings and proxies stay out of the tests and are never touched by them.
# FLEETAPP_TEST_CACHE only says where the sample model is kept between runs.
for name in [n for n in os.environ if n.startswith("FLEETAPP_") and n != "FLEETAPP_TEST_CACHE"]:
    del os.environ[name]

# Whether a commit passes must not depend on luck: the same examples every time. `make test-slow`
# looks for new ones, and so does HYPOTHESIS_PROFILE=search.
settings.register_profile("same", derandomize=True)
settings.register_profile("search")
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

"""Who did what: an append-only log of JSON lines beside the hub's state."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path


class AuditLog:
    """Appends one line per event; never rewrites. Secrets are not passed in, so none get out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def write(self, actor: str, action: str, **details: str | int | float | bool) -> None:
        """Record that ``actor`` (a device id, or "local") did ``action`` now (Unix seconds)."""
        line = json.dumps(
            {"time": round(time.time(), 3), "actor": actor, "action": action, **details},
            ensure_ascii=False,
        )
        with self._lock, self._path.open("a", encoding="utf-8") as out:
            out.write(line + "\n")

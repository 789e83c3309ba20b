"""Logs: JSON lines, one file a process, rotated; prompts, answers and secrets never get in.

That is first a matter of what is handed to a logger. As a second net, everything that looks like
a join code, an API key, a bearer token or a private key is struck out of every line.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import logging.handlers
import re
from pathlib import Path
from typing import Any

from fleetapp.errors import FleetError
from fleetapp.platform.paths import Paths

MAX_BYTES = 4 * 1024 * 1024
KEPT = 4
"""Older files kept beside the current one."""
_MAX_TEXT = 4096
_HANDLER = "fleetapp"

STRUCK = "[struck out]"
"""Stands where a secret stood."""
_SECRETS = re.compile(
    # join codes and API keys, codes with spaces, bearer tokens, PEM keys (whole or cut off)
    r"\b(?:fleet|sk)-[0-9A-Za-z_-]{20,}"
    r"|\bFLEET (?:[0-9A-Z]{5} ){4,}[0-9A-Z]*"
    r"|Bearer\s+\S+"
    r"|-----BEGIN[^-]*PRIVATE KEY-----.*?(?:-----END[^-]*-----|\Z)",
    re.IGNORECASE | re.DOTALL,
)
# fields of these names never leave the process, whatever they hold
_NEVER = frozenset(
    {"prompt", "messages", "content", "answer", "text", "completion", "secret", "token", "tokens",
     "password", "passphrase", "code", "key", "api_key", "authorization"}
)  # fmt: skip
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def strike(text: str) -> str:
    """``text`` without what looks like a secret, and not longer than a few thousand characters."""
    clean = _SECRETS.sub(STRUCK, text)
    return clean if len(clean) <= _MAX_TEXT else clean[:_MAX_TEXT] + "…"


def never_logged(field: str) -> bool:
    """Whether a field of this name never leaves a process, whatever it holds."""
    return field.lower() in _NEVER


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    return strike(str(value))


class JsonLines(logging.Formatter):
    """One JSON object a record: time (UTC), level, logger, message, then its extra fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        line: dict[str, Any] = {
            "time": dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(
                "T", "milliseconds"
            ),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": strike(record.getMessage()),
        }
        for name, value in record.__dict__.items():
            if name not in _STANDARD and name not in line:
                line[name] = STRUCK if never_logged(name) else _plain(value)
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line["error"] = error.code if isinstance(error, FleetError) else type(error).__name__
            line["trace"] = strike(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


def setup_logging(paths: Paths, name: str, *, level: int = logging.INFO) -> Path | None:
    """Send everything this process logs to ``<logs>/<name>.jsonl``; answers that path.

    Calling it again replaces the file of the call before. Two processes must not share a name:
    Windows cannot rotate a file that another process has open. If the folder cannot be written
    the process goes on without a file, warnings go to stderr, and ``None`` is answered.
    """
    root = logging.getLogger()
    for old in [h for h in root.handlers if h.get_name() == _HANDLER]:
        root.removeHandler(old)
        old.close()
    path = paths.logs / f"{name}.jsonl"
    handler: logging.Handler
    problem: OSError | None = None
    try:
        paths.logs.mkdir(parents=True, exist_ok=True)
        handler = logging.handlers.RotatingFileHandler(
            path, maxBytes=MAX_BYTES, backupCount=KEPT, encoding="utf-8"
        )
    except OSError as exc:
        problem, handler = exc, logging.StreamHandler()
        handler.setLevel(logging.WARNING)
    handler.setFormatter(JsonLines())
    handler.set_name(_HANDLER)
    root.addHandler(handler)
    root.setLevel(level)
    # these log requests with their addresses and bodies' sizes at INFO: nothing for a support case
    for noisy in ("aiohttp.access", "zeroconf", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    if problem is not None:
        logging.getLogger(__name__).warning("no log file", extra={"why": problem.strerror})
        return None
    return path
